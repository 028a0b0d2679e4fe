package model

import (
	"regexp"
	"strings"
)

// ggufTerms are the keys of GGUF metadata, without the architecture before them,
// that say what fields of config.json say.
var ggufTerms = map[string]string{
	"hidden_size":                      "embedding_length",
	"num_hidden_layers":                "block_count",
	"num_attention_heads":              "attention.head_count",
	"num_key_value_heads":              "attention.head_count_kv",
	"head_dim":                         "attention.key_length",
	"intermediate_size":                "feed_forward_length",
	"max_position_embeddings":          "context_length",
	"rms_norm_eps":                     "attention.layer_norm_rms_epsilon",
	"sliding_window":                   "attention.sliding_window",
	"rope_theta":                       "rope.freq_base",
	"rope_local_base_freq":             "rope.freq_base_swa",
	"original_max_position_embeddings": "rope.scaling.original_context_length",
	"beta_fast":                        "rope.scaling.yarn_beta_fast",
	"beta_slow":                        "rope.scaling.yarn_beta_slow",
	"attention_factor":                 "rope.scaling.attn_factor",

	"n_routed_experts":      "expert_count",
	"num_experts_per_tok":   "expert_used_count",
	"moe_intermediate_size": "expert_feed_forward_length",
	"n_group":               "expert_group_count",
	"topk_group":            "expert_group_used_count",
	"scoring_func":          "expert_gating_func",
	"routed_scaling_factor": "expert_weights_scale",
	"first_k_dense_replace": "leading_dense_block_count",
	"swiglu_limit":          "swiglu_clamp_exp",

	"q_lora_rank":              "attention.q_lora_rank",
	"kv_lora_rank":             "attention.kv_lora_rank",
	"qk_rope_head_dim":         "rope.dimension_count",
	"v_head_dim":               "attention.value_length_mla",
	"index_n_heads":            "attention.indexer.head_count",
	"index_head_dim":           "attention.indexer.key_length",
	"index_topk":               "attention.indexer.top_k",
	"num_nextn_predict_layers": "nextn_predict_layers",

	"o_groups":            "attention.output_group_count",
	"o_lora_rank":         "attention.output_lora_rank",
	"compress_ratios":     "attention.compress_ratios",
	"compress_rope_theta": "attention.compress_rope_freq_base",
	"num_hash_layers":     "hash_layer_count",
	"hc_mult":             "hyper_connection.count",
	"hc_sinkhorn_iters":   "hyper_connection.sinkhorn_iterations",
	"hc_eps":              "hyper_connection.epsilon",
}

// words are names of fields, and whole keys, which are no names of fields.
var words = regexp.MustCompile(`[a-z0-9_.]+`)

// A ggufError is an error of a configuration in the terms of GGUF files of one
// architecture.
type ggufError struct {
	error
	arch string
}

func (e *ggufError) Unwrap() error { return e.error }

func (e *ggufError) Error() string {
	text := words.ReplaceAllStringFunc(e.error.Error(), func(word string) string {
		if key, ok := ggufTerms[word]; ok {
			return e.arch + "." + key
		}
		return word
	})
	if strings.HasPrefix(text, e.arch+".") {
		text = "key " + text
	}
	return text
}
