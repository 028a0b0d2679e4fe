package model

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/tensor"
)

// gemma3 is the text model of Gemma 3 (Gemma Team 2025): five layers with a
// sliding window and a short rotary base to one that sees everything, norms
// before and after each sublayer, norms on query and key heads, GeGLU.
//
//	x = √hidden · embed(token)
//	x += RMSNorm(Attn(RMSNorm(x)))
//	x += RMSNorm(W_down(gelu(W_gate·RMSNorm(x)) · W_up·RMSNorm(x)))
var gemma3 = family{
	layer: gemma3Layer, activation: "gelu_pytorch_tanh", norm: gemma3Norm, embedScale: gemma3EmbedScale,
	defaults: gemma3Defaults, adapt: gemma3Config, adaptGGUF: gemma3GGUF,
}

func gemma3Layer(b *builder, i int) Layer {
	w := b.weights.Sub("model.layers.%d.", i)
	return &layer{
		attnNorm:    gemma3Norm(w, "input_layernorm", b.Hidden),
		attn:        b.normedAttention(i),
		attnOutNorm: gemma3Norm(w, "post_attention_layernorm", b.Hidden),
		ffnNorm:     gemma3Norm(w, "pre_feedforward_layernorm", b.Hidden),
		ffn:         w.Sub("mlp.").GatedMLP(b.Hidden, b.Intermediate, (*kernel.Pool).GeGLU),
		ffnOutNorm:  gemma3Norm(w, "post_feedforward_layernorm", b.Hidden),
	}
}

// gemma3Norm multiplies by 1 + w. GGUF files store the sum.
func gemma3Norm(w *nn.Loader, name string, n int) *nn.Norm {
	norm := w.Norm(name, n)
	if !w.GGUF() {
		for i := range norm.Weight {
			norm.Weight[i]++
		}
	}
	return norm
}

// gemma3EmbedScale is √hidden, rounded as the reference implementation of
// each file format rounds it: to the weights' type for safetensors.
func gemma3EmbedScale(c *Config, w *nn.Loader) float32 {
	scale := float32(math.Sqrt(float64(c.Hidden)))
	if w.GGUF() || w.DType("model.embed_tokens.weight") != tensor.BF16 {
		return scale
	}
	return tensor.BF16ToF32(tensor.F32ToBF16(scale))
}

// gemma3Defaults are the values that the larger models leave out.
func gemma3Defaults(hf *hfConfig) error {
	hf.TieWordEmbeddings = cmp.Or(hf.TieWordEmbeddings, new(true))
	hf.NumAttentionHeads = cmp.Or(hf.NumAttentionHeads, new(8))
	hf.NumKeyValueHeads = cmp.Or(hf.NumKeyValueHeads, new(4))
	hf.HeadDim = cmp.Or(hf.HeadDim, new(256))
	hf.VocabSize = cmp.Or(hf.VocabSize, new(262208))
	hf.MaxPositionEmbeddings = cmp.Or(hf.MaxPositionEmbeddings, new(131072))
	hf.RopeTheta = cmp.Or(hf.RopeTheta, new(1e6))
	hf.RopeLocalBaseFreq = cmp.Or(hf.RopeLocalBaseFreq, new(1e4))
	return nil
}

// gemma3Config reads scales, and which layers slide.
func gemma3Config(c *Config, hf *hfConfig) error {
	if hf.AttnLogitSoftcapping != nil || hf.FinalLogitSoftcapping != nil {
		return errors.New("attn_logit_softcapping and final_logit_softcapping are not supported")
	}
	if hf.UseBidirectionalAttention {
		return errors.New("use_bidirectional_attention is not supported: the model does not generate")
	}
	scalar := or(hf.QueryPreAttnScalar, 256)
	if !(scalar > 0) {
		return fmt.Errorf("query_pre_attn_scalar is %v, expected a positive number", scalar)
	}
	c.QueryScale = 1 / math.Sqrt(scalar)
	if c.LocalRope == nil {
		c.LocalRope = &nn.RopeConfig{Theta: *hf.RopeLocalBaseFreq, Dim: c.HeadDim}
	}
	pattern := or(hf.SlidingWindowPattern, or(hf.SlidingWindowPattern2, 6))
	if pattern < 1 {
		return fmt.Errorf("sliding_window_pattern is %d, expected a positive number", pattern)
	}
	global := everyNth(pattern)
	return hf.slide(c, or(hf.SlidingWindow, 4096), func(i int) bool { return !global(i) })
}

func gemma3GGUF(c *Config, m *ggufConfig) {
	if c.Layers == 62 { // 27B: the scale has no key in the file
		c.QueryScale = 1 / math.Sqrt(float64(c.Hidden)/float64(c.Heads))
	}
	c.LocalRope = &nn.RopeConfig{Theta: m.floatOr("rope.freq_base_swa", 10000), Dim: c.HeadDim}
	global := everyNth(m.size("attention.sliding_window_pattern", 6))
	c.slide(m.size("attention.sliding_window", 0), func(i int) bool { return !global(i) })
}
