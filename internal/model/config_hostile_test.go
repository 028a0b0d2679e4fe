package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
)

// plainJSON is a valid configuration of each family to break one field of.
func plainJSON(family string, changes map[string]string) string {
	fields := map[string]string{
		"model_type": fmt.Sprintf("%q", family), "hidden_size": "64", "num_hidden_layers": "4", "num_attention_heads": "4", "num_key_value_heads": "2",
		"intermediate_size": "96", "vocab_size": "300", "max_position_embeddings": "512", "rms_norm_eps": "1e-6", "rope_theta": "10000",
	}
	maps.Copy(fields, changes)
	var list []string
	for name, value := range fields {
		list = append(list, fmt.Sprintf("%q: %s", name, value))
	}
	return "{" + strings.Join(list, ", ") + "}"
}

func TestHostileConfigs(t *testing.T) {
	for _, tc := range []struct {
		family, field, value string
		want                 []string // parts of the error
	}{
		// Sizes.
		{"llama", "hidden_size", `0`, []string{"hidden_size is 0", "1 to"}},
		{"llama", "hidden_size", `-64`, []string{"hidden_size is -64"}},
		{"llama", "hidden_size", `"64"`, []string{"hidden_size is a JSON string", "an integer"}},
		{"llama", "hidden_size", `64.5`, []string{"hidden_size is a JSON number 64.5", "an integer"}},
		{"llama", "hidden_size", `1e400`, []string{"hidden_size", "1e400"}},
		{"llama", "hidden_size", `null`, []string{"hidden_size is missing"}},
		{"llama", "hidden_size", `[64]`, []string{"hidden_size is a JSON array"}},
		{"llama", "hidden_size", `NaN`, []string{"invalid character 'N'"}},
		{"llama", "hidden_size", `99999999999999999999`, []string{"hidden_size"}},
		{"llama", "num_hidden_layers", `0`, []string{"num_hidden_layers is 0"}},
		{"llama", "num_hidden_layers", `-1`, []string{"num_hidden_layers is -1"}},
		{"llama", "num_hidden_layers", `1000000000`, []string{"num_hidden_layers is 1000000000"}},
		{"smollm3", "num_hidden_layers", `1000000000`, []string{"num_hidden_layers is 1000000000"}},
		{"gemma3_text", "num_hidden_layers", `1000000000`, []string{"num_hidden_layers is 1000000000"}},
		{"mistral", "num_hidden_layers", `1000000000`, []string{"num_hidden_layers is 1000000000"}},
		{"llama", "num_attention_heads", `0`, []string{"num_attention_heads is 0"}},
		{"llama", "num_attention_heads", `1000000000000`, []string{"num_attention_heads is 1000000000000"}},
		{"llama", "num_key_value_heads", `0`, []string{"num_key_value_heads is 0"}},
		{"llama", "num_key_value_heads", `8`, []string{"num_key_value_heads is 8", "1 to 4"}},
		{"llama", "num_key_value_heads", `3`, []string{"num_attention_heads is 4", "num_key_value_heads 3"}},
		{"llama", "head_dim", `15`, []string{"head_dim is 15", "even"}},
		{"llama", "head_dim", `0`, []string{"head_dim is 0"}},
		{"llama", "head_dim", `-16`, []string{"head_dim is -16"}},
		{"llama", "head_dim", `1e9`, []string{"head_dim"}},
		{"llama", "intermediate_size", `0`, []string{"intermediate_size is 0"}},
		{"llama", "vocab_size", `0`, []string{"vocab_size is 0"}},
		{"llama", "vocab_size", `4294967296`, []string{"vocab_size is 4294967296"}},
		{"llama", "max_position_embeddings", `0`, []string{"max_position_embeddings is 0"}},
		{"llama", "max_position_embeddings", `1e30`, []string{"max_position_embeddings"}},
		{"llama", "rms_norm_eps", `-1e-6`, []string{"rms_norm_eps is -1e-06"}},
		{"llama", "rms_norm_eps", `"1e-6"`, []string{"rms_norm_eps is a JSON string", "a number"}},
		{"llama", "rms_norm_eps", `Infinity`, []string{"invalid character 'I'"}},
		{"llama", "tie_word_embeddings", `1`, []string{"tie_word_embeddings", "true or false"}},
		{"llama", "bos_token_id", `300`, []string{"bos_token_id is 300", "0 to 299"}},
		{"llama", "bos_token_id", `-2`, []string{"bos_token_id is -2"}},
		{"llama", "bos_token_id", `"<s>"`, []string{"bos_token_id", "token id"}},
		{"llama", "eos_token_id", `[1, 300]`, []string{"eos_token_id is 300", "0 to 299"}},
		{"llama", "eos_token_id", `-1`, []string{"eos_token_id is -1"}},
		{"llama", "eos_token_id", `[[1]]`, []string{"eos_token_id", "token id"}},
		{"llama", "eos_token_id", `4294967297`, []string{"eos_token_id", "token id"}},
		{"llama", "hidden_act", `"gelu"`, []string{`hidden_act "gelu"`, "silu"}},
		{"gemma3_text", "hidden_activation", `"silu"`, []string{`hidden_act "silu"`, "gelu_pytorch_tanh"}},
		{"llama", "model_type", `"mamba\nname"`, []string{`"mamba\nname" is not supported`, "llama", "qwen3"}},
		{"llama", "model_type", `"gemma4", "use_bidirectional_attention": "vision"`, []string{`"gemma4" is not supported`}},
		{"llama", "model_type", `""`, []string{`"" is not supported`}},
		{"llama", "model_type", `7`, []string{"model_type is a JSON number", "a string"}},

		// Rotary embeddings.
		{"llama", "rope_theta", `0`, []string{"rope_theta is 0"}},
		{"llama", "rope_theta", `-5`, []string{"rope_theta is -5"}},
		{"llama", "rope_theta", `"x"`, []string{"rope_theta is a JSON string", "a number"}},
		{"llama", "rope_theta", `NaN`, []string{"invalid character 'N'"}},
		{"llama", "rope_theta", `1e999`, []string{"rope_theta", "1e999"}},
		{"llama", "rope_scaling", `{"rope_type": "dynamic", "factor": 2}`, []string{`rope scaling "dynamic" is not supported`}},
		{"llama", "rope_scaling", `{"rope_type": "x\ny"}`, []string{`rope scaling "x\ny" is not supported`}},
		{"llama", "rope_scaling", `{"factor": 2}`, []string{"rope_scaling.rope_type is missing"}},
		{"llama", "rope_scaling", `{"rope_type": "linear"}`, []string{"rope scaling linear: factor is 0"}},
		{"llama", "rope_scaling", `{"rope_type": "linear", "factor": -2}`, []string{"rope scaling linear: factor is -2"}},
		{"llama", "rope_scaling", `{"rope_type": "linear", "factor": "2"}`, []string{"rope_scaling.factor is a JSON string"}},
		{"llama", "rope_scaling", `{"rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 0}`, []string{"yarn", "original_max_position_embeddings is 0"}},
		{"llama", "rope_scaling", `{"rope_type": "yarn", "factor": 2, "beta_fast": 0}`, []string{"yarn", "beta_fast is 0"}},
		{"llama", "rope_scaling", `{"rope_type": "yarn", "factor": 2, "beta_slow": -1}`, []string{"yarn", "beta_slow is -1"}},
		{"llama", "rope_scaling", `{"rope_type": "yarn", "factor": 2, "attention_factor": -1}`, []string{"yarn", "attention_factor is -1"}},
		{"llama", "rope_scaling", `{"rope_type": "llama3", "factor": 8, "low_freq_factor": 0}`, []string{"llama3", "low_freq_factor is 0"}},
		{"llama", "rope_scaling", `{"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4}`, []string{"llama3", "high_freq_factor is 4"}},
		{"llama", "rope_scaling", `{"rope_type": "default", "partial_rotary_factor": 0.5}`, []string{"rope_scaling.partial_rotary_factor is 0.5"}},
		{"llama", "rope_scaling", `{"rope_type": "yarn", "factor": 2, "truncate": false}`, []string{"rope_scaling.truncate is false"}},
		{"llama", "partial_rotary_factor", `0.5`, []string{"partial_rotary_factor is 0.5"}},
		{"llama", "rope_scaling", `"linear"`, []string{"rope_scaling is a JSON string", "an object"}},
		{"llama", "rope_parameters", `{"rope_theta": "x"}`, []string{"rope_parameters.rope_theta is a JSON string"}},
		{"llama", "rope_parameters", `[]`, []string{"rope_parameters is a JSON array", "an object"}},
		{"gemma3_text", "rope_parameters", `{"full_attention": {"rope_theta": "x"}, "sliding_attention": {}}`, []string{"rope_parameters.full_attention.rope_theta is a JSON string"}},
		{"gemma3_text", "rope_parameters", `{"full_attention": {}, "sliding_attention": {"rope_type": "yarn", "factor": 0}}`, []string{"sliding layers", "factor is 0"}},
		{"gemma3_text", "rope_parameters", `{"sliding_attention": {}}`, []string{"rope_parameters.full_attention"}},
		{"gemma3_text", "rope_local_base_freq", `0`, []string{"sliding layers", "sliding layers: rope_local_base_freq is 0"}},

		// Windows and layer lists.
		{"mistral", "sliding_window", `0`, []string{"sliding_window is 0"}},
		{"mistral", "sliding_window", `-4096`, []string{"sliding_window is -4096"}},
		{"mistral", "sliding_window", `"4096"`, []string{"sliding_window is a JSON string"}},
		{"gemma3_text", "sliding_window", `0`, []string{"sliding_window is 0"}},
		{"gemma3_text", "sliding_window_pattern", `0`, []string{"sliding_window_pattern is 0"}},
		{"gemma3_text", "layer_types", `["full_attention"]`, []string{"layer_types has 1 entries, expected 4"}},
		{"gemma3_text", "layer_types", `["a", "b", "c", "d"]`, []string{`layer_types: "a" is not supported`}},
		{"gemma3_text", "layer_types", `"full_attention"`, []string{"layer_types is a JSON string", "a list"}},
		{"gemma3_text", "query_pre_attn_scalar", `0`, []string{"query_pre_attn_scalar is 0"}},
		{"gemma3_text", "final_logit_softcapping", `30.0`, []string{"final_logit_softcapping"}},
		{"gemma3_text", "use_bidirectional_attention", `true`, []string{"use_bidirectional_attention"}},
		{"smollm3", "no_rope_layers", `[1, 0]`, []string{"no_rope_layers has 2 flags, expected 4"}},
		{"smollm3", "no_rope_layers", `[true, true, true, true]`, []string{"no_rope_layers", "an integer"}},
		{"smollm3", "no_rope_layer_interval", `0`, []string{"no_rope_layer_interval is 0"}},

		// Nesting.
		{"llama", "text_config", `"x"`, []string{"text_config is a JSON string", "an object"}},
		{"llama", "text_config", `{"model_type": "llama"}`, []string{"hidden_size is missing"}},
		{"llama", "text_config", `{"hidden_size": "64"}`, []string{"text_config.hidden_size is a JSON string"}},
		{"llama", "text_config", `{"text_config": {}}`, []string{"hidden_size is missing"}},
		{"llama", "extra", strings.Repeat("[", 1e5) + strings.Repeat("]", 1e5), []string{"depth"}},
		{"llama", "rope_scaling", strings.Repeat(`{"a":`, 1e5) + "1" + strings.Repeat("}", 1e5), []string{"depth"}},
		{"llama", "hidden_size", strings.Repeat("9", 1e5), []string{"hidden_size is a JSON number 9999"}},
		{"llama", "model_type", `"` + strings.Repeat("x", 1e5) + `"`, []string{"is not supported"}},
	} {
		name := fmt.Sprintf("%s/%s=%.30s", tc.family, tc.field, tc.value)
		t.Run(name, func(t *testing.T) {
			if _, err := parse(plainJSON(tc.family, nil)); err != nil {
				t.Fatalf("the unbroken file: %v", err)
			}
			_, err := parse(plainJSON(tc.family, map[string]string{tc.field: tc.value}))
			checkError(t, err, tc.want...)
		})
	}
}

