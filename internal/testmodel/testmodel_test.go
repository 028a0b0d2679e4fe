package testmodel

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/tensor"
)

// Both parts of a merge and their result are tokens, and no two tokens have
// the same text: otherwise tokenizers refuse the files.
func TestVocabulary(t *testing.T) {
	texts := vocabulary()
	if len(texts) != Tokens || Tokens > Vocab {
		t.Fatalf("%d tokens, want %d, at most %d", len(texts), Tokens, Vocab)
	}
	for i, merge := range merges {
		left, right, ok := strings.Cut(merge, " ")
		known := texts[:256+i] // what earlier merges made
		if !ok || !slices.Contains(known, left) || !slices.Contains(known, right) {
			t.Errorf("merge %d, %q: expected two earlier tokens", i, merge)
		}
	}
	if sorted := slices.Sorted(slices.Values(texts)); len(slices.Compact(sorted)) != len(texts) {
		t.Error("two tokens have the same text")
	}
	for id, want := range map[int]string{'A': "A", ' ': "Ġ", '\n': "Ċ", 0xff: "ÿ", BOS: "<bos>", End: "<|im_end|>", CallEnd: "</tool_call>"} {
		if texts[id] != want {
			t.Errorf("token %d is %q, want %q", id, texts[id], want)
		}
	}
}

func TestSameSpecSameBytes(t *testing.T) {
	for _, family := range Families() {
		spec := Family(family)
		spec.DType, spec.Parts = tensor.BF16, 2
		first, second := t.TempDir(), t.TempDir()
		for _, dir := range []string{first, second} {
			if err := Write(dir, spec); err != nil {
				t.Fatal(err)
			}
		}
		entries, err := os.ReadDir(first)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			a, err1 := os.ReadFile(filepath.Join(first, e.Name()))
			b, err2 := os.ReadFile(filepath.Join(second, e.Name()))
			if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
				t.Errorf("%s: %s differs: %v, %v", family, e.Name(), err1, err2)
			}
		}
	}
}

// The values of a file are those of the model in memory, in whatever type
// they are stored.
func TestStoredValues(t *testing.T) {
	const name = "model.layers.1.mlp.down_proj.weight"
	for d, tolerance := range map[tensor.DType]float64{tensor.F32: 0, tensor.BF16: 0, tensor.F16: 0, tensor.Q8_0: 0.01, tensor.Q4_0: 0.2} {
		spec := Family("qwen3")
		spec.DType = d
		paths := []string{GGUF(t, spec)}
		if d.BlockLen() == 1 {
			paths = append(paths, Safetensors(t, spec))
		}
		spec.Parts = 3
		paths = append(paths, GGUF(t, spec))
		for _, path := range paths {
			c, err := checkpoint.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			m, err := c.Matrix(name)
			if err != nil {
				t.Fatal(err)
			}
			if m.DType != d {
				t.Errorf("%s: %v, want %v", path, m.DType, d)
			}
			want, row := New(spec).Tensor(name), make([]float32, m.Cols)
			for r := range m.Rows {
				m.Row(row, r)
				for i, v := range row {
					if diff := float64(v - want.Values[r*m.Cols+i]); diff > tolerance || diff < -tolerance {
						t.Fatalf("%s: row %d, column %d is %v, want %v", path, r, i, v, want.Values[r*m.Cols+i])
					}
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestWhatGGUFCannotSay(t *testing.T) {
	window, interval := Family("mistral"), Family("smollm3")
	window.Window, interval.Every = 16, 2
	for _, spec := range []Spec{window, interval} {
		if err := Write(t.TempDir(), spec); err == nil {
			t.Errorf("%s: no error", spec.Family)
		}
	}
	quantised := Family("llama")
	quantised.DType = tensor.Q8_0
	if err := New(quantised).WriteSafetensors(t.TempDir()); err == nil {
		t.Error("safetensors of Q8_0: no error")
	}
}
