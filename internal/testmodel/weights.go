package testmodel

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/foretoken/foretoken/internal/tensor"
)

// tensors draws the weights. They are BF16 values, so that files of all
// unquantised types hold the same numbers.
func (s Spec) tensors() []Tensor {
	w := &weights{seed: s.Seed}
	q, kv := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim

	// The final norm makes rows of length √hidden: logits spread by 2.4.
	spread := 2.4 / math.Sqrt(float64(s.Hidden))
	embedding := "model.embed_tokens.weight"
	if s.Family == "nsa" {
		embedding = "model.embeddings.weight"
	}
	if s.Tied {
		w.matrix(embedding, Vocab, s.Hidden, spread)
	} else {
		w.matrix(embedding, Vocab, s.Hidden, 1)
		w.matrix("lm_head.weight", Vocab, s.Hidden, spread)
	}
	w.norm("model.norm", s.Hidden, s.normMean())
	for i := range s.Layers {
		w.prefix = fmt.Sprintf("model.layers.%d.", i)
		if s.latent() {
			s.deepseekLayer(w, i)
			continue
		}
		if s.compressed() {
			s.compressedLayer(w, i)
			continue
		}
		if s.Family == "nsa" {
			s.nsaLayer(w)
			continue
		}
		w.norm("input_layernorm", s.Hidden, s.normMean())
		if s.Family == "gemma3_text" {
			// Of what goes into the stream: see o_proj.
			w.norm("post_attention_layernorm", s.Hidden, s.normMean()+3)
			w.norm("pre_feedforward_layernorm", s.Hidden, s.normMean())
			w.norm("post_feedforward_layernorm", s.Hidden, s.normMean()+3)
		} else {
			w.norm("post_attention_layernorm", s.Hidden, s.normMean())
		}
		if strings.HasPrefix(s.Family, "qwen3") || s.Family == "gemma3_text" {
			w.norm("self_attn.q_norm", s.HeadDim, s.normMean()+1)
			w.norm("self_attn.k_norm", s.HeadDim, s.normMean()+1)
		}
		// Queries and keys are larger: attention has to prefer some positions.
		qkvBias := s.Bias || s.Family == "qwen2"
		w.linear("self_attn.q_proj", q, s.Hidden, 1.5, qkvBias)
		w.linear("self_attn.k_proj", kv, s.Hidden, 1.5, qkvBias)
		w.linear("self_attn.v_proj", kv, s.Hidden, 1, qkvBias)
		// What layers add outweighs the embedding, else models whose head is
		// the embedding would repeat themselves.
		w.linear("self_attn.o_proj", s.Hidden, q, 2, s.Bias)
		if s.hasMixture(i) {
			s.mixture(w)
			continue
		}
		w.linear("mlp.gate_proj", s.Intermediate, s.Hidden, 1, s.Bias)
		w.linear("mlp.up_proj", s.Intermediate, s.Hidden, 1, s.Bias)
		w.linear("mlp.down_proj", s.Hidden, s.Intermediate, 2, s.Bias)
	}
	if s.compressed() {
		s.compressedTensors(w)
	} else {
		s.mtpModules(w)
	}
	return w.tensors
}

// normMean is about what norms multiply by; Gemma stores w and uses 1 + w.
func (s Spec) normMean() float64 {
	if s.Family == "gemma3_text" {
		return 0
	}
	return 1
}

// isNorm reports whether a tensor is the weight of a norm.
func isNorm(name string) bool { return strings.HasSuffix(name, "norm.weight") }

type weights struct {
	seed    uint64
	prefix  string
	tensors []Tensor
}

// draw adds a tensor of normally distributed values. Its numbers depend on
// its name alone: changing one part of a Spec leaves the other tensors as
// they are.
func (w *weights) draw(name string, mean, deviation float64, shape ...int) {
	name = w.prefix + name
	hash := fnv.New64a()
	hash.Write([]byte(name))
	random := rand.New(rand.NewPCG(w.seed, hash.Sum64()))
	n := 1
	for _, size := range shape {
		n *= size
	}
	values := make([]float32, n)
	for i := range values {
		values[i] = tensor.BF16ToF32(tensor.F32ToBF16(float32(mean + deviation*random.NormFloat64())))
	}
	w.tensors = append(w.tensors, Tensor{Name: name, Shape: shape, Values: values})
}

func (w *weights) matrix(name string, rows, cols int, deviation float64) {
	w.draw(name, 0, deviation, rows, cols)
}

func (w *weights) norm(name string, n int, mean float64) {
	w.draw(name+".weight", mean, 0.2, n)
}

// linear draws a projection whose outputs are about gain times its inputs.
func (w *weights) linear(name string, out, in int, gain float64, bias bool) {
	w.matrix(name+".weight", out, in, gain/math.Sqrt(float64(in)))
	if bias {
		w.draw(name+".bias", 0, 0.3, out)
	}
}

// encode stores t as d, if it has no type of its own.
func (t Tensor) encode(d tensor.DType) (tensor.DType, []byte, error) {
	if t.Data != nil {
		return t.DType, t.Data, nil
	}
	if t.DType != tensor.Invalid {
		d = t.DType
	}
	data := make([]byte, d.RowBytes(len(t.Values)))
	if err := tensor.Encode(d, data, t.Values); err != nil {
		return d, nil, fmt.Errorf("tensor %s: %w", t.Name, err)
	}
	return d, data, nil
}
