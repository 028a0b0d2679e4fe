package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/tensor"
)

func TestGGUF(t *testing.T) {
	shapes := map[string][]int{
		"token_embd.weight":          {4, 2},
		"blk.0.attn_norm.weight":     {2},
		"blk.0.ffn_up_exps.weight":   {2, 3, 2},
		"blk.0.something_new.weight": {1, 1, 1, 2},
	}
	file := ggufOf(t, []Pair{{"general.architecture", "llama"}}, shapes,
		"token_embd.weight", "blk.0.attn_norm.weight", "blk.0.ffn_up_exps.weight", "blk.0.something_new.weight")
	path := filepath.Join(writeFiles(t, map[string][]byte{"m.gguf": file, "config.json": []byte("{}")}), "m.gguf")
	c := open(t, path)
	if c.Format() != GGUF || c.ConfigJSON() != nil || c.Metadata().Arch() != "llama" || c.Size() != 4*(8+2+12+2) {
		t.Errorf("format %v, config %q, arch %q, size %d", c.Format(), c.ConfigJSON(), c.Metadata().Arch(), c.Size())
	}
	names := []string{
		"blk.0.something_new.weight", "model.embed_tokens.weight", "model.layers.0.input_layernorm.weight",
		"model.layers.0.mlp.experts.up_proj.weight",
	}
	if diff := cmp.Diff(names, c.Names()); diff != "" {
		t.Error(diff)
	}
	info, _ := c.Info("model.embed_tokens.weight")
	if want := (TensorInfo{"model.embed_tokens.weight", "token_embd.weight", tensor.F32, []int{4, 2}, path}); !cmp.Equal(want, info) {
		t.Errorf("info %v, want %v", info, want)
	}
	m, err := c.Matrix("model.embed_tokens.weight")
	if err != nil || !cmp.Equal([]float32{4, 5}, rowOf(t, m, 2)) {
		t.Errorf("row 2 of %v: %v", m, err)
	}
	stack, err := c.Stack("model.layers.0.mlp.experts.up_proj.weight")
	if err != nil || len(stack) != 2 || !cmp.Equal([]float32{10, 11}, rowOf(t, stack[1], 2)) {
		t.Errorf("row 2 of expert 1 of %v: %v", stack, err)
	}
	if v, err := c.Vector("model.layers.0.input_layernorm.weight"); err != nil || !cmp.Equal([]float32{0, 1}, v) {
		t.Errorf("%v, %v", v, err)
	}
	_, err = c.Vector("model.norm.weight")
	wantError(t, err, path, `no tensor "output_norm.weight" ("model.norm.weight")`)
}

// A rawGGUF is a GGUF file made field by field, so that a test can break
// any of them.
type rawGGUF struct {
	magic          string
	version        uint32
	tensors, pairs uint64
	metadata       []byte
	infos          []byte
	data           int
}

// pair adds a key with a value of the given type.
func (r *rawGGUF) pair(key string, typ metaType, payload ...any) {
	r.pairs++
	r.metadata = raw(r.metadata, append([]any{key, uint32(typ)}, payload...)...)
}

// tensor adds the description of a tensor; dims has the fastest first.
func (r *rawGGUF) tensor(name string, dims []uint64, typ uint32, offset uint64) {
	r.tensors++
	r.infos = raw(r.infos, name, uint32(len(dims)), dims, typ, offset)
}

func (r *rawGGUF) bytes() []byte {
	file := raw([]byte(r.magic), r.version, r.tensors, r.pairs)
	file = append(append(file, r.metadata...), r.infos...)
	if r.data > 0 {
		file = append(file, make([]byte, -len(file)&31+r.data)...)
	}
	return file
}

