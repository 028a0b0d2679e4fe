package testmodel

// withoutGGUF are families that have no GGUF form. The blocks of nsa are so small
// that short sequences have some to select; its Hugging Face form is that of
// flash-linear-attention.
var withoutGGUF = map[string]Spec{
	"nsa": {Heads: 8, KVHeads: 2, HeadDim: 16, Theta: 10000, Eps: 1e-6, Window: 11, Block: 4, Blocks: 5},
}

// nsaConfig gives fields the names that files of the family have.
func (s Spec) nsaConfig(c map[string]any) {
	for to, from := range map[string]string{"num_heads": "num_attention_heads", "num_kv_heads": "num_key_value_heads", "norm_eps": "rms_norm_eps"} {
		c[to] = c[from]
		delete(c, from)
	}
	delete(c, "rope_scaling")
	c["head_dim"], c["hidden_act"], c["qkv_bias"] = s.HeadDim, "swish", s.Bias
	c["block_size"], c["block_counts"], c["window_size"] = s.Block, s.Blocks, s.Window
}

func (s Spec) nsaLayer(w *weights) {
	q, kv := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	w.norm("attn_norm", s.Hidden, 1)
	w.norm("mlp_norm", s.Hidden, 1)
	// Queries and keys are larger: attention has to prefer some positions, and
	// some blocks.
	w.linear("attn.q_proj", q, s.Hidden, 2, s.Bias)
	w.linear("attn.k_proj", kv, s.Hidden, 2, s.Bias)
	w.linear("attn.v_proj", kv, s.Hidden, 1, s.Bias)
	w.linear("attn.g_proj", 3*s.Heads, s.Hidden, 2, false)
	w.linear("attn.o_proj", s.Hidden, q, 2, false)
	w.linear("mlp.gate_proj", s.Intermediate, s.Hidden, 1, false)
	w.linear("mlp.up_proj", s.Intermediate, s.Hidden, 1, false)
	w.linear("mlp.down_proj", s.Hidden, s.Intermediate, 2, false)
}
