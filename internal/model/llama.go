package model

import "github.com/foretoken/foretoken/internal/kernel"

// llama is Llama 1 to 3 (Touvron et al. 2023; Grattafiori et al. 2024) and
// what shares its form, such as SmolLM2: pre-norm, rotary embeddings,
// grouped-query attention, SwiGLU.
//
//	x += Attn(RMSNorm(x))
//	x += W_down(silu(W_gate·RMSNorm(x)) · W_up·RMSNorm(x))
var llama = family{layer: llamaLayer}

func llamaLayer(b *builder, i int) *layer {
	w := b.weights.Sub("model.layers.%d.", i)
	return &layer{
		attnNorm: w.Norm("input_layernorm", b.Hidden),
		attn:     b.attention(w.Sub("self_attn."), i),
		ffnNorm:  w.Norm("post_attention_layernorm", b.Hidden),
		ffn:      w.Sub("mlp.").GatedMLP(b.Hidden, b.Intermediate, (*kernel.Pool).SwiGLU),
	}
}