func TestFilesThatAreNoConfig(t *testing.T) {
	for _, tc := range []struct{ data, want string }{
		{``, "unexpected end of JSON input"},
		{`null`, `"" is not supported`},
		{`[]`, "the file is a JSON array, expected an object"},
		{`"llama"`, "the file is a JSON string, expected an object"},
		{`{`, "unexpected end of JSON input"},
		{`{} {}`, "after top-level value"},
	} {
		_, err := parse(tc.data)
		checkError(t, err, tc.want)
	}
	_, err := hfToConfig(nil)
	checkError(t, err, "missing")
}

// checkError checks that err is one short line with the given parts.
func checkError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, expected one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q, expected %q in it", err, part)
		}
	}
	if len(err.Error()) > 400 || strings.ContainsAny(err.Error(), "\n\r\x00") {
		t.Errorf("error %.600q, expected one short line", err)
	}
}

// FuzzConfig: any config.json gives an error of one line or a Config whose
// sizes are sound.
func FuzzConfig(f *testing.F) {
	for _, family := range []string{"llama", "mistral", "qwen2", "qwen3", "smollm3", "gemma3_text", "mixtral", "qwen3_moe"} {
		f.Add(plainJSON(family, nil))
	}
	f.Add(plainJSON("mistral", map[string]string{"sliding_window": "16", "head_dim": "128"}))
	f.Add(plainJSON("qwen2", map[string]string{"sliding_window": "16", "use_sliding_window": "true", "max_window_layers": "2"}))
	f.Add(plainJSON("smollm3", map[string]string{"no_rope_layers": "[1, 1, 1, 0]", "eos_token_id": "[1, 2]"}))
	f.Add(plainJSON("llama", map[string]string{"rope_scaling": `{"rope_type": "yarn", "factor": 4, "mscale": 1, "mscale_all_dim": 1}`}))
	f.Add(plainJSON("llama", map[string]string{"rope_parameters": `{"type": "llama3", "factor": 8, "rope_theta": 5e5}`}))
	f.Add(plainJSON("gemma3_text", map[string]string{"rope_parameters": `{"full_attention": {"rope_theta": 1e6}, "sliding_attention": {}}`}))
	f.Add(deepseek4JSON(f, false, nil))
	f.Add(deepseek4JSON(f, true, nil))
	f.Add(`{"model_type": "gemma3", "text_config": ` + plainJSON("gemma3_text", nil) + `}`)
	for _, family := range []string{"deepseek_v2", "deepseek_v3", "deepseek_v32"} {
		f.Add(deepseekJSON(family, nil))
	}
	f.Add(nsaJSON(nil))
	f.Add(nsaJSON(map[string]string{"block_size": "32", "window_size": "0", "intermediate_size": "512"}))
	f.Fuzz(func(t *testing.T, data string) {
		c, err := parse(data)
		if err != nil {
			if json.Valid([]byte(data)) {
				checkError(t, err)
			}
			return
		}
		checkSound(t, c)
	})
}

