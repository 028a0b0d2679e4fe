package checkpoint

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/tensor"
)

// readAll reads every tensor in every way that its shape allows. Whatever
// the file says, nothing may panic, and what is read lies within the file.
func readAll(t *testing.T, c *Checkpoint, file []byte) {
	for _, e := range c.byName {
		size, err := storedBytes(e.DType, e.Shape)
		if err != nil || size != len(e.data) || len(e.data) > len(file) {
			t.Fatalf("%s: %v %v with %d bytes, expected %d: %v", e.Stored, e.DType, e.Shape, len(e.data), size, err)
		}
		var all []*tensor.Matrix
		if m, err := c.Matrix(e.Name); err == nil {
			all = append(all, m)
		}
		if stack, err := c.Stack(e.Name); err == nil {
			all = append(all, stack...)
		}
		for _, m := range all {
			row := make([]float32, m.Cols)
			m.Row(row, 0)
			m.Row(row, m.Rows-1)
		}
		if _, err := c.Vector(e.Name); err == nil && len(e.Shape) != 1 {
			t.Fatalf("%s: a vector of shape %v", e.Stored, e.Shape)
		}
	}
}

func checkLine(t *testing.T, err error) {
	if text := err.Error(); strings.Contains(text, "\n") || len(text) > 500 || !strings.HasPrefix(text, "fuzz: ") {
		t.Fatalf("expected one short line that names the file: %.600q", text)
	}
}

func FuzzSafetensors(f *testing.F) {
	f.Add(safetensorsOf(
		rawTensor{"a.weight", "F8_E4M3", []int{2, 3}, make([]byte, 6)},
		rawTensor{"a.weight_scale_inv", "F32", []int{1, 1}, f32s(1)},
		rawTensor{"b.weight", "I8", []int{1, 16}, make([]byte, 16)},
		rawTensor{"b.scale", "F8_E8M0", []int{1, 1}, []byte{127}},
		rawTensor{"language_model.c", "BF16", []int{2, 1, 2}, make([]byte, 8)},
		rawTensor{"s", "F4", []int{2}, []byte{1}},
	))
	f.Add(safetensorsFile(`{"__metadata__":{"format":"pt"},"\u00e9":{"dtype":"BOOL","shape":[],"data_offsets":[0,1]}}  `, 1))
	for _, m := range malformedSafetensors {
		if len(m.header) < 1000 {
			f.Add(safetensorsFile(m.header, m.data))
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		tensors, err := parseSafetensors("fuzz", file)
		if err != nil {
			checkLine(t, err)
			return
		}
		c := &Checkpoint{format: Safetensors, byName: map[string]*entry{}, block: fp8Block}
		for _, e := range tensors {
			if err := c.add(canonicalName(e.Stored), e); err != nil {
				return
			}
		}
		readAll(t, c, file)
	})
}

func FuzzGGUF(f *testing.F) {
	f.Add(ggufOf(f, every, map[string][]int{"token_embd.weight": {3, 2}, "blk.0.attn_norm.weight": {2}}, "token_embd.weight", "blk.0.attn_norm.weight"))
	for _, m := range malformedGGUF {
		r := wellFormed()
		m.mutate(r)
		if file := r.bytes(); len(file) < 1000 {
			f.Add(file)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		meta, tensors, err := parseGGUF("fuzz", file)
		if err != nil {
			checkLine(t, err)
			return
		}
		c := &Checkpoint{format: GGUF, meta: meta, byName: map[string]*entry{}}
		var pairs []Pair
		for _, key := range meta.Keys() {
			meta.Int(key)
			meta.Float(key)
			meta.Ints(key)
			meta.Floats(key)
			if key != alignmentKey {
				pairs = append(pairs, Pair{key, meta.Get(key)})
			}
		}
		var writers []TensorWriter
		for _, e := range tensors {
			if len(e.Stored) > maxGGMLName {
				return
			}
			writers = append(writers, TensorWriter{e.Stored, e.DType, e.Shape, writes(e.data)})
			if err := c.add(hfName(meta.Arch(), e.Stored), e); err != nil {
				return
			}
		}
		readAll(t, c, file)

		// What was read can be written, and then reads the same.
		var again bytes.Buffer
		if err := WriteGGUF(&again, pairs, writers); err != nil {
			t.Fatal(err)
		}
		meta2, tensors2, err := parseGGUF("fuzz", again.Bytes())
		if err != nil || len(tensors2) != len(tensors) {
			t.Fatalf("%d tensors, expected %d: %v", len(tensors2), len(tensors), err)
		}
		for _, p := range pairs {
			if got := meta2.Get(p.Key); !cmp.Equal(p.Value, got, equalNaN) {
				t.Fatalf("%q: %v, expected %v", p.Key, got, p.Value)
			}
		}
		for i, e := range tensors2 {
			if e.Stored != tensors[i].Stored || !bytes.Equal(e.data, tensors[i].data) {
				t.Fatalf("tensor %q differs", e.Stored)
			}
		}
	})
}

// equalNaN makes a NaN equal to itself, as its bits are.
var equalNaN = cmp.Options{
	cmp.Comparer(func(a, b float32) bool { return a == b || a != a && b != b }),
	cmp.Comparer(func(a, b float64) bool { return a == b || a != a && b != b }),
}
