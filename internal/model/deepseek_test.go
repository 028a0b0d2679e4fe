package model

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/model/attention"
	"github.com/foretoken/foretoken/internal/model/moe"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// Configurations of published models, with the keys that say something.
func TestPublishedDeepseekConfigs(t *testing.T) {
	yarn := func(factor, attention float64) nn.RopeScaling {
		return nn.RopeScaling{Type: "yarn", Factor: factor, Original: 4096, LowFreq: 1, HighFreq: 4, BetaFast: 32, BetaSlow: 1, Attention: attention}
	}
	dense := func(first, all int) []bool {
		d := make([]bool, all)
		for i := range first {
			d[i] = true
		}
		return d
	}
	const v3 = `"model_type": %q, "architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "bos_token_id": 0, "eos_token_id": 1, "ep_size": 1,
		"first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512, "max_position_embeddings": 163840,
		"moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 128,
		"num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128, "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
		"qk_rope_head_dim": 64, "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]},
		"rms_norm_eps": 1e-06, "rope_theta": 10000, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "tie_word_embeddings": false, "topk_group": 4,
		"topk_method": "noaux_tc", "v_head_dim": 128, "vocab_size": 129280,
		"rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096, "type": "yarn"}`
	wantV3 := Config{
		Architecture: "deepseek_v3", Hidden: 7168, Layers: 61, Heads: 128, KVHeads: 128, HeadDim: 192, Intermediate: 18432, Vocab: 129280, Context: 163840,
		NormEps: 1e-6, QueryScale: 1.8738542 / math.Sqrt(192), Rope: nn.RopeConfig{Theta: 10000, Dim: 64, Interleaved: true, Scaling: yarn(40, 1)},
		MLA: &attention.MLAConfig{QueryRank: 1536, Rank: 512, NopeDim: 128, RopeDim: 64, ValueDim: 128},
		MoE: &moe.Config{
			Experts: 256, Active: 8, Inner: 2048, Shared: 2048, Scoring: moe.Sigmoid, Bias: true, Groups: 8, ActiveGroups: 4, GroupTop: 2, Normalize: true, Scale: 2.5,
		},
		Dense: dense(3, 62), MTPLayers: 1, BOS: 0, EOS: []int32{1},
	}
	wantV32 := wantV3
	wantV32.Architecture, wantV32.Indexer = "deepseek_v32", &attention.IndexerConfig{Heads: 64, Dim: 128, TopK: 2048}

	for _, tc := range []struct {
		name, json string
		want       Config
	}{
		{"DeepSeek-V3", "{" + fmt.Sprintf(v3, "deepseek_v3") + "}", wantV3},
		{"DeepSeek-V3.2", "{" + fmt.Sprintf(v3, "deepseek_v32") + `, "index_head_dim": 128, "index_n_heads": 64, "index_topk": 2048}`, wantV32},
		{
			"DeepSeek-V2-Lite", `{
			"model_type": "deepseek_v2", "attention_bias": false, "aux_loss_alpha": 0.001, "bos_token_id": 100000, "eos_token_id": 100001, "first_k_dense_replace": 1,
			"hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 10944, "kv_lora_rank": 512, "max_position_embeddings": 163840, "moe_intermediate_size": 1408,
			"moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2, "norm_topk_prob": false, "num_attention_heads": 16, "num_experts_per_tok": 6,
			"num_hidden_layers": 27, "num_key_value_heads": 16, "q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06,
			"rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707, "original_max_position_embeddings": 4096, "type": "yarn"},
			"rope_theta": 10000, "routed_scaling_factor": 1.0, "scoring_func": "softmax", "tie_word_embeddings": false, "topk_group": 1, "topk_method": "greedy",
			"v_head_dim": 128, "vocab_size": 102400}`,
			Config{
				Architecture: "deepseek_v2", Hidden: 2048, Layers: 27, Heads: 16, KVHeads: 16, HeadDim: 192, Intermediate: 10944, Vocab: 102400, Context: 163840,
				NormEps: 1e-6, QueryScale: 1.58962616 / math.Sqrt(192), Rope: nn.RopeConfig{Theta: 10000, Dim: 64, Interleaved: true, Scaling: yarn(40, 1)},
				MLA: &attention.MLAConfig{Rank: 512, NopeDim: 128, RopeDim: 64, ValueDim: 128},
				MoE: &moe.Config{Experts: 64, Active: 6, Inner: 1408, Shared: 2816, Scoring: moe.Softmax, GroupTop: 1, Scale: 1}, Dense: dense(1, 27), BOS: 100000, EOS: []int32{100001},
			},
		},
		{
			"DeepSeek-V2, with rope_parameters and transformers' own head_dim", `{
			"model_type": "deepseek_v2", "bos_token_id": 100000, "eos_token_id": 100001, "first_k_dense_replace": 1, "head_dim": 64, "hidden_size": 5120,
			"intermediate_size": 12288, "kv_lora_rank": 512, "max_position_embeddings": 163840, "moe_intermediate_size": 1536, "n_group": 8, "n_routed_experts": 160,
			"n_shared_experts": 2, "norm_topk_prob": false, "num_attention_heads": 128, "num_experts_per_tok": 6, "num_hidden_layers": 60, "num_key_value_heads": 128,
			"q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06, "routed_scaling_factor": 16.0, "topk_group": 3,
			"rope_parameters": {"rope_theta": 10000, "factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707, "original_max_position_embeddings": 4096, "rope_type": "yarn"},
			"topk_method": "group_limited_greedy", "v_head_dim": 128, "vocab_size": 102400}`,
			Config{
				Architecture: "deepseek_v2", Hidden: 5120, Layers: 60, Heads: 128, KVHeads: 128, HeadDim: 192, Intermediate: 12288, Vocab: 102400, Context: 163840,
				NormEps: 1e-6, QueryScale: 1.58962616 / math.Sqrt(192), Rope: nn.RopeConfig{Theta: 10000, Dim: 64, Interleaved: true, Scaling: yarn(40, 1)},
				MLA:   &attention.MLAConfig{QueryRank: 1536, Rank: 512, NopeDim: 128, RopeDim: 64, ValueDim: 128},
				MoE:   &moe.Config{Experts: 160, Active: 6, Inner: 1536, Shared: 3072, Scoring: moe.Softmax, Groups: 8, ActiveGroups: 3, GroupTop: 1, Scale: 16},
				Dense: dense(1, 60), BOS: 100000, EOS: []int32{100001},
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parse(tc.json)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(got.QueryScale/tc.want.QueryScale-1) > 1e-7 {
				t.Errorf("q·k is scaled by %v, want %v", got.QueryScale, tc.want.QueryScale)
			}
			got.QueryScale = tc.want.QueryScale
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// deepseekJSON is a valid configuration to break fields of.
func deepseekJSON(family string, changes map[string]string) string {
	fields := map[string]string{
		"q_lora_rank": "24", "kv_lora_rank": "32", "qk_nope_head_dim": "16", "qk_rope_head_dim": "8", "v_head_dim": "12",
		"n_routed_experts": "8", "num_experts_per_tok": "3", "moe_intermediate_size": "16", "n_shared_experts": "1", "n_group": "4", "topk_group": "2",
		"norm_topk_prob": "true", "routed_scaling_factor": "2.5", "first_k_dense_replace": "1", "num_nextn_predict_layers": "1",
		"index_n_heads": "4", "index_head_dim": "16", "index_topk": "12",
		"rope_scaling": `{"type": "yarn", "factor": 8, "original_max_position_embeddings": 64, "mscale": 1, "mscale_all_dim": 1}`,
	}
	if family == "deepseek_v2" {
		fields["topk_method"], fields["scoring_func"], fields["norm_topk_prob"] = `"group_limited_greedy"`, `"softmax"`, "false"
	}
	maps.Copy(fields, changes)
	return plainJSON(family, fields)
}

func TestHostileDeepseekConfigs(t *testing.T) {
	for _, tc := range []struct {
		family, field, value string
		want                 []string // parts of the error
	}{
		{"deepseek_v3", "kv_lora_rank", `null`, []string{"kv_lora_rank is missing"}},
		{"deepseek_v3", "kv_lora_rank", `0`, []string{"kv_lora_rank is 0", "1 to"}},
		{"deepseek_v3", "kv_lora_rank", `-512`, []string{"kv_lora_rank is -512"}},
		{"deepseek_v3", "kv_lora_rank", `1e12`, []string{"kv_lora_rank"}},
		{"deepseek_v3", "kv_lora_rank", `1000000000000`, []string{"kv_lora_rank is 1000000000000"}},
		{"deepseek_v3", "kv_lora_rank", `"512"`, []string{"kv_lora_rank is a JSON string", "an integer"}},
		{"deepseek_v3", "q_lora_rank", `0`, []string{"q_lora_rank is 0", "null"}},
		{"deepseek_v3", "q_lora_rank", `-1`, []string{"q_lora_rank is -1"}},
		{"deepseek_v3", "q_lora_rank", `9000000000`, []string{"q_lora_rank is 9000000000"}},
		{"deepseek_v3", "qk_nope_head_dim", `0`, []string{"qk_nope_head_dim is 0"}},
		{"deepseek_v3", "qk_nope_head_dim", `null`, []string{"qk_nope_head_dim is missing"}},
		{"deepseek_v3", "qk_rope_head_dim", `0`, []string{"qk_rope_head_dim is 0"}},
		{"deepseek_v3", "qk_rope_head_dim", `7`, []string{"qk_rope_head_dim is 7", "even"}},
		{"deepseek_v3", "v_head_dim", `0`, []string{"v_head_dim is 0"}},
		{"deepseek_v3", "v_head_dim", `-128`, []string{"v_head_dim is -128"}},
		{"deepseek_v3", "rope_interleave", `1`, []string{"rope_interleave", "true or false"}},
		{"deepseek_v3", "rope_scaling", `{"type": "yarn", "factor": 8, "mscale_all_dim": -1}`, []string{"mscale_all_dim is -1"}},
		{"deepseek_v3", "rope_scaling", `{"type": "yarn", "factor": 8, "mscale_all_dim": 1e300}`, []string{"mscale_all_dim is 1e+300"}},
		{"deepseek_v3", "rope_scaling", `{"type": "yarn", "factor": 8, "mscale": -1}`, []string{"rope_scaling.mscale is -1, expected 0 to 100"}},
		{"deepseek_v3", "rope_scaling", `{"type": "yarn", "factor": 8, "mscale": -1, "mscale_all_dim": 1}`, []string{"rope_scaling.mscale is -1"}},
		{"deepseek_v3", "rope_parameters", `{"rope_type": "yarn", "factor": 8, "mscale": -1}`, []string{"rope_parameters.mscale is -1"}},
		{"deepseek_v3", "rope_scaling", `{"type": "yarn", "factor": 0}`, []string{"yarn", "factor is 0"}},
		{"deepseek_v3", "rope_parameters", `{"rope_type": "yarn", "factor": 8, "mscale_all_dim": "x"}`, []string{"rope_parameters.mscale_all_dim is a JSON string"}},

		{"deepseek_v3", "n_routed_experts", `0`, []string{"n_routed_experts is 0"}},
		{"deepseek_v3", "n_routed_experts", `-8`, []string{"n_routed_experts is -8"}},
		{"deepseek_v3", "n_routed_experts", `1000000000`, []string{"n_routed_experts is 1000000000"}},
		{"deepseek_v3", "n_routed_experts", `10`, []string{"n_group is 4", "10 experts"}},
		{"deepseek_v3", "num_experts_per_tok", `null`, []string{"num_experts_per_tok is missing"}},
		{"deepseek_v3", "num_experts_per_tok", `0`, []string{"num_experts_per_tok is 0"}},
		{"deepseek_v3", "num_experts_per_tok", `9`, []string{"num_experts_per_tok is 9", "1 to 8"}},
		{"deepseek_v3", "num_experts_per_tok", `5`, []string{"topk_group is 2", "num_experts_per_tok 5"}},
		{"deepseek_v3", "moe_intermediate_size", `0`, []string{"moe_intermediate_size is 0"}},
		{"deepseek_v3", "moe_intermediate_size", `9000000000000000000`, []string{"moe_intermediate_size is 9000000000000000000"}},
		{"deepseek_v3", "n_shared_experts", `-1`, []string{"n_shared_experts is -1"}},
		{"deepseek_v3", "n_shared_experts", `4611686018427387904`, []string{"n_shared_experts is 4611686018427387904"}},
		{"deepseek_v3", "n_group", `0`, []string{"n_group is 0"}},
		{"deepseek_v3", "n_group", `-4`, []string{"n_group is -4"}},
		{"deepseek_v3", "n_group", `3`, []string{"n_group is 3", "divisor", "8 experts"}},
		{"deepseek_v3", "n_group", `8`, []string{"topk_group is 2", "1 experts", "num_experts_per_tok 3"}},
		{"deepseek_v2", "n_group", `3`, []string{"n_group is 3", "8 experts"}},
		{"deepseek_v3", "topk_group", `0`, []string{"topk_group is 0"}},
		{"deepseek_v3", "topk_group", `5`, []string{"topk_group is 5", "4"}},
		{"deepseek_v3", "scoring_func", `"sqrtsoftplus"`, []string{`scoring_func "sqrtsoftplus"`, "softmax or sigmoid"}},
		{"deepseek_v3", "scoring_func", `3`, []string{"scoring_func is a JSON number", "a string"}},
		{"deepseek_v2", "topk_method", `"random\nchoice"`, []string{`topk_method "random\nchoice"`, "noaux_tc"}},
		{"deepseek_v3", "routed_scaling_factor", `0`, []string{"routed_scaling_factor is 0"}},
		{"deepseek_v3", "routed_scaling_factor", `1e300`, []string{"routed_scaling_factor is 1e+300"}},
		{"deepseek_v3", "norm_topk_prob", `1`, []string{"norm_topk_prob", "true or false"}},
		{"deepseek_v3", "first_k_dense_replace", `-1`, []string{"first_k_dense_replace is -1"}},
		{"deepseek_v3", "first_k_dense_replace", `5`, []string{"first_k_dense_replace is 5", "4"}},
		{"deepseek_v3", "moe_layer_freq", `0`, []string{"moe_layer_freq is 0"}},
		{"deepseek_v3", "num_nextn_predict_layers", `-1`, []string{"num_nextn_predict_layers is -1"}},
		{"deepseek_v3", "num_nextn_predict_layers", `1000000000`, []string{"num_nextn_predict_layers is 1000000000"}},

		{"deepseek_v32", "index_n_heads", `null`, []string{"index_n_heads is missing"}},
		{"deepseek_v32", "index_n_heads", `0`, []string{"index_n_heads is 0"}},
		{"deepseek_v32", "index_head_dim", `4`, []string{"index_head_dim is 4", "qk_rope_head_dim 8"}},
		{"deepseek_v32", "index_head_dim", `-128`, []string{"index_head_dim is -128"}},
		{"deepseek_v32", "index_topk", `0`, []string{"index_topk is 0"}},
		{"deepseek_v32", "index_topk", `4294967296`, []string{"index_topk is 4294967296"}},
		{"deepseek_v32", "q_lora_rank", `null`, []string{"q_lora_rank is null", "indexer"}},
	} {
		name := fmt.Sprintf("%s/%s=%.30s", tc.family, tc.field, tc.value)
		t.Run(name, func(t *testing.T) {
			if _, err := parse(deepseekJSON(tc.family, nil)); err != nil {
				t.Fatalf("the unbroken file: %v", err)
			}
			_, err := parse(deepseekJSON(tc.family, map[string]string{tc.field: tc.value}))
			checkError(t, err, tc.want...)
		})
	}
}

// deepseekGGUFConfig reads the configuration of a file with one key changed; nil: it
// is absent.
func deepseekGGUFConfig(t *testing.T, spec testmodel.Spec, key string, value any) (*Config, error) {
	t.Helper()
	m := metadataOnly(testmodel.New(spec))
	m.SetMetadata(key, value)
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := m.WriteGGUF(path); err != nil {
		t.Fatal(err)
	}
	return readConfig(t, path)
}

func TestDeepseekGGUFKeys(t *testing.T) {
	for _, tc := range []struct {
		family, key string
		value       any // nil: absent
		want        func(*Config) (got, want any)
	}{
		{"deepseek_v3", "deepseek2.attention.q_lora_rank", nil, func(c *Config) (any, any) { return c.MLA.QueryRank, 0 }},
		{"deepseek_v3", "deepseek2.expert_gating_func", nil, func(c *Config) (any, any) { return []any{c.MoE.Scoring, c.MoE.Bias}, []any{moe.Softmax, false} }},
		{"deepseek_v3", "deepseek2.expert_count", nil, func(c *Config) (any, any) { return c.MoE, (*moe.Config)(nil) }},
		{"deepseek_v3", "deepseek2.expert_weights_scale", nil, func(c *Config) (any, any) { return c.MoE.Scale, 1.0 }},
		{"deepseek_v3", "deepseek2.leading_dense_block_count", nil, func(c *Config) (any, any) { return c.Dense, []bool{false, false, false} }},
		{"deepseek_v3", "deepseek2.nextn_predict_layers", uint32(1), func(c *Config) (any, any) {
			return []any{c.Layers, c.MTPLayers, c.Dense}, []any{2, 1, []bool{true, false, false}}
		}},
		{"deepseek_v3", "deepseek2.rope.scaling.yarn_log_multiplier", nil, func(c *Config) (any, any) {
			return []any{c.QueryScale, c.Rope.Scaling.Attention}, []any{1 / math.Sqrt(24), 1.0}
		}},
		{"deepseek_v3", "deepseek2.attention.head_count_kv", nil, func(c *Config) (any, any) { return c.KVHeads, 4 }},
	} {
		t.Run(fmt.Sprintf("%s=%v", tc.key, tc.value), func(t *testing.T) {
			c, err := deepseekGGUFConfig(t, testmodel.Family(tc.family), tc.key, tc.value)
			if err != nil {
				t.Fatal(err)
			}
			got, want := tc.want(c)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	// Old files say the widths of heads where new ones say those of latent vectors.
	joint := testmodel.Family("deepseek_v3")
	joint.Latent.Joint = true
	old, err := deepseekGGUFConfig(t, joint, "deepseek2.attention.key_length_mla", nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := deepseekGGUFConfig(t, testmodel.Family("deepseek_v3"), "general.name", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, old); diff != "" {
		t.Errorf("-new +old:\n%s", diff)
	}
}

func TestHostileDeepseekGGUF(t *testing.T) {
	for _, tc := range []struct {
		family, key string
		value       any // nil: absent
		want        []string
	}{
		{"deepseek_v3", "deepseek2.attention.kv_lora_rank", nil, []string{"key deepseek2.attention.kv_lora_rank is missing"}},
		{"deepseek_v3", "deepseek2.attention.kv_lora_rank", uint32(0), []string{"key deepseek2.attention.kv_lora_rank is 0"}},
		{"deepseek_v3", "deepseek2.attention.kv_lora_rank", uint32(1 << 30), []string{"kv_lora_rank is 1073741824"}},
		{"deepseek_v3", "deepseek2.attention.q_lora_rank", int32(-1), []string{"q_lora_rank is -1"}},
		{"deepseek_v3", "deepseek2.attention.key_length_mla", uint32(8), []string{"key_length_mla is 8", "rope.dimension_count 8"}},
		{"deepseek_v3", "deepseek2.attention.key_length_mla", "24", []string{"key deepseek2.attention.key_length_mla", "integer"}},
		{"deepseek_v3", "deepseek2.attention.value_length_mla", uint32(0), []string{"value_length_mla is 0"}},
		{"deepseek_v3", "deepseek2.rope.dimension_count", uint32(7), []string{"key deepseek2.rope.dimension_count is 7", "even"}},
		{"deepseek_v3", "deepseek2.rope.dimension_count", nil, []string{"key deepseek2.rope.dimension_count is missing"}},
		{"deepseek_v3", "deepseek2.rope.scaling.yarn_log_multiplier", float32(-1), []string{"key deepseek2.rope.scaling.yarn_log_multiplier is -1, expected 0 to 10"}},
		{"deepseek_v3", "deepseek2.rope.scaling.yarn_log_multiplier", float32(math.NaN()), []string{"yarn_log_multiplier"}},
		{"deepseek_v3", "deepseek2.nextn_predict_layers", uint32(3), []string{"nextn_predict_layers is 3", "0 to 2 of 3 blocks"}},
		{"deepseek_v3", "deepseek2.nextn_predict_layers", int32(-1), []string{"nextn_predict_layers is -1"}},
		{"deepseek_v3", "deepseek2.leading_dense_block_count", uint32(4), []string{"key deepseek2.leading_dense_block_count is 4"}},
		{"deepseek_v3", "deepseek2.expert_gating_func", uint32(9), []string{"expert_gating_func is 9"}},
		{"deepseek_v3", "deepseek2.expert_used_count", uint32(9), []string{"key deepseek2.expert_used_count is 9"}},
		{"deepseek_v3", "deepseek2.expert_group_count", uint32(3), []string{"key deepseek2.expert_group_count is 3"}},
		{"deepseek_v3", "deepseek2.expert_group_used_count", uint32(5), []string{"key deepseek2.expert_group_used_count is 5"}},
		{"deepseek_v3", "deepseek2.expert_shared_count", int32(-1), []string{"shared experts"}},
		{"deepseek_v32", "deepseek32.attention.indexer.head_count", nil, []string{"key deepseek32.attention.indexer.head_count is missing"}},
		{"deepseek_v32", "deepseek32.attention.indexer.key_length", uint32(4), []string{"key deepseek32.attention.indexer.key_length is 4", "deepseek32.rope.dimension_count 8"}},
		{"deepseek_v32", "deepseek32.attention.indexer.top_k", uint32(0), []string{"attention.indexer.top_k is 0"}},
		{"deepseek_v32", "deepseek32.attention.layer_norm_epsilon", float32(1e-5), []string{"key deepseek32.attention.layer_norm_epsilon is 1e-05", "1e-06"}},
		{"deepseek_v32", "deepseek32.attention.layer_norm_epsilon", float32(math.NaN()), []string{"layer_norm_epsilon is NaN"}},
		{"deepseek_v32", "deepseek32.attention.q_lora_rank", nil, []string{"q_lora_rank", "indexer"}},
	} {
		t.Run(fmt.Sprintf("%s=%v", tc.key, tc.value), func(t *testing.T) {
			_, err := deepseekGGUFConfig(t, testmodel.Family(tc.family), tc.key, tc.value)
			checkError(t, err, append(tc.want, "model.gguf")...)
		})
	}
}

// Modules of multi-token prediction are part of the model where they are asked
// for, and nothing is said of them elsewhere.
func TestLoadMTP(t *testing.T) {
	spec := testmodel.Family("deepseek_v3")
	spec.MTP = 2
	m := testmodel.New(spec)
	safetensors, gguf := writeForms(t, m)
	for _, path := range []string{safetensors, gguf} {
		for _, asked := range []bool{false, true} {
			model, err := openOptions(t, path, Options{MTP: asked})
			if err != nil {
				t.Fatal(err)
			}
			modules := 0
			if asked {
				modules = 2
			}
			if got := len(model.MTP()); got != modules || len(model.Layers()) != spec.Layers || len(model.Cache()) != spec.Layers+modules {
				t.Errorf("%s, asked %v: %d modules, %d layers, %d in the cache", path, asked, got, len(model.Layers()), len(model.Cache()))
			}
		}
	}
	// What is not asked for need not be there.
	for _, name := range []string{"enorm.weight", "hnorm.weight", "eh_proj.weight", "shared_head.norm.weight", "self_attn.o_proj.weight"} {
		name = fmt.Sprintf("model.layers.%d.%s", spec.Layers+1, name)
		broken := testmodel.New(spec)
		broken.Drop(name)
		safetensors, gguf := writeForms(t, broken)
		for _, path := range []string{safetensors, gguf} {
			if _, err := openOptions(t, path, Options{}); err != nil {
				t.Error(err)
			}
			_, err := openOptions(t, path, Options{MTP: true})
			checkError(t, err, name)
		}
	}
	// Copies of embedding and head need not be there either.
	bare := testmodel.New(spec)
	for _, t := range m.Tensors {
		if strings.HasSuffix(t.Name, ".embed_tokens.weight") && strings.HasPrefix(t.Name, "model.layers.") || strings.HasSuffix(t.Name, "shared_head.head.weight") {
			bare.Drop(t.Name)
		}
	}
	if safetensors, _ = writeForms(t, bare); len(bare.Tensors) != len(m.Tensors)-4 {
		t.Errorf("%d tensors of %d", len(bare.Tensors), len(m.Tensors))
	}
	if _, err := openOptions(t, safetensors, Options{MTP: true}); err != nil {
		t.Error(err)
	}
}

// Both tensors that GGUF files have in place of kv_b_proj are needed, in shapes
// that ranks and heads give.
func TestSplitKVB(t *testing.T) {
	spec := testmodel.Family("deepseek_v3")
	spec.Latent.Joint = true // the writer leaves tensors as they are
	whole := testmodel.New(spec)
	kvb := whole.Tensor("model.layers.1.self_attn.kv_b_proj.weight")
	l := spec.Latent
	k := testmodel.Tensor{Name: "model.layers.1.self_attn.k_b_proj.weight", Shape: []int{spec.Heads, l.Rank, l.NopeDim}, Values: kvb.Values[:spec.Heads*l.Rank*l.NopeDim]}
	v := testmodel.Tensor{Name: "model.layers.1.self_attn.v_b_proj.weight", Shape: []int{spec.Heads, l.ValueDim, l.Rank}, Values: kvb.Values[:spec.Heads*l.ValueDim*l.Rank]}
	turned := k
	turned.Shape = []int{spec.Heads, l.NopeDim, l.Rank}
	for _, tc := range []struct {
		name    string
		tensors []testmodel.Tensor
		want    []string // nil: no error
	}{
		{"both", []testmodel.Tensor{k, v}, nil},
		{"only keys", []testmodel.Tensor{k}, []string{"blk.1.attn_v_b.weight"}},
		{"only values", []testmodel.Tensor{v}, []string{"blk.1.attn_k_b.weight"}},
		{"keys not transposed", []testmodel.Tensor{turned, v}, []string{"blk.1.attn_k_b.weight", "[4, 16, 32]", "[4, 32, 16]"}},
		{"beside the whole", []testmodel.Tensor{k, v, *kvb}, []string{"blk.1.attn_kv_b.weight", "not part"}},
		{"none", nil, []string{"blk.1.attn_kv_b.weight"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := testmodel.New(spec)
			m.Drop(kvb.Name)
			m.Tensors = append(m.Tensors, tc.tensors...)
			path := filepath.Join(t.TempDir(), "model.gguf")
			if err := m.WriteGGUF(path); err != nil {
				t.Fatal(err)
			}
			_, err := open(t, path)
			if tc.want == nil && err == nil {
				return
			}
			checkError(t, err, tc.want...)
		})
	}
}
