package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/tensor"
)

// every has a pair of each type that metadata can have.
var every = []Pair{
	{"general.architecture", "qwen3"},
	{"u8", uint8(200)},
	{"i8", int8(-5)},
	{"u16", uint16(60000)},
	{"i16", int16(-300)},
	{"u32", uint32(4000000000)},
	{"i32", int32(-70000)},
	{"u64", uint64(1 << 40)},
	{"i64", int64(-1 << 40)},
	{"u64 max", uint64(math.MaxUint64)},
	{"f32", float32(0.5)},
	{"f64", 0.1},
	{"yes", true},
	{"no", false},
	{"empty", ""},
	{"text", "Ġ\x00\n"},
	{"[]u8", []uint8{0, 255}},
	{"[]i8", []int8{-128, 127}},
	{"[]u16", []uint16{65535}},
	{"[]i16", []int16{-1}},
	{"[]u32", []uint32{math.MaxInt32}},
	{"[]u32 large", []uint32{1, math.MaxInt32 + 1}},
	{"[]i32", []int32{1, -1}},
	{"[]u64", []uint64{7}},
	{"[]u64 large", []uint64{math.MaxUint64}},
	{"[]i64", []int64{math.MinInt32}},
	{"[]i64 large", []int64{math.MinInt32 - 1}},
	{"[]i64 wide", []int64{1<<32 + 5}},
	{"[]f32", []float32{1, -2}},
	{"[]f64", []float64{0.25}},
	{"[]bool", []bool{true, false}},
	{"[]text", []string{"a", "", "ü"}},
	{"[]empty", []string{}},
	{"[]none", []int32{}},
}

