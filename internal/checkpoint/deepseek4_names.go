package checkpoint

import "strings"

// deepseek4Names has the names of DeepSeek V4's own files on the left, and on
// the right those of its Hugging Face form, after "layers.N." and
// "model.layers.N.". Files of other models have none of the former.
var deepseek4Names = map[string]string{
	"attn_norm": "input_layernorm",
	"ffn_norm":  "post_attention_layernorm",

	"attn.wq_a":      "self_attn.q_a_proj",
	"attn.q_norm":    "self_attn.q_a_norm",
	"attn.wq_b":      "self_attn.q_b_proj",
	"attn.wkv":       "self_attn.kv_proj",
	"attn.kv_norm":   "self_attn.kv_norm",
	"attn.wo_a":      "self_attn.o_a_proj",
	"attn.wo_b":      "self_attn.o_b_proj",
	"attn.attn_sink": "self_attn.sinks",

	"attn.compressor.ape":           "self_attn.compressor.position_bias",
	"attn.compressor.wkv":           "self_attn.compressor.kv_proj",
	"attn.compressor.wgate":         "self_attn.compressor.gate_proj",
	"attn.compressor.norm":          "self_attn.compressor.kv_norm",
	"attn.indexer.wq_b":             "self_attn.compressor.indexer.q_b_proj",
	"attn.indexer.weights_proj":     "self_attn.compressor.indexer.weights_proj",
	"attn.indexer.compressor.ape":   "self_attn.compressor.indexer.position_bias",
	"attn.indexer.compressor.wkv":   "self_attn.compressor.indexer.kv_proj",
	"attn.indexer.compressor.wgate": "self_attn.compressor.indexer.gate_proj",
	"attn.indexer.compressor.norm":  "self_attn.compressor.indexer.kv_norm",

	"ffn.gate":              "mlp.gate",
	"ffn.gate.tid2eid":      "mlp.gate.tid2eid",
	"ffn.shared_experts.w1": "mlp.shared_experts.gate_proj",
	"ffn.shared_experts.w2": "mlp.shared_experts.down_proj",
	"ffn.shared_experts.w3": "mlp.shared_experts.up_proj",

	"hc_attn_fn":    "attn_hc.fn",
	"hc_attn_base":  "attn_hc.base",
	"hc_attn_scale": "attn_hc.scale",
	"hc_ffn_fn":     "ffn_hc.fn",
	"hc_ffn_base":   "ffn_hc.base",
	"hc_ffn_scale":  "ffn_hc.scale",

	// Layers of multi-token prediction have these, too.
	"e_proj": "e_proj", "h_proj": "h_proj", "enorm": "enorm", "hnorm": "hnorm", "norm": "norm",
	"hc_head_fn": "hc_head.hc_fn", "hc_head_base": "hc_head.hc_base", "hc_head_scale": "hc_head.hc_scale",
}

// deepseek4Outside are the names outside of layers.
var deepseek4Outside = map[string]string{
	"embed.weight": "model.embed_tokens.weight", "head.weight": "lm_head.weight", "norm.weight": "model.norm.weight",
	"hc_head_fn": "model.hc_head.hc_fn", "hc_head_base": "model.hc_head.hc_base", "hc_head_scale": "model.hc_head.hc_scale",
}

// deepseek4Name turns a name of DeepSeek V4's own files into that of its
// Hugging Face form; other names stay.
func deepseek4Name(stored string) string {
	if name, ok := deepseek4Outside[stored]; ok {
		return name
	}
	from, rest, _ := strings.Cut(stored, ".")
	if from == "model" { // some versions of transformers wrap this projection
		return strings.Replace(stored, ".indexer.scorer.weights_proj.", ".indexer.weights_proj.", 1)
	}
	layer, rest, ok := strings.Cut(rest, ".")
	if !ok || from != "layers" && from != "mtp" {
		return stored
	}
	prefix := "model." + from + "." + layer + "."
	if expert, ok := strings.CutPrefix(rest, "ffn.experts."); ok {
		return prefix + "mlp.experts." + numberedToNamed.Replace(expert)
	}
	if rest == "ffn.gate.bias" {
		return prefix + "mlp.gate.e_score_correction_bias"
	}
	base, suffix := rest, ""
	for _, s := range []string{".weight", ".scale"} {
		if b, ok := strings.CutSuffix(rest, s); ok {
			base, suffix = b, s
		}
	}
	if name, ok := deepseek4Names[base]; ok {
		return prefix + name + suffix
	}
	return prefix + rest // the model will say that it has no such part
}

// deepseek4Stored is what deepseek4Name turns into the canonical name; "" if that
// is none of its.
func deepseek4Stored(canonical string) string {
	for own, name := range deepseek4Outside {
		if name == canonical {
			return own
		}
	}
	parts := strings.SplitN(canonical, ".", 4) // model, layers, N and the rest
	if len(parts) < 4 {
		return ""
	}
	prefix, rest := strings.Join(parts[1:3], ".")+".", parts[3]
	if expert, ok := strings.CutPrefix(rest, "mlp.experts."); ok {
		return prefix + "ffn.experts." + namedToNumbered.Replace(expert)
	}
	if rest == "mlp.gate.e_score_correction_bias" {
		return prefix + "ffn.gate.bias"
	}
	for own, name := range deepseek4Names {
		if suffix, ok := strings.CutPrefix(rest, name); ok && (suffix == "" || suffix == ".weight") {
			return prefix + own + suffix
		}
	}
	return ""
}
