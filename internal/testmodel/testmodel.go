// Package testmodel makes tiny complete models for tests: weights, tokenizer,
// chat template and configuration, as a Hugging Face directory and as a GGUF
// file that say the same. Everything follows from the Spec: the same Spec
// gives the same bytes on every machine.
package testmodel

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/tensor"
)

// A Spec says what a model is. Start from Family and change fields.
type Spec struct {
	Family string // model_type of config.json

	Hidden       int
	Layers       int
	Heads        int // query heads
	KVHeads      int
	HeadDim      int
	Intermediate int
	Context      int // max_position_embeddings

	Tied   bool    // the head is the embedding
	Bias   bool    // llama: every projection has a bias; qwen2 always has those of q, k and v
	Eps    float64 // of all norms
	Window int     // gemma3_text: of sliding layers; mistral, mixtral: of all layers, 0: none (GGUF has no such key); nsa: 0: none
	Every  int     // gemma3_text: every n-th layer sees everything; smollm3: every n-th does not rotate (GGUF: 4)

	Latent     Latent     // of DeepSeek's families
	Experts    Experts    // of families with mixtures of experts
	Compressed Compressed // deepseek_v4
	MTP        int        // modules of multi-token prediction behind the layers
	Block      int        // nsa: positions of a block
	Blocks     int        // nsa: blocks that a row selects

	Theta      float64 // rotary base
	LocalTheta float64 // gemma3_text: of sliding layers
	Scaling    Scaling

	Seed  uint64
	DType tensor.DType // of matrices: F32 or BF16; for GGUF also F16, Q8_0, Q4_0, Q4_1
	Parts int          // files to split the weights into
}

// Scaling stretches rotary frequencies. The zero Scaling does nothing.
type Scaling struct {
	Type             string // linear, llama3 or yarn
	Factor, Original float64
	MScale           float64 // DeepSeek's yarn: mscale and mscale_all_dim
}

// families are the specs to start from. Sizes are the smallest at which every
// part of the architecture matters.
var families = map[string]Spec{
	"llama":       {Heads: 4, KVHeads: 2, HeadDim: 16, Theta: 10000, Eps: 1e-5},
	"mistral":     {Heads: 4, KVHeads: 2, HeadDim: 24, Theta: 1e6, Eps: 1e-5},
	"qwen2":       {Heads: 4, KVHeads: 2, HeadDim: 16, Theta: 1e6, Eps: 1e-6},
	"qwen3":       {Heads: 4, KVHeads: 2, HeadDim: 32, Theta: 1e6, Eps: 1e-6, Tied: true},
	"smollm3":     {Heads: 4, KVHeads: 1, HeadDim: 16, Theta: 5e6, Eps: 1e-6, Tied: true, Layers: 4, Every: 4},
	"gemma3_text": {Heads: 4, KVHeads: 1, HeadDim: 24, Theta: 1e6, Eps: 1e-6, Tied: true, Layers: 4, Every: 3, Window: 20, LocalTheta: 10000},
}

// Families lists the names that Family knows, of families that have both forms.
func Families() []string { return slices.Sorted(maps.Keys(families)) }

func init() {
	maps.Copy(families, mixtures)
	maps.Copy(families, deepseek)
}

// Family returns a complete Spec of a family: F32, one file.
func Family(name string) Spec {
	s, ok := families[name]
	if !ok {
		s, ok = withoutGGUF[name]
	}
	if !ok {
		panic(fmt.Sprintf("testmodel: family %q: expected one of %v", name, Families()))
	}
	s.Family = name
	s.Hidden, s.Intermediate, s.Context = 64, 96, 512
	s.Layers = max(s.Layers, 2)
	s.DType, s.Parts = tensor.F32, 1
	return s
}

// A Model is a model in memory. Tests that need a broken one change it before
// they write it.
type Model struct {
	Spec
	Config   map[string]any    // config.json
	Metadata []checkpoint.Pair // of the GGUF file
	Tensors  []Tensor          // under their Hugging Face names and layouts
}

// A Tensor is a named weight, row-major. It is stored in the type of the
// model, unless it has its own, and as Data, if that is set.
type Tensor struct {
	Name   string
	Shape  []int
	Values []float32

	DType tensor.DType
	Data  []byte
}

// New makes the model that s describes.
func New(s Spec) *Model {
	m := &Model{Spec: s, Config: s.config()}
	m.Metadata = s.metadata()
	m.Tensors = s.tensors()
	return m
}

// Tensor finds a tensor by name. It panics if there is none.
func (m *Model) Tensor(name string) *Tensor {
	i := slices.IndexFunc(m.Tensors, func(t Tensor) bool { return t.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("testmodel: no tensor %q", name))
	}
	return &m.Tensors[i]
}

// Drop removes a tensor.
func (m *Model) Drop(name string) {
	m.Tensors = slices.DeleteFunc(m.Tensors, func(t Tensor) bool { return t.Name == name })
}

// SetMetadata sets a key of the GGUF file; nil removes it.
func (m *Model) SetMetadata(key string, value any) {
	m.Metadata = slices.DeleteFunc(m.Metadata, func(p checkpoint.Pair) bool { return p.Key == key })
	if value != nil {
		m.Metadata = append(m.Metadata, checkpoint.Pair{Key: key, Value: value})
	}
}

// Write writes both forms of the model into dir: the files of a Hugging Face
// repository, and model.gguf or its parts.
func Write(dir string, s Spec) error {
	m := New(s)
	if err := m.WriteSafetensors(dir); err != nil {
		return err
	}
	return m.WriteGGUF(filepath.Join(dir, "model.gguf"))
}

// Safetensors writes the Hugging Face form and returns its directory.
func Safetensors(t testing.TB, s Spec) string {
	t.Helper()
	dir := t.TempDir()
	if err := New(s).WriteSafetensors(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// GGUF writes the GGUF form and returns the path of its (first) file.
func GGUF(t testing.TB, s Spec) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := New(s).WriteGGUF(path); err != nil {
		t.Fatal(err)
	}
	return partName(path, 0, s.Parts)
}
