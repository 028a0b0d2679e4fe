package checkpoint

// deepseekNames: latent attention with its indexer, mixtures of experts, and
// modules of multi-token prediction. GGUF files have kv_b_proj in two parts,
// which have no names elsewhere; old ones have it whole.
var deepseekNames = ggufNames{
	model: llamaNames.model,
	layer: with(expertNames.layer, map[string]string{
		"attn_q_a":       "self_attn.q_a_proj",
		"attn_q_a_norm":  "self_attn.q_a_layernorm",
		"attn_q_b":       "self_attn.q_b_proj",
		"attn_kv_a_mqa":  "self_attn.kv_a_proj_with_mqa",
		"attn_kv_a_norm": "self_attn.kv_a_layernorm",
		"attn_kv_b":      "self_attn.kv_b_proj",
		"attn_k_b":       "self_attn.k_b_proj", // [heads, rank, nope]: each transposed
		"attn_v_b":       "self_attn.v_b_proj", // [heads, value, rank]

		"indexer.attn_q_b": "self_attn.indexer.wq_b",
		"indexer.attn_k":   "self_attn.indexer.wk",
		"indexer.k_norm":   "self_attn.indexer.k_norm",
		"indexer.proj":     "self_attn.indexer.weights_proj",

		"nextn.enorm":            "enorm",
		"nextn.hnorm":            "hnorm",
		"nextn.eh_proj":          "eh_proj",
		"nextn.embed_tokens":     "embed_tokens",
		"nextn.shared_head_norm": "shared_head.norm",
		"nextn.shared_head_head": "shared_head.head",
	}),
	exact: map[string]string{"exp_probs_b.bias": "mlp.gate.e_score_correction_bias"},
}
