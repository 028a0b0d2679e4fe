package moe

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
)

const hidden = 64

// A layerFile is the mixture of a layer in a file, and its values.
type layerFile struct {
	Config
	tensors []testmodel.Tensor
	gate    []float32
	bias    []float32
	table   []int32
	experts []network
	shared  *network
}

// newLayer draws the values of a mixture.
func newLayer(c Config) *layerFile {
	f, random := &layerFile{Config: c}, rand.New(rand.NewPCG(3, 4))
	draw := func(name string, deviation float64, shape ...int) []float32 {
		n := 1
		for _, size := range shape {
			n *= size
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = tensor.BF16ToF32(tensor.F32ToBF16(float32(deviation * random.NormFloat64())))
		}
		f.tensors = append(f.tensors, testmodel.Tensor{Name: "mlp." + name, Shape: shape, Values: values})
		return values
	}
	f.gate = draw("gate.weight", 0.2, c.Experts, hidden)
	if c.Bias && !c.Hash {
		f.bias = draw("gate.e_score_correction_bias", 0.3, c.Experts)
	}
	if c.Hash {
		draw("gate.tid2eid", 0, c.Vocab, c.Active)
		var table []int32
		for range c.Vocab {
			for _, e := range random.Perm(c.Experts)[:c.Active] {
				table = append(table, int32(e))
			}
		}
		f.setTable(table)
	}
	drawNetwork := func(prefix string, inner int) network {
		return network{
			draw(prefix+"gate_proj.weight", 0.3, inner, hidden),
			draw(prefix+"up_proj.weight", 0.3, inner, hidden),
			draw(prefix+"down_proj.weight", 0.2, hidden, inner),
		}
	}
	for e := range c.Experts {
		f.experts = append(f.experts, drawNetwork(fmt.Sprintf("experts.%d.", e), c.Inner))
	}
	if c.Shared > 0 {
		shared := drawNetwork("shared_experts.", c.Shared)
		f.shared = &shared
	}
	return f
}

// setTable gives tokens their experts.
func (f *layerFile) setTable(table []int32) {
	f.table = table
	for _, t := range f.tensors {
		if t.Name == "mlp.gate.tid2eid" {
			for i, e := range table {
				t.Values[i] = float32(e)
			}
		}
	}
}

// A subject is a layer that runs.
type subject struct {
	*MoE
	st     nn.State
	loader *nn.Loader
}

// open writes f and loads it, with room for some bytes of packed experts.
func (f *layerFile) open(t *testing.T, packer kernel.Packer, workers int, limit int64) *subject {
	t.Helper()
	s, err := f.load(t, packer, workers, limit)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (f *layerFile) load(t *testing.T, packer kernel.Packer, workers int, limit int64) (*subject, error) {
	t.Helper()
	m := testmodel.New(testmodel.Family("llama"))
	m.Tensors = f.tensors
	dir := t.TempDir()
	if err := m.WriteSafetensors(dir); err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	packer.Pool, packer.Arena = kernel.NewPool(workers), new(kernel.Arena)
	t.Cleanup(packer.Pool.Close)
	t.Cleanup(func() { packer.Arena.Free() })
	loader := nn.NewLoader(c, nn.Packing{Packer: &packer}, 1e-6)
	memory := NewMemory(&packer, limit)
	s := &subject{MoE: Load(loader.Sub("mlp."), &f.Config, hidden, memory), st: nn.State{Pool: packer.Pool}, loader: loader}
	if err := loader.Err(); err != nil {
		return nil, err
	}
	return s, memory.Reserve()
}

// forward runs the layer on rows x [len(tokens), hidden].
func (s *subject) forward(x []float32, tokens []int32) []float32 {
	mark := s.st.Mark()
	defer s.st.Release(mark)
	return append([]float32(nil), s.Forward(&nn.Step{Tokens: tokens}, &s.st, x)...)
}

// input draws rows and their tokens.
func input(rows, vocab int) (x []float32, tokens []int32) {
	random := rand.New(rand.NewPCG(5, 6))
	for range rows * hidden {
		x = append(x, float32(random.NormFloat64()))
	}
	for range rows {
		tokens = append(tokens, random.Int32N(int32(max(vocab, 1))))
	}
	return x, tokens
}
