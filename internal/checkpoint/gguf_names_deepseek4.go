package checkpoint

// deepseek4GGUFNames: Hugging Face names some tensors without a suffix.
var deepseek4GGUFNames = ggufNames{
	model: llamaNames.model,
	layer: with(expertTensors, map[string]string{
		"attn_norm":      "input_layernorm",
		"attn_q_a":       "self_attn.q_a_proj",
		"attn_q_a_norm":  "self_attn.q_a_norm",
		"attn_q_b":       "self_attn.q_b_proj",
		"attn_kv":        "self_attn.kv_proj",
		"attn_kv_a_norm": "self_attn.kv_norm",
		"attn_output_a":  "self_attn.o_a_proj",
		"attn_output_b":  "self_attn.o_b_proj",

		"attn_compressor_kv":      "self_attn.compressor.kv_proj",
		"attn_compressor_gate":    "self_attn.compressor.gate_proj",
		"attn_compressor_norm":    "self_attn.compressor.kv_norm",
		"indexer.attn_q_b":        "self_attn.compressor.indexer.q_b_proj",
		"indexer.proj":            "self_attn.compressor.indexer.weights_proj",
		"indexer_compressor_kv":   "self_attn.compressor.indexer.kv_proj",
		"indexer_compressor_gate": "self_attn.compressor.indexer.gate_proj",
		"indexer_compressor_norm": "self_attn.compressor.indexer.kv_norm",

		"ffn_norm": "post_attention_layernorm",
	}),
	exact: map[string]string{
		"attn_sinks.weight":             "self_attn.sinks",
		"attn_compressor_ape.weight":    "self_attn.compressor.position_bias",
		"indexer_compressor_ape.weight": "self_attn.compressor.indexer.position_bias",
		"hc_attn_fn.weight":             "attn_hc.fn",
		"hc_attn_base.weight":           "attn_hc.base",
		"hc_attn_scale.weight":          "attn_hc.scale",
		"hc_ffn_fn.weight":              "ffn_hc.fn",
		"hc_ffn_base.weight":            "ffn_hc.base",
		"hc_ffn_scale.weight":           "ffn_hc.scale",
		"exp_probs_b.bias":              "mlp.gate.e_score_correction_bias",
		"ffn_gate_tid2eid.weight":       "mlp.gate.tid2eid",

		"output_hc_fn.weight":    "model.hc_head.hc_fn",
		"output_hc_base.weight":  "model.hc_head.hc_base",
		"output_hc_scale.weight": "model.hc_head.hc_scale",
	},
}
