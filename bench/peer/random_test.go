package main

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/foretoken/foretoken/internal/bench"
	"github.com/foretoken/foretoken/internal/engine"
)

// Numbers of parameters as published.
func TestShapes(t *testing.T) {
	for name, want := range map[string]int{
		"qwen3-0.6b": 596049920, "qwen3-4b": 4022468096, "llama-3.2-1b": 1235814400,
	} {
		s, err := findShape(name)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, tensor := range s.tensors() {
			n := 1
			for _, size := range tensor.Shape {
				n *= size
			}
			got += n
		}
		if got != want {
			t.Errorf("%s: %d parameters, want %d", name, got, want)
		}
	}
	if _, err := findShape("qwen3"); err == nil || err.Error() != `shape "qwen3": expected one of llama-3.2-1b, qwen3-0.6b, qwen3-4b` {
		t.Errorf("error %v", err)
	}
}

// What is written is a model with the weights that the shape asks for, the
// same each time.
func TestWriteRandom(t *testing.T) {
	for _, name := range []string{"qwen3-0.6b", "llama-3.2-1b"} {
		t.Run(name, func(t *testing.T) {
			s := shapes[name]
			s.hidden, s.layers, s.heads, s.kvHeads, s.width, s.ffn, s.vocab = 64, 2, 4, 2, 16, 96, 500
			var files [2][]byte
			for i := range files {
				path := filepath.Join(t.TempDir(), "model.gguf")
				if err := writeRandom(path, name, s); err != nil {
					t.Fatal(err)
				}
				files[i], _ = os.ReadFile(path)
				if i == 0 {
					load(t, path, s)
				}
			}
			if !bytes.Equal(files[0], files[1]) {
				t.Error("two models of a shape differ")
			}
		})
	}
}

func load(t *testing.T, path string, s shape) {
	e, err := engine.Open(path, engine.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	// It runs although it has no tokenizer.
	_, err = bench.Run(context.Background(), e, bench.Options{Prefill: []int{4}, Contexts: []int{2}, Verify: []int{1}, Runs: 1})
	if err != nil {
		t.Error(err)
	}
	got := e.Config()
	if got.Vocab != s.vocab || got.Layers != s.layers || got.Context != s.context || got.HeadDim != s.width ||
		got.Rope.Theta != float64(s.theta) || !got.TieEmbeddings {
		t.Errorf("config %+v of shape %+v", got, s)
	}
	// Outputs of a projection are as large as its inputs.
	w, err := e.Checkpoint().Matrix("model.layers.1.mlp.down_proj.weight")
	if err != nil {
		t.Fatal(err)
	}
	row := make([]float32, w.Cols)
	var sum float64
	for i := range w.Rows {
		w.Row(row, i)
		for _, v := range row {
			sum += float64(v) * float64(v)
		}
	}
	if got, want := math.Sqrt(sum/float64(w.Rows)), 1.0; math.Abs(got-want) > 0.05 {
		t.Errorf("rows have length %.3f, want %.3f", got, want)
	}
}
