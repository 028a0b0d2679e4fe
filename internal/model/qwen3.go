package model

// qwen3 is Qwen3 (Yang et al. 2025): Llama with an RMSNorm over each query
// and key head before rotation, and a head width of its own.
var qwen3 = family{layer: qwen3Layer, adapt: qwenConfig}

func qwen3Layer(b *builder, i int) *layer {
	w := b.weights.Sub("model.layers.%d.self_attn.", i)
	l := llamaLayer(b, i)
	l.attn.QNorm = w.Norm("q_norm", b.HeadDim)
	l.attn.KNorm = w.Norm("k_norm", b.HeadDim)
	return l
}
