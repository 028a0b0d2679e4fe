package model

import "github.com/foretoken/foretoken/internal/model/attention"

// qwen3 is Qwen3 (Yang et al. 2025): Llama with an RMSNorm over each query
// and key head before rotation, and a head width of its own.
var qwen3 = family{layer: qwen3Layer, adapt: qwenConfig}

func qwen3Layer(b *builder, i int) Layer { return b.preNorm(i, b.normedAttention(i), b.mlp(i)) }

// normedAttention loads attention with norms over each query and key head.
func (b *builder) normedAttention(i int) *attention.GQA {
	w, a := b.weights.Sub("model.layers.%d.self_attn.", i), b.attention(i)
	a.QNorm = b.normOf(w, "q_norm", b.HeadDim)
	a.KNorm = b.normOf(w, "k_norm", b.HeadDim)
	return a
}
