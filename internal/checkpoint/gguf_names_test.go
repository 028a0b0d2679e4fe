package checkpoint

import "testing"

func TestGGUFNames(t *testing.T) {
	for _, test := range []struct{ arch, gguf, hf string }{
		{"llama", "token_embd.weight", "model.embed_tokens.weight"},
		{"llama", "output_norm.weight", "model.norm.weight"},
		{"llama", "output.weight", "lm_head.weight"},
		{"llama", "rope_freqs.weight", "rope_freqs.weight"},
		{"llama", "blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight"},
		{"llama", "blk.12.attn_q.weight", "model.layers.12.self_attn.q_proj.weight"},
		{"llama", "blk.12.attn_k.weight", "model.layers.12.self_attn.k_proj.weight"},
		{"llama", "blk.12.attn_v.weight", "model.layers.12.self_attn.v_proj.weight"},
		{"llama", "blk.12.attn_output.weight", "model.layers.12.self_attn.o_proj.weight"},
		{"llama", "blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight"},
		{"llama", "blk.0.ffn_gate.weight", "model.layers.0.mlp.gate_proj.weight"},
		{"llama", "blk.0.ffn_up.weight", "model.layers.0.mlp.up_proj.weight"},
		{"llama", "blk.0.ffn_down.weight", "model.layers.0.mlp.down_proj.weight"},
		{"qwen2", "blk.3.attn_q.bias", "model.layers.3.self_attn.q_proj.bias"},
		{"qwen3", "blk.3.attn_q_norm.weight", "model.layers.3.self_attn.q_norm.weight"},
		{"qwen3", "blk.3.attn_k_norm.weight", "model.layers.3.self_attn.k_norm.weight"},
		{"llama", "blk.3.ffn_gate_inp.weight", "model.layers.3.mlp.gate.weight"},
		{"llama", "blk.3.ffn_down_exps.weight", "model.layers.3.mlp.experts.down_proj.weight"},
		{"qwen3moe", "blk.3.ffn_gate_exps.weight", "model.layers.3.mlp.experts.gate_proj.weight"},
		{"qwen3moe", "blk.3.ffn_up_exps.weight", "model.layers.3.mlp.experts.up_proj.weight"},
		{"qwen3moe", "blk.3.attn_k_norm.weight", "model.layers.3.self_attn.k_norm.weight"},
		{"qwen3moe", "blk.3.ffn_up_shexp.weight", "model.layers.3.mlp.shared_experts.up_proj.weight"},
		{"smollm3", "blk.3.attn_q.weight", "model.layers.3.self_attn.q_proj.weight"},
		{"mistral3", "blk.3.attn_q.weight", "model.layers.3.self_attn.q_proj.weight"},
		// Gemma's norm before the feed-forward part is not the one that
		// Llama calls post_attention_layernorm.
		{"gemma3", "blk.1.attn_norm.weight", "model.layers.1.input_layernorm.weight"},
		{"gemma3", "blk.1.post_attention_norm.weight", "model.layers.1.post_attention_layernorm.weight"},
		{"gemma3", "blk.1.ffn_norm.weight", "model.layers.1.pre_feedforward_layernorm.weight"},
		{"gemma3", "blk.1.post_ffw_norm.weight", "model.layers.1.post_feedforward_layernorm.weight"},
		{"gemma3", "blk.1.attn_q_norm.weight", "model.layers.1.self_attn.q_norm.weight"},
		{"deepseek2", "blk.3.attn_q_a_norm.weight", "model.layers.3.self_attn.q_a_layernorm.weight"},
		{"deepseek2", "blk.3.attn_kv_a_mqa.weight", "model.layers.3.self_attn.kv_a_proj_with_mqa.weight"},
		{"deepseek2", "blk.3.attn_kv_b.weight", "model.layers.3.self_attn.kv_b_proj.weight"},
		{"deepseek2", "blk.3.attn_output.weight", "model.layers.3.self_attn.o_proj.weight"},
		{"deepseek2", "blk.3.exp_probs_b.bias", "model.layers.3.mlp.gate.e_score_correction_bias"},
		{"deepseek2", "blk.3.ffn_down_shexp.weight", "model.layers.3.mlp.shared_experts.down_proj.weight"},
		{"deepseek2", "blk.61.nextn.eh_proj.weight", "model.layers.61.eh_proj.weight"},
		{"deepseek2", "blk.61.nextn.shared_head_norm.weight", "model.layers.61.shared_head.norm.weight"},
		{"deepseek32", "blk.3.indexer.k_norm.bias", "model.layers.3.self_attn.indexer.k_norm.bias"},
		{"deepseek32", "blk.3.indexer.attn_q_b.weight", "model.layers.3.self_attn.indexer.wq_b.weight"},
		{"deepseek32", "blk.3.indexer.proj.weight", "model.layers.3.self_attn.indexer.weights_proj.weight"},
	} {
		if got := hfName(test.arch, test.gguf); got != test.hf {
			t.Errorf("%s: %s is %s, want %s", test.arch, test.gguf, got, test.hf)
		}
		if got, ok := GGUFName(test.arch, test.hf); got != test.gguf || !ok {
			t.Errorf("%s: %s is %s, want %s", test.arch, test.hf, got, test.gguf)
		}
	}
	for _, test := range []struct{ arch, name string }{
		{"unknown", "token_embd.weight"},
		{"", "token_embd.weight"},
		{"llama", "blk.0.attn_new.weight"},
		{"llama", "blk.0.post_ffw_norm.weight"},
		{"qwen2", "blk.0.ffn_gate_exps.weight"},
		{"llama", "blk.00.attn_q.weight"},
		{"llama", "blk.-1.attn_q.weight"},
		{"llama", "blk.+1.attn_q.weight"},
		{"llama", "blk.x.attn_q.weight"},
		{"llama", "blk.0.weight"},
		{"llama", "blk..weight"},
		{"llama", "blk.99999999999999999999.attn_q.weight"},
		{"llama", "token_embd"},
		{"llama", ".weight"},
	} {
		if got := hfName(test.arch, test.name); got != test.name {
			t.Errorf("%s: %s is %s, expected it to keep its name", test.arch, test.name, got)
		}
		if got, ok := GGUFName(test.arch, test.name); ok {
			t.Errorf("%s: %s is %s, expected no name", test.arch, test.name, got)
		}
	}
}

// No two GGUF names of an architecture share a canonical name.
func TestGGUFNamesAreInverse(t *testing.T) {
	for arch, names := range namesOf {
		for _, table := range []struct {
			prefix string
			names  map[string]string
		}{{"", names.model}, {"blk.7.", names.layer}} {
			for base := range table.names {
				gguf := table.prefix + base + ".weight"
				if back, ok := GGUFName(arch, hfName(arch, gguf)); !ok || back != gguf {
					t.Errorf("%s: %s becomes %s", arch, gguf, back)
				}
			}
		}
	}
}
