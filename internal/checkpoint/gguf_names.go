package checkpoint

import (
	"maps"
	"strconv"
	"strings"
)

// ggufNames translate between GGUF's tensor names and Hugging Face's, both
// without the suffix .weight or .bias. GGUF has one set of names for all
// architectures; the Hugging Face name of the same tensor differs, and so
// does the place that the same name means.
type ggufNames struct {
	model map[string]string // whole names
	layer map[string]string // after "blk.N." and "model.layers.N."
	exact map[string]string // either, where suffixes differ: with them
}

// llamaNames: one norm before attention and one before the feed-forward
// part, which Hugging Face names after what precedes it.
var llamaNames = ggufNames{
	model: map[string]string{
		"token_embd":  "model.embed_tokens",
		"output_norm": "model.norm",
		"output":      "lm_head",
		"rope_freqs":  "rope_freqs", // no counterpart: Llama 3's scaling as a tensor
	},
	layer: map[string]string{
		"attn_norm":   "input_layernorm",
		"attn_q":      "self_attn.q_proj",
		"attn_k":      "self_attn.k_proj",
		"attn_v":      "self_attn.v_proj",
		"attn_output": "self_attn.o_proj",
		"attn_q_norm": "self_attn.q_norm",
		"attn_k_norm": "self_attn.k_norm",
		"ffn_norm":    "post_attention_layernorm",
		"ffn_gate":    "mlp.gate_proj",
		"ffn_up":      "mlp.up_proj",
		"ffn_down":    "mlp.down_proj",
	},
}

// gemmaNames: norms before and after both parts.
var gemmaNames = ggufNames{
	model: llamaNames.model,
	layer: with(llamaNames.layer, map[string]string{
		"post_attention_norm": "post_attention_layernorm",
		"ffn_norm":            "pre_feedforward_layernorm",
		"post_ffw_norm":       "post_feedforward_layernorm",
	}),
}

// namesOf has the architectures (general.architecture) whose names are
// translated. Tensors of others, and names not in the tables, keep theirs.
var namesOf = map[string]ggufNames{
	"llama":    expertNames,
	"mistral3": llamaNames,
	"qwen2":    llamaNames,
	"qwen3":    llamaNames,
	"qwen3moe": expertNames,
	"smollm3":  llamaNames,
	"gemma3":   gemmaNames,

	"deepseek2":  deepseekNames,
	"deepseek32": deepseekNames,

	"deepseek4": deepseek4GGUFNames,
}

// hfName is the canonical name of the tensor that a GGUF file of the given
// architecture calls stored; stored itself if there is none.
func hfName(arch, stored string) string {
	if name, ok := namesOf[arch].translate(stored, "blk.", "model.layers.", false); ok {
		return name
	}
	return stored
}

// GGUFName is the name that a GGUF file of the given architecture has for
// the tensor with the given canonical name; false if there is none.
func GGUFName(arch, canonical string) (string, bool) {
	return namesOf[arch].translate(canonical, "model.layers.", "blk.", true)
}

// translate turns a name of one side, FROM N "." BASE SUFFIX or BASE SUFFIX,
// into the other's. The tables are read from Hugging Face to GGUF if inverse.
func (t ggufNames) translate(name, from, to string, inverse bool) (string, bool) {
	table, prefix := t.model, ""
	if rest, ok := strings.CutPrefix(name, from); ok {
		var layer string
		layer, name, ok = strings.Cut(rest, ".")
		// Only the usual spelling of N, else two names would become one.
		if n, err := strconv.Atoi(layer); !ok || err != nil || n < 0 || strconv.Itoa(n) != layer {
			return "", false
		}
		table, prefix = t.layer, to+layer+"."
	}
	if there, ok := lookUp(t.exact, name, inverse); ok {
		return prefix + there, true
	}
	for _, suffix := range []string{".weight", ".bias"} {
		if base, ok := strings.CutSuffix(name, suffix); ok {
			there, ok := lookUp(table, base, inverse)
			return prefix + there + suffix, ok
		}
	}
	return "", false
}

// lookUp reads table from its values to its keys if inverse.
func lookUp(table map[string]string, name string, inverse bool) (string, bool) {
	if !inverse {
		there, ok := table[name]
		return there, ok
	}
	for there, here := range table {
		if here == name {
			return there, true
		}
	}
	return "", false
}

// with returns base with the entries of changes.
func with(base, changes map[string]string) map[string]string {
	out := maps.Clone(base)
	maps.Copy(out, changes)
	return out
}
