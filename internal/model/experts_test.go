package model

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/model/moe"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/testmodel"
)

func TestExpertConfigs(t *testing.T) {
	mixtral := Config{
		Architecture: "mixtral", Hidden: 4096, Layers: 32, Heads: 32, KVHeads: 8, HeadDim: 128, Intermediate: 14336, Vocab: 32000, Context: 32768,
		NormEps: 1e-5, QueryScale: 1 / math.Sqrt(128), Rope: nn.RopeConfig{Theta: 1e6, Dim: 128}, BOS: 1, EOS: []int32{2},
		MoE: &moe.Config{Experts: 8, Active: 2, Inner: 14336, Scoring: moe.Softmax, GroupTop: 1, Normalize: true, Scale: 1},
	}
	qwen := Config{
		Architecture: "qwen3_moe", Hidden: 2048, Layers: 6, Heads: 32, KVHeads: 4, HeadDim: 128, Intermediate: 6144, Vocab: 151936, Context: 40960,
		NormEps: 1e-6, QueryScale: 1 / math.Sqrt(128), Rope: nn.RopeConfig{Theta: 1e6, Dim: 128}, BOS: 151643, EOS: []int32{151645},
		MoE: &moe.Config{Experts: 128, Active: 8, Inner: 768, Scoring: moe.Softmax, GroupTop: 1, Normalize: true, Scale: 1},
	}
	const qwenJSON = `"model_type": "qwen3_moe", "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048,
		"intermediate_size": 6144, "max_position_embeddings": 40960, "max_window_layers": 48, "num_attention_heads": 32, "num_hidden_layers": 6,
		"num_key_value_heads": 4, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000.0, "sliding_window": null, "tie_word_embeddings": false,
		"use_sliding_window": false, "vocab_size": 151936, "output_router_logits": false, "router_aux_loss_coef": 0.001`
	withDense := func(layers ...int) Config {
		c := qwen
		c.Dense = make([]bool, 6)
		for _, i := range layers {
			c.Dense[i] = true
		}
		return c
	}
	unnormalized := qwen
	unnormalized.MoE = &moe.Config{Experts: 128, Active: 8, Inner: 768, Scoring: moe.Softmax, GroupTop: 1, Scale: 1}
	for _, tc := range []struct {
		name, json string
		want       Config
	}{
		{
			"Mixtral-8x7B", `{
			"model_type": "mixtral", "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096,
			"intermediate_size": 14336, "max_position_embeddings": 32768, "num_attention_heads": 32, "num_experts_per_tok": 2, "num_hidden_layers": 32,
			"num_key_value_heads": 8, "num_local_experts": 8, "output_router_logits": false, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
			"router_aux_loss_coef": 0.02, "sliding_window": null, "tie_word_embeddings": false, "vocab_size": 32000}`,
			mixtral,
		},
		{
			"Mixtral, defaults left out", `{
			"model_type": "mixtral", "bos_token_id": 1, "eos_token_id": 2, "hidden_size": 4096, "intermediate_size": 14336,
			"max_position_embeddings": 32768, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 32000}`,
			mixtral,
		},
		{"Qwen3-30B-A3B, 6 layers of it", `{` + qwenJSON + `, "decoder_sparse_step": 1, "mlp_only_layers": [], "moe_intermediate_size": 768,
			"norm_topk_prob": true, "num_experts": 128, "num_experts_per_tok": 8}`, qwen},
		{"not normalised, other defaults left out", `{` + qwenJSON + `}`, unnormalized},
		{"every second layer", `{` + qwenJSON + `, "decoder_sparse_step": 2, "norm_topk_prob": true}`, withDense(0, 2, 4)},
		{"layers named", `{` + qwenJSON + `, "mlp_only_layers": [5, 1], "norm_topk_prob": true}`, withDense(1, 5)},
		{"both", `{` + qwenJSON + `, "decoder_sparse_step": 3, "mlp_only_layers": [2], "norm_topk_prob": true}`, withDense(0, 1, 2, 3, 4)},
	} {
		got, err := parse(tc.json)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if diff := cmp.Diff(tc.want, *got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.name, diff)
		}
	}
}

