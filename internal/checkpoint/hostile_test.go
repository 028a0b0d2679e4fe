package checkpoint

import (
	"bytes"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Hostile files of about 1 MB, each made to cost as much as it can: opening
// them, whatever comes of it, may take 64 MiB of heap in all.
func TestHostileFilesTakeLittleMemory(t *testing.T) {
	const size, limit = 1 << 20, 64 << 20
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	// numbered lists copies of s, each with its own number for the #.
	numbered := func(s string) string {
		var list []string
		for i := range size / (len(s) + 4) {
			list = append(list, strings.ReplaceAll(s, "#", fmt.Sprintf("%x", i)))
		}
		return strings.Join(list, ",")
	}
	gguf := func(build func(*rawGGUF)) []byte {
		r := &rawGGUF{magic: "GGUF", version: 3}
		build(r)
		return r.bytes()
	}
	tensors := numbered(`"#":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`)
	for _, test := range []struct {
		name string
		file []byte
	}{
		{"model.safetensors", safetensorsFile(`{`+tensors+`}`, 0)},
		{"model.safetensors", safetensorsFile(`{`+tensors+`,"z":1}`, 0)},
		{"model.safetensors", safetensorsFile(fill(`{"a":`), 0)},
		{"model.safetensors", safetensorsFile(`{"a":`+fill(`[`), 0)},
		{"model.safetensors", safetensorsFile(`{"a":{"shape":[`+fill(`1,`), 0)},
		{"model.safetensors", safetensorsFile(`{"a":{"dtype":"`+fill(`x`)+`"`, 0)},
		{"model.safetensors", safetensorsFile(`{"a":{"`+fill(`\u0061`)+`"`, 0)},
		{"model.safetensors", safetensorsFile(`{"__metadata__":{`+numbered(`"#":""`)+`}`, 0)},
		{"model.safetensors", safetensorsFile(`{`+fill(` `), 0)},
		{indexName, []byte(`{"weight_map":{` + numbered(`"#":"x.safetensors"`) + `}}`)},
		{indexName, []byte(`{"weight_map":{` + numbered(`"#":"#.safetensors"`) + `}}`)},
		{indexName, []byte(`{"x":` + fill(`[`))},
		{indexName, []byte(`{"x":` + fill(`{"":`))},
		{"m.gguf", gguf(func(r *rawGGUF) { r.pairs = size / minPair; r.metadata = make([]byte, size) })},
		{"m.gguf", gguf(func(r *rawGGUF) { r.tensors = 1 << 63; r.metadata = make([]byte, size) })},
		{"m.gguf", gguf(func(r *rawGGUF) {
			for r.pairs < size/minPair {
				r.pair(string([]byte{byte(r.pairs), byte(r.pairs >> 8), byte(r.pairs >> 16)}), metaUint8, uint8(1))
			}
			r.tensors = 1 << 62
		})},
		{"m.gguf", gguf(func(r *rawGGUF) {
			for r.tensors < size/ggufMinInfo {
				r.tensor(string([]byte{byte(r.tensors), byte(r.tensors >> 8)}), []uint64{1}, 24, 0)
			}
		})},
		{"m.gguf", gguf(func(r *rawGGUF) {
			r.pair("k", metaArray, uint32(metaString), uint64(size/8), make([]uint64, size/8))
			r.tensors = 1 << 62
		})},
		{"m.gguf", gguf(func(r *rawGGUF) {
			r.pair("k", metaArray, bytes.Repeat(raw(nil, uint32(metaArray), uint64(1)), size/12))
		})},
	} {
		path := filepath.Join(writeFiles(t, map[string][]byte{test.name: test.file}), test.name)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, err := Open(path)
		runtime.ReadMemStats(&after)
		start := test.file[:min(48, len(test.file))]
		// What was allocated bounds what the heap held at any time.
		if took := after.TotalAlloc - before.TotalAlloc; took > limit {
			t.Errorf("%s %q…: %d MiB allocated, expected at most %d", test.name, start, took>>20, limit>>20)
		}
		if err == nil {
			c.Close()
			continue
		}
		if text := err.Error(); !strings.HasPrefix(text, filepath.Dir(path)) || len(text) > 500 {
			t.Errorf("%s %q…: %.500s", test.name, start, text)
		}
	}
}

// The longest published headers list some 10⁵ tensors.
func BenchmarkOpenSafetensors(b *testing.B) {
	var tensors []rawTensor
	for i := range 100_000 {
		tensors = append(tensors, rawTensor{"model.layers.10.mlp.experts." + strings.Repeat("1", i%7+1) + string(rune('a'+i%26)) + string(rune(0x4e00+i/26)) + ".down_proj.weight", "F8_E4M3", []int{1, 1}, []byte{0}})
	}
	path := writeFiles(b, map[string][]byte{"model.safetensors": safetensorsOf(tensors...)})
	for b.Loop() {
		c, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}

// A vocabulary of 150k tokens with 280k merges.
func BenchmarkOpenGGUF(b *testing.B) {
	words := func(n int) (list []string) {
		for i := range n {
			list = append(list, strings.Repeat("x", i%13+1))
		}
		return list
	}
	pairs := []Pair{{"tokenizer.ggml.tokens", words(150_000)}, {"tokenizer.ggml.token_type", make([]int32, 150_000)}, {"tokenizer.ggml.merges", words(280_000)}}
	path := filepath.Join(writeFiles(b, map[string][]byte{"m.gguf": ggufOf(b, pairs, nil)}), "m.gguf")
	for b.Loop() {
		c, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		for _, p := range pairs {
			c.Metadata().Get(p.Key)
		}
		c.Close()
	}
}