// raw appends fixed-size values and, with their lengths, strings.
func raw(b []byte, values ...any) []byte {
	for _, v := range values {
		var err error
		if s, ok := v.(string); ok {
			b = appendText(b, s)
		} else if b, err = binary.Append(b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	return b
}

var malformedGGUF = []struct {
	name   string
	mutate func(*rawGGUF)
	want   string
}{
	{"magic", func(r *rawGGUF) { r.magic = "GGML" }, `starts with "GGML": expected "GGUF"`},
	{"version 1", func(r *rawGGUF) { r.version = 1 }, "GGUF version 1: expected 2 or 3"},
	{"version 4", func(r *rawGGUF) { r.version = 4 }, "GGUF version 4: expected 2 or 3"},
	{"big-endian", func(r *rawGGUF) { r.version = 3 << 24 }, "a big-endian GGUF file: expected little-endian"},

	{"2^63 pairs", func(r *rawGGUF) { r.pairs = 1 << 63 }, "9223372036854775808 metadata pairs cannot fit in the"},
	{"one pair too many", func(r *rawGGUF) { r.pairs = 3 }, "tensor 1: 562949953421312 bytes at byte"},
	{"2^63 tensors", func(r *rawGGUF) { r.tensors = 1 << 63 }, "9223372036854775808 tensors cannot fit in the"},
	{"2^64-1 tensors", func(r *rawGGUF) { r.tensors = 1<<64 - 1 }, "18446744073709551615 tensors cannot fit"},
	{"one tensor too many", func(r *rawGGUF) { r.tensors = 3; r.data = 200 }, "tensor 3: a name of 0 bytes"},

	{"empty key", func(r *rawGGUF) { r.pair("", metaUint8, uint8(1)) }, "metadata key 3: 0 bytes long: expected 1 to 65535"},
	{"long key", func(r *rawGGUF) { r.pair(strings.Repeat("k", 1<<16), metaUint8, uint8(1)) }, "metadata key 3: 65536 bytes long"},
	{"key length 2^63", func(r *rawGGUF) { r.pairs++; r.metadata = raw(r.metadata, uint64(1<<63), uint64(0)) }, "metadata key 3: 9223372036854775808 bytes at byte"},
	{"duplicate key", func(r *rawGGUF) { r.pair("k.int", metaUint8, uint8(1)) }, `metadata key "k.int": listed twice`},
	{"value type", func(r *rawGGUF) { r.pair("k", 13, uint64(0)) }, `metadata key "k": unknown value type 13`},
	{"element type", func(r *rawGGUF) { r.pair("k", metaArray, uint32(99), uint64(1), uint64(0)) }, `metadata key "k": unknown value type 99`},
	{"array of arrays", func(r *rawGGUF) {
		r.pair("k", metaArray, uint32(metaArray), uint64(1), uint32(metaUint8), uint64(1), uint8(0))
	}, `metadata key "k": an array of arrays`},
	{"deeply nested arrays", func(r *rawGGUF) {
		r.pair("k", metaArray, bytes.Repeat(raw(nil, uint32(metaArray), uint64(1)), 1<<16))
	}, `metadata key "k": an array of arrays`},
	{"2^63 strings", func(r *rawGGUF) { r.pair("k", metaArray, uint32(metaString), uint64(1<<63), "a") }, `metadata key "k": 9223372036854775808 strings cannot fit`},
	{"2^61 numbers", func(r *rawGGUF) { r.pair("k", metaArray, uint32(metaUint64), uint64(1<<61), uint64(1)) }, `metadata key "k": 2305843009213693952 array elements cannot fit`},
	{"numbers past the end", func(r *rawGGUF) {
		r.pair("k", metaArray, uint32(metaUint64), uint64(2), uint64(1))
		r.tensors, r.infos, r.data = 0, nil, 0
	}, `metadata key "k": 2 array elements cannot fit in the 8 bytes that follow`},
	{"string length 2^63", func(r *rawGGUF) { r.pair("k", metaString, uint64(1<<63), uint64(0)) }, `metadata key "k": 9223372036854775808 bytes at byte`},
	{"string length in an array", func(r *rawGGUF) {
		r.pair("k", metaArray, uint32(metaString), uint64(2), "a", uint64(1<<62), uint64(0))
	}, `metadata key "k": 4611686018427387904 bytes at byte`},
	{"boolean 2", func(r *rawGGUF) { r.pair("k", metaBool, uint8(2)) }, `metadata key "k": boolean 2: expected 0 or 1`},
	{"boolean 2 in an array", func(r *rawGGUF) { r.pair("k", metaArray, uint32(metaBool), uint64(2), uint8(1), uint8(2)) }, `boolean 2`},

	{"alignment 0", func(r *rawGGUF) { r.pair(alignmentKey, metaUint32, uint32(0)) }, "general.alignment 0: expected a power of two from 8 to 1048576"},
	{"alignment 48", func(r *rawGGUF) { r.pair(alignmentKey, metaUint32, uint32(48)) }, "general.alignment 48: expected a power of two"},
	{"alignment 2^30", func(r *rawGGUF) { r.pair(alignmentKey, metaUint32, uint32(1<<30)) }, "general.alignment 1073741824: expected a power of two"},
	{"alignment a string", func(r *rawGGUF) { r.pair(alignmentKey, metaString, "32") }, "general.alignment 32: expected a power of two"},

	{"empty name", func(r *rawGGUF) { r.tensor("", []uint64{1}, 0, 64) }, "tensor 3: a name of 0 bytes: expected 1 to"},
	{"long name", func(r *rawGGUF) { r.tensor(strings.Repeat("n", 1<<13), []uint64{1}, 0, 64) }, "tensor 3: a name of 8192 bytes: expected 1 to"},
	{"name length 2^63", func(r *rawGGUF) { r.tensors++; r.infos = raw(r.infos, uint64(1<<63), make([]byte, 64)) }, "tensor 3: 9223372036854775808 bytes at byte"},
	{"duplicate tensor", func(r *rawGGUF) { r.tensor("a", []uint64{1}, 0, 64) }, `tensor "a": listed twice`},
	{"no dimensions", func(r *rawGGUF) { r.tensor("c", nil, 0, 64) }, `tensor "c": 0 dimensions: expected 1 to 4`},
	{"five dimensions", func(r *rawGGUF) { r.tensor("c", []uint64{1, 1, 1, 1, 1}, 0, 64) }, `tensor "c": 5 dimensions: expected 1 to 4`},
	{"2^32-1 dimensions", func(r *rawGGUF) { r.tensors++; r.infos = raw(r.infos, "c", uint32(1<<32-1), make([]byte, 64)) }, `tensor "c": 4294967295 dimensions`},
	{"size 0", func(r *rawGGUF) { r.tensor("c", []uint64{4, 0}, 0, 64) }, `tensor "c": dimension 1: size 0: expected 1 to`},
	{"size 2^63", func(r *rawGGUF) { r.tensor("c", []uint64{1 << 63}, 0, 64) }, `tensor "c": dimension 0: size 9223372036854775808: expected 1 to`},
	{"product overflow", func(r *rawGGUF) { r.tensor("c", []uint64{2, halfInt}, 24, 64) }, fmt.Sprintf(`tensor "c": shape [%d 2] of I8: the size overflows`, halfInt)},
	{"byte size overflow", func(r *rawGGUF) { r.tensor("c", []uint64{halfInt}, 28, 64) }, `the size overflows`},
	{"type 99", func(r *rawGGUF) { r.tensor("c", []uint64{1}, 99, 64) }, `tensor "c": unknown tensor type 99`},
	{"type IQ2_XXS", func(r *rawGGUF) { r.tensor("c", []uint64{256}, 16, 64) }, `tensor "c": tensor type IQ2_XXS is not supported`},
	{"type Q8_K", func(r *rawGGUF) { r.tensor("c", []uint64{256}, 15, 64) }, `tensor "c": tensor type Q8_K is not supported`},
	{"type NVFP4", func(r *rawGGUF) { r.tensor("c", []uint64{64}, 40, 64) }, `tensor "c": tensor type NVFP4 is not supported`},
	{"withdrawn type", func(r *rawGGUF) { r.tensor("c", []uint64{32}, 4, 64) }, `tensor "c": tensor type Q4_2 is not supported`},
	{"part of a block", func(r *rawGGUF) { r.tensor("c", []uint64{48, 2}, 8, 64) }, `tensor "c": shape [2 48]: expected rows of a multiple of 32 values for Q8_0`},
	{"offset not aligned", func(r *rawGGUF) { r.tensor("c", []uint64{1}, 0, 72) }, `tensor "c": offset 72: expected a multiple of 32`},
	{"offset 2^63", func(r *rawGGUF) { r.tensor("c", []uint64{1}, 0, 1<<63) }, `tensor "c": offset 9223372036854775808`},
	{"offset past the end", func(r *rawGGUF) { r.tensor("c", []uint64{1}, 0, 1<<20) }, `tensor "c": 4 bytes at data byte 1048576 pass the end at 68`},
	{"data past the end", func(r *rawGGUF) { r.tensor("c", []uint64{2}, 0, 64) }, `tensor "c": 8 bytes at data byte 64 pass the end at 68: truncated file?`},
	{"overlap", func(r *rawGGUF) { r.tensor("c", []uint64{1}, 0, 32) }, `starts at data byte 32, inside tensor`},
	{"no data", func(r *rawGGUF) { r.data = 0 }, "the file ends before its tensor data"},
}

// wellFormed is the file that malformedGGUF breaks: two pairs, two tensors,
// 68 bytes of data.
func wellFormed() *rawGGUF {
	r := &rawGGUF{magic: "GGUF", version: 3, data: 68}
	r.pair("general.architecture", metaString, "llama")
	r.pair("k.int", metaInt32, int32(-7))
	r.tensor("a", []uint64{2, 2}, 0, 0)
	r.tensor("b", []uint64{2}, 0, 32)
	return r
}

func TestMalformedGGUF(t *testing.T) {
	for _, test := range malformedGGUF {
		t.Run(test.name, func(t *testing.T) {
			r := wellFormed()
			test.mutate(r)
			path := filepath.Join(writeFiles(t, map[string][]byte{"m.gguf": r.bytes()}), "m.gguf")
			_, err := Open(path)
			wantError(t, err, path, test.want)
		})
	}
}

// Every prefix of a file is an error that says so or, after the last tensor,
// whole.
func TestTruncatedGGUF(t *testing.T) {
	for _, version := range []uint32{2, 3} {
		r := wellFormed()
		r.version = version
		file := r.bytes()
		whole := len(file) - 68 + 40 // the last tensor ends at data byte 40
		for n := range len(file) + 1 {
			_, _, err := parseGGUF("m.gguf", file[:n])
			if (err == nil) != (n >= whole) {
				t.Errorf("version %d, %d of %d bytes: %v", version, n, len(file), err)
			}
			if err != nil && !strings.HasSuffix(err.Error(), "truncated file?") {
				t.Errorf("version %d, %d of %d bytes: %v: want the guess that the file is truncated", version, n, len(file), err)
			}
		}
	}
}

func TestGGUFAlignment(t *testing.T) {
	for _, align := range []int{8, 64, 4096} {
		r := &rawGGUF{magic: "GGUF", version: 3}
		r.pair(alignmentKey, metaUint32, uint32(align))
		r.tensor("a", []uint64{1}, 0, uint64(align))
		file := r.bytes()
		start := (len(file) + align - 1) / align * align
		file = append(file, make([]byte, start+align-len(file))...)
		file = append(file, f32s(42)...)
		_, tensors, err := parseGGUF("m.gguf", file)
		if err != nil || !bytes.Equal(tensors[0].data, f32s(42)) {
			t.Errorf("alignment %d: %v, %v", align, tensors, err)
		}
	}
}

// splitOf makes part no (from 0) of a split model with a tensor of its own.
func splitOf(t *testing.T, no, count, tensors int) []byte {
	name := fmt.Sprintf("t%d", no)
	pairs := []Pair{{"split.no", uint16(no)}, {"split.count", uint16(count)}, {"split.tensors.count", int32(tensors)}}
	if no == 0 {
		pairs = append(pairs, Pair{"general.architecture", "llama"})
	}
	return ggufOf(t, pairs, map[string][]int{name: {no + 1}}, name)
}

func TestSplitGGUF(t *testing.T) {
	part := func(no, count, tensors int) []byte { return splitOf(t, no, count, tensors) }
	dir := writeFiles(t, map[string][]byte{
		"m-00001-of-00003.gguf": part(0, 3, 3), "m-00002-of-00003.gguf": part(1, 3, 3), "m-00003-of-00003.gguf": part(2, 3, 3),
	})
	for _, path := range []string{"", "m-00001-of-00003.gguf", "m-00003-of-00003.gguf"} {
		c := open(t, filepath.Join(dir, path))
		if diff := cmp.Diff([]string{"t0", "t1", "t2"}, c.Names()); diff != "" || c.Metadata().Arch() != "llama" || len(c.Files()) != 3 {
			t.Error(diff, c.Metadata().Arch(), c.Files())
		}
		if v, err := c.Vector("t2"); err != nil || !cmp.Equal([]float32{0, 1, 2}, v) {
			t.Error(v, err)
		}
	}
	for _, test := range []struct {
		name  string
		files map[string][]byte
		want  string
	}{
		{"missing part", map[string][]byte{"m-00001-of-00002.gguf": part(0, 2, 2)}, "part 2 of 2 is missing: "},
		{"parts swapped", map[string][]byte{"m-00001-of-00002.gguf": part(1, 2, 2), "m-00002-of-00002.gguf": part(0, 2, 2)}, "split.no 1 of split.count 2: expected a file name -00002-of-00002.gguf"},
		{"wrong count", map[string][]byte{"m-00001-of-00002.gguf": part(0, 3, 3), "m-00002-of-00002.gguf": part(1, 3, 3)}, "expected a file name -00001-of-00003.gguf"},
		{"part under another name", map[string][]byte{"m.gguf": part(0, 2, 2)}, "split.no 0 of split.count 2: expected a file name -00001-of-00002.gguf"},
		{"wrong number of tensors", map[string][]byte{"m-00001-of-00002.gguf": part(0, 2, 5), "m-00002-of-00002.gguf": part(1, 2, 5)}, "split.tensors.count 5, but all parts together hold 2 tensors"},
		{"tensor in two parts", map[string][]byte{
			"m-00001-of-00002.gguf": part(0, 2, 2),
			"m-00002-of-00002.gguf": ggufOf(t, []Pair{{"split.no", uint16(1)}, {"split.count", uint16(2)}}, map[string][]int{"t0": {1}}, "t0"),
		}, `tensor "t0": already in`},
		{"part malformed", map[string][]byte{"m-00001-of-00002.gguf": part(0, 2, 2), "m-00002-of-00002.gguf": []byte("GGUF")}, "m-00002-of-00002.gguf: 4 bytes at byte 4"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := writeFiles(t, test.files)
			_, err := Open(dir)
			wantError(t, err, dir, test.want)
		})
	}
}

func TestSplitPart(t *testing.T) {
	for name, want := range map[string]string{
		"m-00002-of-00003.gguf":        "m 2 3 true",
		"a-b-Q4_K-00001-of-99999.gguf": "a-b-Q4_K 1 99999 true",
		"m-00000-of-00003.gguf":        " 0 0 false",
		"m-00004-of-00003.gguf":        " 0 0 false",
		"m-0001-of-0003.gguf":          " 0 0 false",
		"m-+0001-of-00003.gguf":        " 0 0 false",
		"m-00001-of-00003.safetensors": " 0 0 false",
		"-of-.gguf":                    " 0 0 false",
	} {
		set, part, parts, ok := splitPart(name)
		if got := fmt.Sprint(set, " ", part, " ", parts, " ", ok); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
