package main

import (
	"math"
	"os"
	"path/filepath"

	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// tiny writes a model of a few layers and returns its directory: what it costs
// to serve shows, what it costs to compute hardly does.
func (s *soak) tiny(context int) (string, error) {
	spec := testmodel.Family("llama")
	spec.Context = context
	return s.write("tiny", testmodel.New(spec))
}

// small writes a model whose steps take milliseconds.
func (s *soak) small() (string, error) {
	spec := testmodel.Family("qwen3")
	spec.Hidden, spec.Intermediate, spec.Layers, spec.HeadDim = 512, 2048, 8, 64
	spec.Context = 40000
	return s.gguf("small.gguf", spec)
}

// wide writes a model in which a long past costs little beside the weights, as
// in models of billions: what it costs others to compute a long prompt is then
// what the scheduler makes of it.
func (s *soak) wide() (string, error) {
	spec := testmodel.Family("qwen3")
	spec.Hidden, spec.Intermediate, spec.Layers, spec.HeadDim = 1024, 8192, 2, 64
	spec.Context = 1 << 17
	return s.gguf("wide.gguf", spec)
}

func (s *soak) gguf(name string, spec testmodel.Spec) (string, error) {
	spec.DType = tensor.Q8_0
	path := filepath.Join(s.dir, name)
	return path, testmodel.New(spec).WriteGGUF(path)
}

// poison is a token whose embedding is not a number in the model of poisoned. It
// is a byte that numbers has not.
const poison = 7

func (s *soak) poisoned() (string, error) {
	m := testmodel.New(testmodel.Family("llama"))
	embedding := m.Tensor("model.embed_tokens.weight")
	embedding.Values[poison*embedding.Shape[1]] = float32(math.NaN())
	return s.write("poisoned", m)
}

func (s *soak) write(name string, m *testmodel.Model) (string, error) {
	dir := filepath.Join(s.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return dir, m.WriteSafetensors(dir)
}
