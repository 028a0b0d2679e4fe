package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// deepseek4JSON is the configuration of a test model, in DeepSeek's words or in
// those of transformers, with changes; "-": the field is absent.
func deepseek4JSON(t testing.TB, native bool, changes map[string]string) string {
	t.Helper()
	spec := testmodel.Family("deepseek_v4")
	spec.MTP, spec.Compressed.Native = 1, native
	fields := maps.Clone(testmodel.New(spec).Config)
	for name, value := range changes {
		if fields[name] = json.RawMessage(value); value == "-" {
			delete(fields, name)
		}
	}
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// What transformers writes means what DeepSeek's own file says.
func TestDeepseek4NativeConfig(t *testing.T) {
	own, err := parse(deepseek4JSON(t, false, nil))
	if err != nil {
		t.Fatal(err)
	}
	native, err := parse(deepseek4JSON(t, true, nil))
	if err != nil {
		t.Fatal(err)
	}
	own.V4.Ratios = own.V4.Ratios[:own.Layers] // transformers does not count modules of multi-token prediction
	if diff := cmp.Diff(own, native); diff != "" {
		t.Errorf("-own +native:\n%s", diff)
	}
}

func TestDeepseek4Config(t *testing.T) {
	for _, tc := range []struct {
		native       bool
		field, value string // "-": absent
		want         func(*Config) (got, want any)
	}{
		{false, "num_nextn_predict_layers", "1", func(c *Config) (any, any) { return []any{c.MTPLayers, c.V4.Ratios}, []any{1, []int{0, 4, 128, 4, 0}} }},
		{false, "num_nextn_predict_layers", "0", func(c *Config) (any, any) { return c.MTPLayers, 0 }}, // it is counted all the same
		{false, "compress_ratios", "[0, 4, 128, 4]", func(c *Config) (any, any) { return c.V4.Ratios, []int{0, 4, 128, 4} }},
		{false, "compress_rope_theta", "-", func(c *Config) (any, any) {
			return []any{c.Rope.Theta, c.LocalRope.Theta}, []any{160000.0, 10000.0}
		}},
		{false, "rope_scaling", `{"type": "yarn", "factor": 16, "original_max_position_embeddings": 64}`, func(c *Config) (any, any) {
			return []any{c.Rope.Scaling.Factor, c.Rope.Scaling.Attention, c.LocalRope.Scaling.Type, c.QueryScale}, []any{16.0, 1.0, "", 1 / math.Sqrt(80)} // no mscale
		}},
		{false, "num_key_value_heads", "-", func(c *Config) (any, any) { return c.KVHeads, 1 }},
		{false, "swiglu_limit", "-", func(c *Config) (any, any) { return c.MoE.Limit, 0.0 }},
		{false, "n_shared_experts", "0", func(c *Config) (any, any) { return c.MoE.Shared, 0 }},
		{true, "mlp_layer_types", "-", func(c *Config) (any, any) { return c.V4.HashLayers, 3 }},
		{true, "partial_rotary_factor", "0.1", func(c *Config) (any, any) { return c.Rope.Dim, 8 }},
		{true, "rope_parameters", `{"rope_type": "yarn", "factor": 4, "partial_rotary_factor": 0.2}`, func(c *Config) (any, any) {
			return []any{c.Rope.Theta, c.Rope.Scaling.Factor, c.LocalRope.Theta}, []any{160000.0, 4.0, 10000.0}
		}},
	} {
		t.Run(fmt.Sprintf("%s=%s", tc.field, tc.value), func(t *testing.T) {
			c, err := parse(deepseek4JSON(t, tc.native, map[string]string{tc.field: tc.value}))
			if err != nil {
				t.Fatal(err)
			}
			got, want := tc.want(c)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestHostileDeepseek4Configs(t *testing.T) {
	for _, tc := range []struct {
		native       bool
		field, value string   // "-": absent
		want         []string // parts of the error
	}{
		{false, "model_type", `"deepseek_v41"`, []string{`"deepseek_v41" is not supported`, "another architecture than deepseek_v4"}},

		{false, "compress_ratios", `-`, []string{"compress_ratios is missing"}},
		{false, "compress_ratios", `[0, 4, 128]`, []string{"compress_ratios has 3 entries", "4 layers"}},
		{false, "compress_ratios", `[]`, []string{"compress_ratios has 0 entries"}},
		{false, "compress_ratios", `[0, 4, 128, 4, 0, 0]`, []string{"compress_ratios has 6 entries", "expected 5"}},
		{false, "compress_ratios", `[0, 8, 128, 4, 0]`, []string{"compress_ratios[1] is 8", "0, 4 or 128"}},
		{false, "compress_ratios", `[0, -4, 128, 4, 0]`, []string{"compress_ratios[1] is -4"}},
		{false, "compress_ratios", `[0, 4.5, 128, 4, 0]`, []string{"compress_ratios", "an integer"}},
		{false, "compress_ratios", `4`, []string{"compress_ratios is a JSON number", "a list"}},
		{false, "compress_rope_theta", `0`, []string{"layers with a compressor: compress_rope_theta is 0"}},
		{false, "rope_scaling", `{"type": "yarn", "factor": 0}`, []string{"yarn", "factor is 0"}},
		{false, "rope_scaling", `{"type": "dynamic", "factor": 2}`, []string{`"dynamic" is not supported`}},

		{false, "num_key_value_heads", `2`, []string{"num_key_value_heads is 2, expected 1"}},
		{false, "head_dim", `8`, []string{"qk_rope_head_dim is 16", "2 to 8"}},
		{false, "head_dim", `0`, []string{"head_dim is 0"}},
		{false, "head_dim", `81`, []string{"head_dim is 81", "even"}},
		{false, "qk_rope_head_dim", `0`, []string{"qk_rope_head_dim is 0"}},
		{false, "qk_rope_head_dim", `7`, []string{"qk_rope_head_dim is 7", "even"}},
		{false, "qk_rope_head_dim", `96`, []string{"qk_rope_head_dim is 96", "2 to 80"}},
		{false, "q_lora_rank", `0`, []string{"q_lora_rank is 0"}},
		{false, "q_lora_rank", `1000000000000`, []string{"q_lora_rank is 1000000000000"}},
		{false, "o_groups", `3`, []string{"num_attention_heads is 4", "o_groups 3"}},
		{false, "o_groups", `0`, []string{"o_groups is 0", "1 to 4"}},
		{false, "o_groups", `8`, []string{"o_groups is 8", "1 to 4"}},
		{false, "o_lora_rank", `-1`, []string{"o_lora_rank is -1"}},
		{false, "sliding_window", `0`, []string{"sliding_window is 0"}},
		{false, "sliding_window", `1000000000`, []string{"sliding_window is 1000000000"}},

		{false, "index_n_heads", `0`, []string{"index_n_heads is 0"}},
		{false, "index_head_dim", `8`, []string{"index_head_dim is 8", "16 to"}},
		{false, "index_topk", `0`, []string{"index_topk is 0"}},
		{false, "index_topk", `4294967296`, []string{"index_topk is 4294967296"}},

		{false, "hc_mult", `3`, []string{"hc_mult is 3, expected 4"}},
		{false, "hc_sinkhorn_iters", `0`, []string{"hc_sinkhorn_iters is 0"}},
		{false, "hc_sinkhorn_iters", `1000000000`, []string{"hc_sinkhorn_iters is 1000000000"}},
		{false, "hc_eps", `0`, []string{"hc_eps is 0"}},
		{false, "hc_eps", `1e300`, []string{"hc_eps is +Inf"}},
		{false, "hidden_size", `60`, []string{"hidden size", "60", "multiple of 8"}},

		{false, "num_hash_layers", `5`, []string{"num_hash_layers is 5", "0 to 4"}},
		{false, "num_hash_layers", `-1`, []string{"num_hash_layers is -1"}},
		{false, "num_nextn_predict_layers", `-1`, []string{"num_nextn_predict_layers is -1"}},
		{false, "num_nextn_predict_layers", `1000000000`, []string{"num_nextn_predict_layers is 1000000000"}},

		{false, "n_routed_experts", `-`, []string{"n_routed_experts is missing"}},
		{false, "n_routed_experts", `0`, []string{"n_routed_experts is 0"}},
		{false, "n_routed_experts", `1000000000`, []string{"n_routed_experts is 1000000000"}},
		{false, "num_experts_per_tok", `7`, []string{"num_experts_per_tok is 7", "1 to 6"}},
		{false, "num_experts_per_tok", `0`, []string{"num_experts_per_tok is 0"}},
		{false, "moe_intermediate_size", `-1`, []string{"moe_intermediate_size is -1"}},
		{false, "n_shared_experts", `-1`, []string{"n_shared_experts is -1"}},
		{false, "n_shared_experts", `4611686018427387904`, []string{"n_shared_experts is 4611686018427387904"}},
		{false, "scoring_func", `"relu\n"`, []string{`scoring_func "relu\n" is not supported`}},
		{false, "topk_method", `"greedy"`, []string{`topk_method "greedy" is not supported: expected noaux_tc`}},
		{false, "topk_method", `3`, []string{"topk_method is a JSON number", "a string"}},
		{true, "topk_method", `"random\nchoice"`, []string{`topk_method "random\nchoice" is not supported`}},
		{false, "rope_scaling", `{"type": "yarn", "factor": 16, "mscale": -1}`, []string{"rope_scaling.mscale is -1"}},
		{false, "swiglu_limit", `-10`, []string{"swiglu_limit is -10"}},
		{false, "routed_scaling_factor", `0`, []string{"routed_scaling_factor is 0"}},

		{true, "layer_types", `-`, []string{"compress_ratios is missing"}},
		{true, "layer_types", `["sliding_attention"]`, []string{"layer_types has 1 entries, expected 4"}},
		{true, "layer_types", `["a", "b", "c", "d"]`, []string{`layer_types: "a" is not supported`}},
		{true, "compress_rates", `{"compressed_sparse_attention": 8}`, []string{"compress_rates has 8", "compressed_sparse_attention", "4"}},
		{true, "compress_rates", `{"other": 4}`, []string{"compress_rates", `"other"`}},
		{true, "mlp_layer_types", `["moe"]`, []string{"mlp_layer_types has 1 entries, expected 4"}},
		{true, "mlp_layer_types", `["hash_moe", "moe", "hash_moe", "moe"]`, []string{`mlp_layer_types: "hash_moe" at 2`}},
		{true, "mlp_layer_types", `["hash_moe", "dense", "moe", "moe"]`, []string{`mlp_layer_types: "dense" at 1`}},
		{true, "partial_rotary_factor", `-1`, []string{"qk_rope_head_dim is -"}},
		{true, "partial_rotary_factor", `1e300`, []string{"qk_rope_head_dim is"}},
		{true, "partial_rotary_factor", `"x"`, []string{"partial_rotary_factor is a JSON string", "a number"}},
		{true, "rope_parameters", `{"main": {}}`, []string{"rope_parameters", "main and compress"}},
		{true, "rope_parameters", `{"main": {"rope_type": "yarn"}, "compress": {}}`, []string{`rope_parameters.main.rope_type is "yarn"`}},
		{true, "rope_parameters", `{"main": {}, "compress": {"rope_type": "yarn", "factor": "x"}}`, []string{"rope_parameters.compress.factor is a JSON string"}},
		{true, "rope_parameters", `[]`, []string{"rope_parameters is a JSON array", "an object"}},
	} {
		t.Run(fmt.Sprintf("%s=%.40s", tc.field, tc.value), func(t *testing.T) {
			if _, err := parse(deepseek4JSON(t, tc.native, nil)); err != nil {
				t.Fatalf("the unbroken file: %v", err)
			}
			_, err := parse(deepseek4JSON(t, tc.native, map[string]string{tc.field: tc.value}))
			checkError(t, err, tc.want...)
		})
	}
}

func TestHostileDeepseek4GGUFConfigs(t *testing.T) {
	for _, tc := range []struct {
		key   string
		value any // nil: absent
		want  []string
	}{
		{"attention.compress_ratios", nil, []string{"key deepseek4.attention.compress_ratios has 0 entries", "4 layers"}},
		{"attention.compress_ratios", []int32{0, 4, 128}, []string{"compress_ratios has 3 entries"}},
		{"attention.compress_ratios", []int32{0, 4, 64, 4}, []string{"key deepseek4.attention.compress_ratios[2] is 64"}},
		{"attention.compress_ratios", uint32(4), []string{"key deepseek4.attention.compress_ratios", "a list"}},
		{"attention.head_count_kv", uint32(2), []string{"key deepseek4.attention.head_count_kv is 2, expected 1"}},
		{"attention.key_length", nil, []string{"key deepseek4.attention.key_length is missing"}},
		{"attention.key_length", uint32(8), []string{"key deepseek4.rope.dimension_count is 16"}},
		{"attention.q_lora_rank", nil, []string{"key deepseek4.attention.q_lora_rank is missing"}},
		{"attention.output_group_count", uint32(3), []string{"key deepseek4.attention.head_count is 4", "deepseek4.attention.output_group_count 3"}},
		{"attention.output_lora_rank", uint32(0), []string{"key deepseek4.attention.output_lora_rank is 0"}},
		{"attention.sliding_window", int32(-1), []string{"key deepseek4.attention.sliding_window is -1"}},
		{"attention.indexer.key_length", uint32(4), []string{"key deepseek4.attention.indexer.key_length is 4"}},
		{"attention.indexer.top_k", nil, []string{"key deepseek4.attention.indexer.top_k is missing"}},
		{"attention.compress_rope_freq_base", float32(-1), []string{"layers with a compressor: deepseek4.attention.compress_rope_freq_base is -1"}},
		{"rope.freq_base", float32(-1), []string{"layers without a compressor: deepseek4.rope.freq_base is -1"}},
		{"hash_layer_count", uint32(5), []string{"key deepseek4.hash_layer_count is 5"}},
		{"hyper_connection.count", uint32(3), []string{"key deepseek4.hyper_connection.count is 3, expected 4"}},
		{"hyper_connection.sinkhorn_iterations", nil, []string{"sinkhorn_iterations is missing"}},
		{"hyper_connection.epsilon", float32(0), []string{"key deepseek4.hyper_connection.epsilon is 0"}},
		{"expert_count", nil, []string{"key deepseek4.expert_count is missing"}},
		{"expert_count", uint32(0), []string{"expert_count"}},
		{"expert_used_count", uint32(7), []string{"key deepseek4.expert_used_count is 7"}},
		{"expert_gating_func", uint32(3), []string{"expert_gating_func is 3"}},
		{"swiglu_clamp_exp", []float32{1, 1, 2, 1}, []string{"swiglu_clamp_exp", "one value for all layers"}},
		{"swiglu_clamp_shexp", []float32{2, 2, 2, 2}, []string{"swiglu_clamp_shexp", "one value for all layers"}},
		{"swiglu_clamp_exp", "10", []string{"key deepseek4.swiglu_clamp_exp", "a list of numbers"}},
	} {
		t.Run(fmt.Sprintf("%s=%v", tc.key, tc.value), func(t *testing.T) {
			_, err := deepseekGGUFConfig(t, testmodel.Family("deepseek_v4"), "deepseek4."+tc.key, tc.value)
			checkError(t, err, tc.want...)
		})
	}
}

// A GGUF file counts modules of multi-token prediction with the layers, if it has
// them: they are passed over, and cannot be asked for.
func TestDeepseek4GGUFWithMTP(t *testing.T) {
	m := testmodel.New(testmodel.Family("deepseek_v4"))
	m.SetMetadata("deepseek4.nextn_predict_layers", uint32(1))
	check := func(layers, modules int) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "model.gguf")
		if err := m.WriteGGUF(path); err != nil {
			t.Fatal(err)
		}
		loaded, err := open(t, path)
		if err != nil {
			t.Fatal(err)
		}
		if c := loaded.Config(); c.Layers != layers || c.MTPLayers != modules || len(loaded.Layers()) != layers || len(loaded.Cache()) != layers {
			t.Errorf("%d layers and %d modules, want %d and %d", c.Layers, c.MTPLayers, layers, modules)
		}
		return path
	}
	check(4, 0)
	m.Tensors = append(m.Tensors, testmodel.Tensor{Name: "blk.3.nextn.eh_proj.weight", Shape: []int{64, 128}, Values: make([]float32, 64*128)})
	c, err := checkpoint.Open(check(3, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = Load(c, Options{MTP: true})
	checkError(t, err, "multi-token prediction", "safetensors")
}

// Tables of experts hold numbers of experts.
func TestHashTables(t *testing.T) {
	for _, value := range []float32{-1, 6, 1 << 20} {
		m := testmodel.New(testmodel.Family("deepseek_v4"))
		m.Tensor("model.layers.1.mlp.gate.tid2eid").Values[7] = value
		safetensors, gguf := writeForms(t, m)
		for _, path := range []string{safetensors, gguf} {
			_, err := open(t, path)
			checkError(t, err, "tid2eid", "row 2", "from 0 to 5")
		}
	}
}