// checkSound checks what everything that reads a Config relies on.
func checkSound(t *testing.T, c *Config) {
	t.Helper()
	for _, n := range []int{c.Hidden, c.Layers, c.Heads, c.KVHeads, c.HeadDim, c.Intermediate, c.Vocab, c.Context} {
		if n < 1 {
			t.Fatalf("a size of %d in %+v", n, c)
		}
	}
	rotated := c.HeadDim
	if c.MLA != nil {
		rotated = c.MLA.RopeDim
		if c.MLA.Validate() != nil || c.HeadDim != c.MLA.HeadDim() || c.Indexer != nil && c.Indexer.Validate(rotated) != nil {
			t.Fatalf("unsound: %+v", c)
		}
	}
	if v := c.V4; v != nil {
		rotated = c.Rope.Dim
		switch {
		case c.KVHeads != 1, rotated > c.HeadDim, v.QueryRank < 1, v.OutRank < 1, v.OutGroups < 1, c.Heads%v.OutGroups != 0, c.Window < 1,
			len(v.Ratios) < c.Layers, v.HashLayers < 0, v.HashLayers > c.Layers, v.IndexDim < rotated, v.IndexHeads < 1, v.IndexTopK < 1,
			c.MoE == nil, v.Hyper.Validate() != nil:
			t.Fatalf("unsound: %+v, %+v", c, v)
		}
	}
	switch {
	case c.Layers > maxLayers, c.Heads%c.KVHeads != 0, rotated%2 != 0, !(c.QueryScale > 0), c.MTPLayers < 0,
		c.MoE != nil && c.MoE.Validate() != nil, c.Dense != nil && len(c.Dense) != c.Layers+c.MTPLayers,
		c.NoRope != nil && len(c.NoRope) != c.Layers,
		c.Sliding != nil && (len(c.Sliding) != c.Layers || c.Window < 1),
		c.Rope.Validate() != nil, c.Rope.Dim != rotated,
		c.NSA != nil && (c.NSA.Stride < 1 || c.NSA.Select < c.NSA.Initial+c.NSA.Local || c.NSA.Window < 0),
		c.LocalRope != nil && (c.LocalRope.Validate() != nil || c.LocalRope.Dim != rotated):
		t.Fatalf("unsound: %+v", c)
	}
	for _, id := range append(c.EOS, max(c.BOS, 0)) {
		if id < 0 || int(id) >= c.Vocab {
			t.Fatalf("token %d of %d", id, c.Vocab)
		}
	}
}