func metadataOf(t *testing.T, pairs []Pair) *Metadata {
	t.Helper()
	meta, _, err := parseGGUF("m.gguf", ggufOf(t, pairs, nil))
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

func TestMetadataGet(t *testing.T) {
	meta := metadataOf(t, every)
	var got []Pair
	for _, key := range meta.Keys() {
		got = append(got, Pair{key, meta.Get(key)})
	}
	if diff := cmp.Diff(every, got); diff != "" {
		t.Error(diff)
	}
	if meta.Get("absent") != nil || meta.Arch() != "qwen3" {
		t.Error(meta.Get("absent"), meta.Arch())
	}
}

// Each getter answers for exactly these keys.
func TestMetadataGetters(t *testing.T) {
	meta := metadataOf(t, every)
	getters := []struct {
		name string
		get  func(string) (any, bool)
		want map[string]any
	}{
		{"String", wrap(meta.String), map[string]any{"general.architecture": "qwen3", "empty": "", "text": "Ġ\x00\n"}},
		{"Bool", wrap(meta.Bool), map[string]any{"yes": true, "no": false}},
		{"Int", wrap(meta.Int), map[string]any{
			"u8": int64(200), "i8": int64(-5), "u16": int64(60000), "i16": int64(-300),
			"u32": int64(4000000000), "i32": int64(-70000), "u64": int64(1 << 40), "i64": int64(-1 << 40),
		}},
		{"Float", wrap(meta.Float), map[string]any{"f32": 0.5, "f64": 0.1}},
		{"Strings", wrap(meta.Strings), map[string]any{"[]text": []string{"a", "", "ü"}, "[]empty": []string{}}},
		{"Floats", wrap(meta.Floats), map[string]any{"[]f32": []float32{1, -2}, "[]f64": []float32{0.25}}},
		{"Ints", wrap(meta.Ints), map[string]any{
			"[]u8": []int32{0, 255}, "[]i8": []int32{-128, 127}, "[]u16": []int32{65535}, "[]i16": []int32{-1},
			"[]u32": []int32{math.MaxInt32}, "[]i32": []int32{1, -1}, "[]u64": []int32{7}, "[]i64": []int32{math.MinInt32},
			"[]bool": []int32{1, 0}, "[]none": []int32{},
		}},
	}
	for _, g := range getters {
		got := map[string]any{}
		for _, key := range append(meta.Keys(), "absent") {
			if v, ok := g.get(key); ok {
				got[key] = v
			}
		}
		if diff := cmp.Diff(g.want, got); diff != "" {
			t.Errorf("%s: %s", g.name, diff)
		}
	}
}

func wrap[T any](get func(string) (T, bool)) func(string) (any, bool) {
	return func(key string) (any, bool) { return get(key) }
}

func TestWriteGGUFErrors(t *testing.T) {
	one := func(change func(*TensorWriter)) []TensorWriter {
		w := TensorWriter{"a", tensor.F32, []int{2}, writes(f32s(1, 2))}
		change(&w)
		return []TensorWriter{w}
	}
	failure := errors.New("disk full")
	for _, test := range []struct {
		name    string
		pairs   []Pair
		tensors []TensorWriter
		want    string
	}{
		{"int", []Pair{{"k", 1}}, nil, `metadata key "k": type int: expected a sized number`},
		{"nil", []Pair{{"k", nil}}, nil, `type <nil>: expected`},
		{"nested", []Pair{{"k", [][]int32{}}}, nil, `type [][]int32: expected`},
		{"empty key", []Pair{{"", true}}, nil, "expected a new key of 1 to 65535 bytes"},
		{"duplicate key", []Pair{{"k", true}, {"k", true}}, nil, `metadata key "k": expected a new key`},
		{"alignment", []Pair{{alignmentKey, uint32(64)}}, nil, "expected uint32(32)"},
		{"no name", nil, one(func(w *TensorWriter) { w.Name = "" }), "expected a new name of 1 to 63 bytes"},
		{"long name", nil, one(func(w *TensorWriter) { w.Name = strings.Repeat("n", 64) }), "expected a new name"},
		{"duplicate name", nil, append(one(func(*TensorWriter) {}), one(func(*TensorWriter) {})...), `tensor "a": expected a new name`},
		{"dtype", nil, one(func(w *TensorWriter) { w.DType = tensor.F8E4M3 }), `tensor "a": GGUF has no tensor type for F8_E4M3`},
		{"invalid", nil, one(func(w *TensorWriter) { w.DType = tensor.Invalid }), "GGUF has no tensor type for invalid"},
		{"scalar", nil, one(func(w *TensorWriter) { w.Shape = nil }), "shape []: expected 1 to 4 dimensions"},
		{"rank", nil, one(func(w *TensorWriter) { w.Shape = []int{1, 1, 1, 1, 2} }), "expected 1 to 4 dimensions"},
		{"size 0", nil, one(func(w *TensorWriter) { w.Shape = []int{0} }), "shape [0]: expected positive sizes"},
		{"block", nil, one(func(w *TensorWriter) { w.DType = tensor.Q8_0 }), "expected rows of a multiple of 32"},
		{"short data", nil, one(func(w *TensorWriter) { w.Write = writes(f32s(1)) }), `tensor "a": wrote 4 bytes for F32 [2], expected 8`},
		{"failing data", nil, one(func(w *TensorWriter) { w.Write = func(io.Writer) error { return failure } }), `tensor "a": disk full`},
	} {
		t.Run(test.name, func(t *testing.T) {
			wantError(t, WriteGGUF(io.Discard, test.pairs, test.tensors), test.want)
		})
	}
	if err := WriteGGUF(failingWriter{failure}, nil, one(func(*TensorWriter) {})); !errors.Is(err, failure) {
		t.Errorf("%v, want the writer's error", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// Every dtype that GGUF has comes back as it was written.
func TestWriteGGUFTypes(t *testing.T) {
	var tensors []TensorWriter
	var want [][]byte
	for _, typ := range ggmlTypes {
		if typ.dtype == tensor.Invalid {
			continue
		}
		data := bytes.Repeat([]byte{byte(len(want) + 1)}, 3*typ.dtype.RowBytes(256))
		tensors = append(tensors, TensorWriter{fmt.Sprint("t", len(want)), typ.dtype, []int{3, 256}, writes(data)})
		want = append(want, data)
	}
	var out bytes.Buffer
	if err := WriteGGUF(&out, []Pair{{alignmentKey, uint32(32)}}, tensors); err != nil {
		t.Fatal(err)
	}
	if out.Len()%ggufAlign != 0 {
		t.Errorf("%d bytes, expected a multiple of %d", out.Len(), ggufAlign)
	}
	_, got, err := parseGGUF("m.gguf", out.Bytes())
	if err != nil || len(got) != len(want) {
		t.Fatal(len(got), err)
	}
	for i, e := range got {
		if e.DType != tensors[i].DType || !bytes.Equal(e.data, want[i]) || !cmp.Equal(e.Shape, []int{3, 256}) {
			t.Errorf("%v: read %v %v", tensors[i].DType, e.DType, e.Shape)
		}
	}
}
