package model

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/model/nn"
)

// parse is ReadConfig for a config.json without weights.
func parse(data string) (*Config, error) {
	c, err := hfToConfig([]byte(data))
	if err == nil {
		err = c.validate()
	}
	return c, err
}

// Configurations of published models, with the keys that say something.
func TestPublishedConfigs(t *testing.T) {
	llama3 := nn.RopeScaling{Type: "llama3", Factor: 8, Original: 8192, LowFreq: 1, HighFreq: 4, BetaFast: 32, BetaSlow: 1}
	llama32 := llama3
	llama32.Factor = 32
	linear8 := nn.RopeScaling{Type: "linear", Factor: 8, Original: 131072, LowFreq: 1, HighFreq: 4, BetaFast: 32, BetaSlow: 1}
	local := func(dim int) *nn.RopeConfig { return &nn.RopeConfig{Theta: 10000, Dim: dim} }

	for _, tc := range []struct {
		name, json string
		want       Config
	}{
		{
			"Llama-3.1-8B", `{
			"architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": false, "attention_dropout": 0.0, "mlp_bias": false,
			"bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
			"max_position_embeddings": 131072, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "pretraining_tp": 1,
			"rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"},
			"rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 128256}`,
			Config{
				Architecture: "llama", Hidden: 4096, Layers: 32, Heads: 32, KVHeads: 8, HeadDim: 128, Intermediate: 14336, Vocab: 128256, Context: 131072,
				NormEps: 1e-5, QueryScale: 1 / math.Sqrt(128), Rope: nn.RopeConfig{Theta: 5e5, Dim: 128, Scaling: llama3},
				BOS: 128000, EOS: []int32{128001, 128008, 128009},
			},
		},
		{
			"Llama-3.2-1B with rope_parameters", `{
			"model_type": "llama", "bos_token_id": 128000, "eos_token_id": 128001, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 8192,
			"max_position_embeddings": 131072, "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
			"rope_parameters": {"factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3", "rope_theta": 500000.0},
			"tie_word_embeddings": true, "dtype": "bfloat16", "vocab_size": 128256}`,
			Config{
				Architecture: "llama", Hidden: 2048, Layers: 16, Heads: 32, KVHeads: 8, HeadDim: 64, Intermediate: 8192, Vocab: 128256, Context: 131072,
				NormEps: 1e-5, QueryScale: 1 / math.Sqrt(64), TieEmbeddings: true, Rope: nn.RopeConfig{Theta: 5e5, Dim: 64, Scaling: llama32},
				BOS: 128000, EOS: []int32{128001},
			},
		},
		{
			"SmolLM2-135M", `{
			"model_type": "llama", "attention_bias": false, "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "silu", "hidden_size": 576, "intermediate_size": 1536,
			"is_llama_config": true, "max_position_embeddings": 8192, "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3,
			"rms_norm_eps": 1e-05, "rope_interleaved": false, "rope_scaling": null, "rope_theta": 100000, "tie_word_embeddings": true, "vocab_size": 49152}`,
			Config{
				Architecture: "llama", Hidden: 576, Layers: 30, Heads: 9, KVHeads: 3, HeadDim: 64, Intermediate: 1536, Vocab: 49152, Context: 8192,
				NormEps: 1e-5, QueryScale: 1 / math.Sqrt(64), TieEmbeddings: true, Rope: nn.RopeConfig{Theta: 1e5, Dim: 64}, BOS: 0, EOS: []int32{0},
			},
		},
		{
			"Mistral-7B-v0.1", `{
			"architectures": ["MistralForCausalLM"], "model_type": "mistral", "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096,
			"intermediate_size": 14336, "max_position_embeddings": 32768, "num_attention_heads": 32, "num_hidden_layers": 2, "num_key_value_heads": 8,
			"rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096, "tie_word_embeddings": false, "vocab_size": 32000}`,
			Config{
				Architecture: "mistral", Hidden: 4096, Layers: 2, Heads: 32, KVHeads: 8, HeadDim: 128, Intermediate: 14336, Vocab: 32000, Context: 32768,
				NormEps: 1e-5, QueryScale: 1 / math.Sqrt(128), Rope: nn.RopeConfig{Theta: 1e4, Dim: 128}, Window: 4096, Sliding: []bool{true, true},
				BOS: 1, EOS: []int32{2},
			},
		},
		{
			"Mistral-Nemo", `{
			"model_type": "mistral", "bos_token_id": 1, "eos_token_id": 2, "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 14336,
			"max_position_embeddings": 131072, "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
			"rope_theta": 1000000.0, "sliding_window": null, "tie_word_embeddings": false, "vocab_size": 131072}`,
			Config{
				Architecture: "mistral", Hidden: 5120, Layers: 40, Heads: 32, KVHeads: 8, HeadDim: 128, Intermediate: 14336, Vocab: 131072, Context: 131072,
				NormEps: 1e-5, QueryScale: 1 / math.Sqrt(128), Rope: nn.RopeConfig{Theta: 1e6, Dim: 128}, BOS: 1, EOS: []int32{2},
			},
		},
		{
			"Qwen2-0.5B", `{
			"model_type": "qwen2", "bos_token_id": 151643, "eos_token_id": 151645, "hidden_act": "silu", "hidden_size": 896, "intermediate_size": 4864,
			"max_position_embeddings": 32768, "max_window_layers": 24, "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2,
			"rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768, "tie_word_embeddings": true, "use_sliding_window": false, "vocab_size": 151936}`,
			Config{
				Architecture: "qwen2", Hidden: 896, Layers: 24, Heads: 14, KVHeads: 2, HeadDim: 64, Intermediate: 4864, Vocab: 151936, Context: 32768,
				NormEps: 1e-6, QueryScale: 1 / math.Sqrt(64), TieEmbeddings: true, Rope: nn.RopeConfig{Theta: 1e6, Dim: 64}, BOS: 151643, EOS: []int32{151645},
			},
		},
		{
			"Qwen3-0.6B", `{
			"model_type": "qwen3", "attention_bias": false, "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024,
			"intermediate_size": 3072, "max_position_embeddings": 40960, "max_window_layers": 28, "num_attention_heads": 16, "num_hidden_layers": 28,
			"num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": true,
			"use_sliding_window": false, "vocab_size": 151936}`,
			Config{
				Architecture: "qwen3", Hidden: 1024, Layers: 28, Heads: 16, KVHeads: 8, HeadDim: 128, Intermediate: 3072, Vocab: 151936, Context: 40960,
				NormEps: 1e-6, QueryScale: 1 / math.Sqrt(128), TieEmbeddings: true, Rope: nn.RopeConfig{Theta: 1e6, Dim: 128}, BOS: 151643, EOS: []int32{151645},
			},
		},
		{
			"Qwen3-0.6B with yarn as its card says", `{
			"model_type": "qwen3", "head_dim": 128, "hidden_size": 1024, "intermediate_size": 3072, "max_position_embeddings": 32768, "num_attention_heads": 16,
			"num_hidden_layers": 28, "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_theta": 1000000, "vocab_size": 151936, "tie_word_embeddings": true,
			"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}}`,
			Config{
				Architecture: "qwen3", Hidden: 1024, Layers: 28, Heads: 16, KVHeads: 8, HeadDim: 128, Intermediate: 3072, Vocab: 151936, Context: 32768,
				NormEps: 1e-6, QueryScale: 1 / math.Sqrt(128), TieEmbeddings: true, BOS: -1,
				Rope: nn.RopeConfig{Theta: 1e6, Dim: 128, Scaling: nn.RopeScaling{Type: "yarn", Factor: 4, Original: 32768, LowFreq: 1, HighFreq: 4, BetaFast: 32, BetaSlow: 1}},
			},
		},
		{
			"SmolLM3-3B, 8 layers of it", `{
			"model_type": "smollm3", "attention_bias": false, "bos_token_id": 128000, "eos_token_id": 128012, "hidden_act": "silu", "hidden_size": 2048,
			"intermediate_size": 11008, "max_position_embeddings": 65536, "max_window_layers": 28, "no_rope_layer_interval": 4,
			"no_rope_layers": [1, 1, 1, 0, 1, 1, 1, 0], "num_attention_heads": 16, "num_hidden_layers": 8, "num_key_value_heads": 4, "pad_token_id": 128004,
			"rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 5000000.0, "sliding_window": null, "use_sliding_window": false, "vocab_size": 128256}`,
			Config{
				Architecture: "smollm3", Hidden: 2048, Layers: 8, Heads: 16, KVHeads: 4, HeadDim: 128, Intermediate: 11008, Vocab: 128256, Context: 65536,
				NormEps: 1e-6, QueryScale: 1 / math.Sqrt(128), TieEmbeddings: true, Rope: nn.RopeConfig{Theta: 5e6, Dim: 128},
				NoRope: []bool{false, false, false, true, false, false, false, true}, BOS: 128000, EOS: []int32{128012},
			},
		},
		{
			"Gemma-3-270M, 7 layers of it", `{
			"_sliding_window_pattern": 6, "model_type": "gemma3_text", "attention_bias": false, "attn_logit_softcapping": null, "bos_token_id": 2, "eos_token_id": [1, 106],
			"final_logit_softcapping": null, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 640, "intermediate_size": 2048,
			"layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
			"max_position_embeddings": 32768, "num_attention_heads": 4, "num_hidden_layers": 7, "num_key_value_heads": 1, "pad_token_id": 0,
			"query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000.0, "rope_scaling": null, "rope_theta": 1000000.0,
			"sliding_window": 512, "use_bidirectional_attention": false, "vocab_size": 262144}`,
			Config{
				Architecture: "gemma3_text", Hidden: 640, Layers: 7, Heads: 4, KVHeads: 1, HeadDim: 256, Intermediate: 2048, Vocab: 262144, Context: 32768,
				NormEps: 1e-6, QueryScale: 1.0 / 16, TieEmbeddings: true, Rope: nn.RopeConfig{Theta: 1e6, Dim: 256}, LocalRope: local(256),
				Window: 512, Sliding: []bool{true, true, true, true, true, false, true}, BOS: 2, EOS: []int32{1, 106},
			},
		},
		{
			"Gemma-3-1B, 7 layers of it, with rope_parameters by layer type", `{
			"model_type": "gemma3_text", "bos_token_id": 2, "eos_token_id": [1, 106], "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1152,
			"intermediate_size": 6912, "max_position_embeddings": 32768, "num_attention_heads": 4, "num_hidden_layers": 7, "num_key_value_heads": 1,
			"query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "sliding_window": 512, "sliding_window_pattern": 6, "vocab_size": 262144,
			"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1000000.0}, "sliding_attention": {"rope_type": "default", "rope_theta": 20000.0}}}`,
			Config{
				Architecture: "gemma3_text", Hidden: 1152, Layers: 7, Heads: 4, KVHeads: 1, HeadDim: 256, Intermediate: 6912, Vocab: 262144, Context: 32768,
				NormEps: 1e-6, QueryScale: 1.0 / 16, TieEmbeddings: true, Rope: nn.RopeConfig{Theta: 1e6, Dim: 256}, LocalRope: &nn.RopeConfig{Theta: 20000, Dim: 256},
				Window: 512, Sliding: []bool{true, true, true, true, true, false, true}, BOS: 2, EOS: []int32{1, 106},
			},
		},
		{
			"Gemma-3-4B, which leaves most out, 7 layers of it", `{
			"architectures": ["Gemma3ForConditionalGeneration"], "boi_token_index": 255999, "eos_token_id": [1, 106], "image_token_index": 262144, "model_type": "gemma3",
			"text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 7, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024},
			"vision_config": {"hidden_size": 1152, "intermediate_size": 4304, "model_type": "siglip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 27}}`,
			Config{
				Architecture: "gemma3_text", Hidden: 2560, Layers: 7, Heads: 8, KVHeads: 4, HeadDim: 256, Intermediate: 10240, Vocab: 262208, Context: 131072,
				NormEps: 1e-6, QueryScale: 1.0 / 16, TieEmbeddings: true, Rope: nn.RopeConfig{Theta: 1e6, Dim: 256, Scaling: linear8}, LocalRope: local(256),
				Window: 1024, Sliding: []bool{true, true, true, true, true, false, true}, BOS: -1, EOS: []int32{1, 106},
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parse(tc.json)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
