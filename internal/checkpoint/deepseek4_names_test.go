package checkpoint

import (
	"strings"
	"testing"
)

func TestDeepSeek4Names(t *testing.T) {
	for stored, want := range map[string]string{
		"embed.weight":                                 "model.embed_tokens.weight",
		"hc_head_scale":                                "model.hc_head.hc_scale",
		"layers.3.attn.wq_a.scale":                     "model.layers.3.self_attn.q_a_proj.scale",
		"layers.3.attn.attn_sink":                      "model.layers.3.self_attn.sinks",
		"layers.3.attn.compressor.ape":                 "model.layers.3.self_attn.compressor.position_bias",
		"layers.3.attn.indexer.compressor.norm.weight": "model.layers.3.self_attn.compressor.indexer.kv_norm.weight",
		"layers.12.ffn.experts.7.w2.scale":             "model.layers.12.mlp.experts.7.down_proj.scale",
		"layers.12.ffn.gate.bias":                      "model.layers.12.mlp.gate.e_score_correction_bias",
		"layers.0.ffn.gate.tid2eid":                    "model.layers.0.mlp.gate.tid2eid",
		"layers.0.ffn.gate.weight":                     "model.layers.0.mlp.gate.weight",
		"mtp.0.attn.wkv.weight":                        "model.mtp.0.self_attn.kv_proj.weight",
		"mtp.0.hc_head_fn":                             "model.mtp.0.hc_head.hc_fn",
		"layers.0.surprise.weight":                     "model.layers.0.surprise.weight",

		"model.layers.2.self_attn.compressor.indexer.scorer.weights_proj.weight": "model.layers.2.self_attn.compressor.indexer.weights_proj.weight",
		"model.layers.2.self_attn.q_proj.weight":                                 "model.layers.2.self_attn.q_proj.weight",
		"lm_head.weight":                                                         "lm_head.weight",
		"layers":                                                                 "layers",
	} {
		if got := canonicalName(stored); got != want {
			t.Errorf("%s is %s, want %s", stored, got, want)
		}
		own := strings.HasPrefix(stored, "layers.") || strings.HasPrefix(stored, "mtp.") || stored == "embed.weight"
		if back := deepseek4Stored(want); own && back != "" && back != stored {
			t.Errorf("%s is %s in files, want %s", want, back, stored)
		}
	}
}