func TestHostileExpertConfigs(t *testing.T) {
	for _, tc := range []struct {
		family, field, value string
		want                 []string // parts of the error
	}{
		{"mixtral", "num_local_experts", `0`, []string{"num_local_experts is 0, expected 1 to 4096"}},
		{"mixtral", "num_local_experts", `-8`, []string{"num_local_experts is -8"}},
		{"mixtral", "num_local_experts", `1000000000`, []string{"num_local_experts is 1000000000"}},
		{"mixtral", "num_local_experts", `"8"`, []string{"num_local_experts is a JSON string", "an integer"}},
		{"mixtral", "num_local_experts", `1`, []string{"num_experts_per_tok is 2, expected 1 to 1"}},
		{"mixtral", "num_experts_per_tok", `0`, []string{"num_experts_per_tok is 0, expected 1 to 8"}},
		{"mixtral", "num_experts_per_tok", `9`, []string{"num_experts_per_tok is 9, expected 1 to 8"}},
		{"mixtral", "num_experts_per_tok", `1.5`, []string{"num_experts_per_tok is a JSON number 1.5"}},
		{"mixtral", "intermediate_size", `0`, []string{"intermediate_size is 0"}},
		{"mixtral", "sliding_window", `0`, []string{"sliding_window is 0"}},
		{"mixtral", "num_hidden_layers", `1000000000`, []string{"num_hidden_layers is 1000000000"}},
		{"qwen3_moe", "num_experts", `0`, []string{"num_experts is 0, expected 1 to 4096"}},
		{"qwen3_moe", "num_experts", `[128]`, []string{"num_experts is a JSON array"}},
		{"qwen3_moe", "num_experts", `4`, []string{"num_experts_per_tok is 8, expected 1 to 4"}},
		{"qwen3_moe", "num_experts_per_tok", `-1`, []string{"num_experts_per_tok is -1, expected 1 to 128"}},
		{"qwen3_moe", "moe_intermediate_size", `0`, []string{"moe_intermediate_size is 0"}},
		{"qwen3_moe", "moe_intermediate_size", `1099511627776`, []string{"moe_intermediate_size is 1099511627776"}},
		{"qwen3_moe", "norm_topk_prob", `1`, []string{"norm_topk_prob is a JSON number", "true or false"}},
		{"qwen3_moe", "decoder_sparse_step", `0`, []string{"decoder_sparse_step is 0, expected a positive number"}},
		{"qwen3_moe", "decoder_sparse_step", `-1`, []string{"decoder_sparse_step is -1"}},
		{"qwen3_moe", "mlp_only_layers", `[4]`, []string{"mlp_only_layers has 4, expected 0 to 3"}},
		{"qwen3_moe", "mlp_only_layers", `[-1]`, []string{"mlp_only_layers has -1"}},
		{"qwen3_moe", "mlp_only_layers", `3`, []string{"mlp_only_layers is a JSON number", "a list"}},
		{"qwen3_moe", "num_hidden_layers", `1000000000`, []string{"num_hidden_layers is 1000000000"}},
	} {
		_, err := parse(plainJSON(tc.family, map[string]string{tc.field: tc.value}))
		checkError(t, err, tc.want...)
	}
}

// A GGUF file without a stack of experts is told so by the name that it would have.
func TestMissingStack(t *testing.T) {
	for _, family := range []string{"mixtral", "qwen3_moe"} {
		m := testmodel.New(testmodel.Family(family))
		m.Tensors = slices.DeleteFunc(m.Tensors, func(t testmodel.Tensor) bool {
			return testmodel.Stacked(t.Name) == "model.layers.1.mlp.experts.gate_proj.weight"
		})
		_, gguf := writeForms(t, m)
		_, err := open(t, gguf)
		checkError(t, err, `no tensor "blk.1.ffn_gate_exps.weight"`)
	}
}
