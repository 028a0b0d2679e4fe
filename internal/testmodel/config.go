package testmodel

import "strings"

// config is config.json, with the keys that files of the family have.
func (s Spec) config() map[string]any {
	c := map[string]any{
		"model_type":              s.Family,
		"hidden_size":             s.Hidden,
		"num_hidden_layers":       s.Layers,
		"num_attention_heads":     s.Heads,
		"num_key_value_heads":     s.KVHeads,
		"intermediate_size":       s.Intermediate,
		"vocab_size":              Vocab,
		"max_position_embeddings": s.Context,
		"rms_norm_eps":            s.Eps,
		"rope_theta":              s.Theta,
		"rope_scaling":            s.Scaling.config(),
		"tie_word_embeddings":     s.Tied,
		"hidden_act":              "silu",
		"bos_token_id":            BOS,
		"eos_token_id":            EOS,
		"torch_dtype":             "float32",
	}
	if s.HeadDim*s.Heads != s.Hidden || strings.HasPrefix(s.Family, "qwen3") {
		c["head_dim"] = s.HeadDim // else files leave it to be hidden / heads
	}
	if s.latent() {
		s.deepseekConfig(c)
	}
	if s.mixed() {
		s.mixtureConfig(c)
	}
	if s.compressed() {
		s.compressedConfig(c)
	}
	switch s.Family {
	case "nsa":
		s.nsaConfig(c)
	case "llama":
		c["attention_bias"], c["mlp_bias"] = s.Bias, s.Bias
	case "mistral", "mixtral":
		c["sliding_window"] = nil
		if s.Window > 0 {
			c["sliding_window"] = s.Window
		}
	case "qwen2", "qwen3", "qwen3_moe":
		c["use_sliding_window"] = false
	case "smollm3":
		flags := make([]int, s.Layers) // 1: the layer does rotate
		for i := range flags {
			if (i+1)%s.Every != 0 {
				flags[i] = 1
			}
		}
		c["no_rope_layers"], c["no_rope_layer_interval"] = flags, s.Every
	case "gemma3_text":
		delete(c, "hidden_act")
		c["hidden_activation"] = "gelu_pytorch_tanh"
		c["head_dim"] = s.HeadDim
		c["query_pre_attn_scalar"] = s.HeadDim
		c["sliding_window"], c["sliding_window_pattern"] = s.Window, s.Every
		c["rope_local_base_freq"] = s.LocalTheta
	}
	return c
}

// config is rope_scaling; nil: null.
func (r Scaling) config() any {
	if r.Type == "" {
		return nil
	}
	c := map[string]any{"rope_type": r.Type, "factor": r.Factor}
	switch r.Type {
	case "llama3":
		c["low_freq_factor"], c["high_freq_factor"] = llama3Low, llama3High
		fallthrough
	case "yarn":
		c["original_max_position_embeddings"] = r.Original
		if r.MScale != 0 {
			c["mscale"], c["mscale_all_dim"] = r.MScale, r.MScale
		}
	}
	return c
}

// The wavelengths per original context between which llama3 scaling blends.
const (
	llama3Low  = 1.0
	llama3High = 4.0
)

// arch is general.architecture.
func (s Spec) arch() string {
	switch s.Family {
	case "mistral", "mixtral":
		return "llama"
	case "qwen3_moe":
		return "qwen3moe"
	case "deepseek_v2", "deepseek_v3":
		return "deepseek2"
	case "deepseek_v32":
		return "deepseek32"
	case "deepseek_v4":
		return "deepseek4"
	}
	return strings.TrimSuffix(s.Family, "_text")
}
