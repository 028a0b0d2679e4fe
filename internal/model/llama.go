package model

import (
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/model/attention"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// llama is Llama 1 to 3 (Touvron et al. 2023; Grattafiori et al. 2024) and
// what shares its form, such as SmolLM2: pre-norm, rotary embeddings,
// grouped-query attention, SwiGLU.
//
//	x += Attn(RMSNorm(x))
//	x += W_down(silu(W_gate·RMSNorm(x)) · W_up·RMSNorm(x))
//
// GGUF files of Mixtral are llama's with experts.
var llama = family{layer: llamaLayer, adaptGGUF: mixtralGGUF, experts: true}

func llamaLayer(b *builder, i int) Layer { return b.preNorm(i, b.attention(i), b.ffn(i)) }

// preNorm is layer i with a norm before each of its parts.
func (b *builder) preNorm(i int, attn attention.Design, ffn feedForward) *layer {
	w := b.weights.Sub("model.layers.%d.", i)
	return &layer{
		attnNorm: w.Norm("input_layernorm", b.Hidden),
		attn:     attn,
		ffnNorm:  w.Norm("post_attention_layernorm", b.Hidden),
		ffn:      ffn,
	}
}

// mlp loads the SwiGLU network of layer i.
func (b *builder) mlp(i int) *nn.GatedMLP {
	return b.weights.Sub("model.layers.%d.mlp.", i).GatedMLP(b.Hidden, b.Intermediate, (*kernel.Pool).SwiGLU)
}
