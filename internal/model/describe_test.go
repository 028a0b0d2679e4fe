package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// gqaJSON is the config.json of a model with grouped-query attention, as far
// as its cache depends on it.
func gqaJSON(modelType string, hidden, layers, heads, kvHeads, headDim int, more string) string {
	return fmt.Sprintf(`{"model_type": %q, "hidden_size": %d, "num_hidden_layers": %d, "num_attention_heads": %d, "num_key_value_heads": %d, "head_dim": %d,
		"intermediate_size": 8192, "vocab_size": 32000, "max_position_embeddings": 32768%s}`, modelType, hidden, layers, heads, kvHeads, headDim, more)
}

// mlaJSON is the config.json of DeepSeek V2 to V3.2. The layer of multi-token
// prediction that V3 and V3.2 have behind the others is not counted.
func mlaJSON(modelType string, hidden, layers, heads int, queryRank, more string) string {
	return fmt.Sprintf(`{"model_type": %q, "hidden_size": %d, "num_hidden_layers": %d, "num_attention_heads": %d, "num_key_value_heads": %[4]d, "q_lora_rank": %s,
		"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
		"intermediate_size": 18432, "vocab_size": 102400, "max_position_embeddings": 163840%s}`, modelType, hidden, layers, heads, queryRank, more)
}

const v3Experts = `, "n_routed_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1, "n_group": 8, "topk_group": 4,
	"scoring_func": "sigmoid", "topk_method": "noaux_tc", "norm_topk_prob": true, "routed_scaling_factor": 2.5, "first_k_dense_replace": 3,
	"num_nextn_predict_layers": 1, "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "mscale": 1.0, "mscale_all_dim": 1.0}`

// v4JSON is the config.json of DeepSeek V4: first are the ratios of the first
// two layers, after which 4 and 128 alternate; the last is that of the layer of
// multi-token prediction.
func v4JSON(hidden, layers, heads, queryRank, groups, experts, inner, topK int, scale float64, first int) string {
	ratios := []string{fmt.Sprint(first), fmt.Sprint(first)}
	for i := 2; i < layers; i++ {
		ratios = append(ratios, []string{"4", "128"}[i%2])
	}
	return fmt.Sprintf(`{"model_type": "deepseek_v4", "hidden_size": %d, "num_hidden_layers": %d, "num_attention_heads": %d, "num_key_value_heads": 1,
		"q_lora_rank": %d, "o_groups": %d, "o_lora_rank": 1024, "head_dim": 512, "qk_rope_head_dim": 64, "n_routed_experts": %d, "num_experts_per_tok": 6,
		"moe_intermediate_size": %d, "index_n_heads": 64, "index_head_dim": 128, "index_topk": %d, "hc_mult": 4, "hc_sinkhorn_iters": 20, "hc_eps": 1e-6,
		"sliding_window": 128, "swiglu_limit": 10.0, "routed_scaling_factor": %v, "num_hash_layers": 3, "num_nextn_predict_layers": 1,
		"compress_ratios": [%s, 0], "compress_rope_theta": 160000, "rope_theta": 10000, "vocab_size": 129280, "max_position_embeddings": 1048576,
		"rope_scaling": {"type": "yarn", "factor": 16, "original_max_position_embeddings": 65536}}`,
		hidden, layers, heads, queryRank, groups, experts, inner, topK, scale, strings.Join(ratios, ", "))
}

// A publishedModel has the shape of a published model, and what a cache in 16
// bits keeps of each token and, in rings, of each sequence.
type publishedModel struct {
	name, json            string
	perToken, perSequence int
}

// published is the table of docs/architectures.md.
var published = []publishedModel{
	{name: "Llama-2-7B", json: gqaJSON("llama", 4096, 32, 32, 32, 128, ""), perToken: 524288},
	{name: "Llama-2-70B", json: gqaJSON("llama", 8192, 80, 64, 8, 128, ""), perToken: 327680},
	{name: "Llama-3-8B", json: gqaJSON("llama", 4096, 32, 32, 8, 128, ""), perToken: 131072},
	{name: "SmolLM2-135M", json: gqaJSON("llama", 576, 30, 9, 3, 64, ""), perToken: 23040},
	{name: "Mistral-7B", json: gqaJSON("mistral", 4096, 32, 32, 8, 128, ""), perToken: 131072},
	{name: "Mistral-Nemo", json: gqaJSON("mistral", 5120, 40, 32, 8, 128, ""), perToken: 163840},
	{name: "Qwen2-7B", json: gqaJSON("qwen2", 3584, 28, 28, 4, 128, ""), perToken: 57344},
	{name: "Qwen3-0.6B", json: gqaJSON("qwen3", 1024, 28, 16, 8, 128, ""), perToken: 114688},
	{name: "SmolLM3-3B", json: gqaJSON("smollm3", 2048, 36, 16, 4, 128, ""), perToken: 73728},
	{name: "Gemma-3-1B", json: gqaJSON("gemma3_text", 1152, 26, 4, 1, 256, `, "sliding_window": 512`), perToken: 26624},
	{name: "Mixtral-8x7B", json: gqaJSON("mixtral", 4096, 32, 32, 8, 128, `, "num_local_experts": 8`), perToken: 131072},
	{name: "Qwen3-30B-A3B", json: gqaJSON("qwen3_moe", 2048, 48, 32, 4, 128, `, "num_experts": 128`), perToken: 98304},
	// The paper's 27B model in the form that fla publishes, whose keys and values
	// are as wide as each other: 30 layers of (1 + 1/64)·4·(192 + 192)·2 bytes.
	{
		name: "NSA-27B-like", perToken: 93600,
		json: gqaJSON("nsa", 2560, 30, 64, 4, 192, `, "num_heads": 64, "num_kv_heads": 4, "block_size": 64, "block_counts": 16, "window_size": 512, "hidden_act": "swish"`),
	},
	{name: "DeepSeek-V2-Lite", json: mlaJSON("deepseek_v2", 2048, 27, 16, "null", ""), perToken: 31104},
	{name: "DeepSeek-V2", json: mlaJSON("deepseek_v2", 5120, 60, 128, "1536", ""), perToken: 69120},
	{name: "DeepSeek-V3", json: mlaJSON("deepseek_v3", 7168, 61, 128, "1536", v3Experts), perToken: 70272},
	{
		name: "DeepSeek-V3.2", perToken: 61 * 1408,
		json: mlaJSON("deepseek_v32", 7168, 61, 128, "1536", v3Experts+`, "index_n_heads": 64, "index_head_dim": 128, "index_topk": 2048`),
	},
	// Rings: windows of 128, and inputs of compressors: values and gates in
	// float32 of 8 positions of twice 512 and twice 128, or of 128 positions of
	// 512; each 64 positions longer for rewinding.
	{
		name: "DeepSeek-V4-Flash", json: v4JSON(4096, 43, 64, 1024, 8, 256, 2048, 512, 1.5, 0), perToken: 6880,
		perSequence: 43*(128+64)*512*2 + 21*(8+64)*2*4*(2*512+2*128) + 20*(128+64)*2*4*512,
	},
	{
		name: "DeepSeek-V4-Pro", json: v4JSON(7168, 61, 128, 1536, 16, 384, 3072, 1024, 2.5, 128), perToken: 9848,
		perSequence: 61*(128+64)*512*2 + 30*(8+64)*2*4*(2*512+2*128) + 31*(128+64)*2*4*512,
	},
}

func TestPublishedCaches(t *testing.T) {
	for _, m := range published {
		c, err := parse(m.json)
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		layers := c.Cache()
		if got := kvcache.BytesPerToken(layers, tensor.BF16); got != m.perToken {
			t.Errorf("%s: %d bytes per token, want %d", m.name, got, m.perToken)
		}
		if got := kvcache.BytesPerSequence(layers, tensor.BF16); got != m.perSequence {
			t.Errorf("%s: %d bytes per sequence, want %d", m.name, got, m.perSequence)
		}
		// A description has the same in parts.
		perToken, perSeq := 0.0, 0
		for _, s := range c.Describe(tensor.BF16).Cache {
			perToken, perSeq = perToken+s.BytesPerToken, perSeq+s.BytesPerSequence
		}
		if perToken != float64(m.perToken) || perSeq != m.perSequence {
			t.Errorf("%s: parts are %v bytes per token and %d per sequence, want %d and %d", m.name, perToken, perSeq, m.perToken, m.perSequence)
		}
	}
}

// Trees of drafts are for attention that reads slots; what does not is named.
func TestTreesOfDesigns(t *testing.T) {
	chains := map[string]string{
		"NSA-27B-like":      "native sparse attention",
		"DeepSeek-V2-Lite":  "multi-head latent attention",
		"DeepSeek-V2":       "multi-head latent attention",
		"DeepSeek-V3":       "multi-head latent attention",
		"DeepSeek-V3.2":     "sparse latent attention",
		"DeepSeek-V4-Flash": "window and compressed entries",
		"DeepSeek-V4-Pro":   "window and compressed entries",
	}
	for _, m := range published {
		c, err := parse(m.json)
		if err != nil {
			t.Fatal(err)
		}
		got, want := "", ""
		if design := chains[m.name]; design != "" {
			want = design + " takes drafts as chains, not as trees"
		}
		if err := c.Trees(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", m.name, got, want)
		}
	}
}

// What a configuration says of the cache is what the model that is loaded with
// it keeps.
func TestCacheOfConfig(t *testing.T) {
	for _, family := range testmodel.Families() {
		m, err := open(t, testmodel.Safetensors(t, testmodel.Family(family)))
		if err != nil {
			t.Errorf("%s: %v", family, err)
			continue
		}
		if diff := cmp.Diff(m.Cache(), m.Config().Cache()); diff != "" {
			t.Errorf("%s: model and configuration (-, +):\n%s", family, diff)
		}
	}
}

// describePublished describes a model of the table.
func describePublished(t *testing.T, name string) Description {
	t.Helper()
	i := slices.IndexFunc(published, func(m publishedModel) bool { return m.name == name })
	c, err := parse(published[i].json)
	if err != nil {
		t.Fatal(err)
	}
	return c.Describe(tensor.BF16)
}

func TestDescribe(t *testing.T) {
	for _, tc := range []struct {
		name string
		want Description
	}{
		{"Gemma-3-1B", Description{
			Attention: AttentionDescription{
				Design: "multi-query attention", Heads: 4, KVHeads: 1, KeyDim: 256, ValueDim: 256, RotaryDim: 256, Window: 512, WindowLayers: 22,
			},
			FeedForward: FeedForwardDescription{DenseLayers: 26, Width: 8192},
			Residual:    ResidualDescription{Design: "one stream", Streams: 1},
			Cache:       []StoreDescription{{Kind: "keys and values", Layers: 26, EntryBytes: 1024, TokensPerEntry: 1, BytesPerToken: 26624}},
		}},
		{"SmolLM3-3B", Description{
			Attention: AttentionDescription{
				Design: "grouped-query attention", Heads: 16, KVHeads: 4, KeyDim: 128, ValueDim: 128, RotaryDim: 128, UnrotatedLayers: 9,
			},
			FeedForward: FeedForwardDescription{DenseLayers: 36, Width: 8192},
			Residual:    ResidualDescription{Design: "one stream", Streams: 1},
			Cache:       []StoreDescription{{Kind: "keys and values", Layers: 36, EntryBytes: 2048, TokensPerEntry: 1, BytesPerToken: 73728}},
		}},
		{"Mixtral-8x7B", Description{
			Attention: AttentionDescription{
				Design: "grouped-query attention", Heads: 32, KVHeads: 8, KeyDim: 128, ValueDim: 128, RotaryDim: 128,
			},
			FeedForward: FeedForwardDescription{
				Experts: &ExpertDescription{Layers: 32, Count: 8, Active: 2, Width: 8192, Scoring: "softmax", Normalized: true, Scale: 1},
			},
			Residual: ResidualDescription{Design: "one stream", Streams: 1},
			Cache:    []StoreDescription{{Kind: "keys and values", Layers: 32, EntryBytes: 4096, TokensPerEntry: 1, BytesPerToken: 131072}},
		}},
		{"NSA-27B-like", Description{
			Attention: AttentionDescription{
				Design: "native sparse attention", Heads: 64, KVHeads: 4, KeyDim: 192, ValueDim: 192, RotaryDim: 192, Window: 512, WindowLayers: 30,
				Blocks: &BlockDescription{Compressed: 64, Stride: 64, Selected: 64, Count: 16, Forced: 3},
			},
			FeedForward: FeedForwardDescription{DenseLayers: 30, Width: 8192},
			Residual:    ResidualDescription{Design: "one stream", Streams: 1},
			Cache: []StoreDescription{
				{Kind: "keys and values", Layers: 30, EntryBytes: 3072, TokensPerEntry: 1, BytesPerToken: 92160},
				{Kind: "compressed keys and values", Layers: 30, EntryBytes: 3072, TokensPerEntry: 64, BytesPerToken: 1440},
			},
		}},
		{"DeepSeek-V3.2", Description{
			Attention: AttentionDescription{
				Design: "sparse latent attention", Heads: 128, KVHeads: 128, KeyDim: 192, ValueDim: 128, RotaryDim: 64,
				QueryRank: 1536, LatentDim: 512, Index: &IndexDescription{Heads: 64, Dim: 128, TopK: 2048},
			},
			FeedForward: FeedForwardDescription{
				DenseLayers: 3, Width: 18432,
				Experts: &ExpertDescription{
					Layers: 58, Count: 256, Active: 8, Width: 2048, SharedWidth: 2048,
					Scoring: "sigmoid", Bias: true, Groups: 8, ActiveGroups: 4, GroupTop: 2, Normalized: true, Scale: 2.5,
				},
			},
			Residual:  ResidualDescription{Design: "one stream", Streams: 1},
			MTPLayers: 1,
			Cache: []StoreDescription{
				{Kind: "latent", Layers: 61, EntryBytes: 1152, TokensPerEntry: 1, BytesPerToken: 70272},
				{Kind: "index keys", Layers: 61, EntryBytes: 256, TokensPerEntry: 1, BytesPerToken: 15616},
			},
		}},
		{"DeepSeek-V4-Flash", Description{
			Attention: AttentionDescription{
				Design: "window and compressed entries", Heads: 64, KVHeads: 1, KeyDim: 512, ValueDim: 512, RotaryDim: 64,
				Window: 128, WindowLayers: 43, QueryRank: 1024, OutputGroups: 8, OutputRank: 1024,
				Compressed: []CompressedDescription{{Positions: 4, Layers: 21, Indexed: true}, {Positions: 128, Layers: 20}},
				Index:      &IndexDescription{Heads: 64, Dim: 128, TopK: 512},
			},
			FeedForward: FeedForwardDescription{
				Experts: &ExpertDescription{
					Layers: 43, Count: 256, Active: 6, Width: 2048, SharedWidth: 2048,
					Scoring: "sqrtsoftplus", Bias: true, Normalized: true, Scale: 1.5, Limit: 10, HashLayers: 3,
				},
			},
			Residual:  ResidualDescription{Design: "manifold-constrained hyper-connections", Streams: 4, Iterations: 20},
			MTPLayers: 1,
			Cache: []StoreDescription{
				{Kind: "window", Layers: 43, EntryBytes: 1024, TokensPerEntry: 1, BytesPerSequence: 8454144},
				{Kind: "compressed entries", Layers: 21, EntryBytes: 1024, TokensPerEntry: 4, BytesPerToken: 5376},
				{Kind: "compressor inputs", Layers: 21, EntryBytes: 8192, TokensPerEntry: 1, BytesPerSequence: 12386304},
				{Kind: "index keys", Layers: 21, EntryBytes: 256, TokensPerEntry: 4, BytesPerToken: 1344},
				{Kind: "index compressor inputs", Layers: 21, EntryBytes: 2048, TokensPerEntry: 1, BytesPerSequence: 3096576},
				{Kind: "compressed entries", Layers: 20, EntryBytes: 1024, TokensPerEntry: 128, BytesPerToken: 160},
				{Kind: "compressor inputs", Layers: 20, EntryBytes: 4096, TokensPerEntry: 1, BytesPerSequence: 15728640},
			},
		}},
	} {
		got := describePublished(t, tc.name)
		got.Equations = nil
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", tc.name, diff)
		}
	}
}

func TestEquations(t *testing.T) {
	for name, want := range map[string]string{
		"Llama-3-8B": `
x += Attn(RMSNorm(x))
x += FFN(RMSNorm(x))
q = rope(W_q·x), k = rope(W_k·x), v = W_v·x   per head
Attn(x) = W_o·[softmax(q·k/√128)·v]
FFN(x) = W_down·(silu(W_gate·x) ∘ W_up·x)
logits = W_head·RMSNorm(x)`,
		"Qwen2-7B": `
x += Attn(RMSNorm(x))
x += FFN(RMSNorm(x))
q = rope(W_q·x + b_q), k = rope(W_k·x + b_k), v = W_v·x + b_v   per head
Attn(x) = W_o·[softmax(q·k/√128)·v]
FFN(x) = W_down·(silu(W_gate·x) ∘ W_up·x)
logits = W_head·RMSNorm(x)`,
		"Gemma-3-1B": `
x = √1152·embed(token)
x += RMSNorm(Attn(RMSNorm(x)))
x += RMSNorm(FFN(RMSNorm(x)))
q = rope(RMSNorm(W_q·x)), k = rope(RMSNorm(W_k·x)), v = W_v·x   per head
Attn(x) = W_o·[softmax(q·k/√256)·v]
FFN(x) = W_down·(gelu(W_gate·x) ∘ W_up·x)
logits = W_head·RMSNorm(x)`,
		"Qwen3-30B-A3B": `
x += Attn(RMSNorm(x))
x += FFN(RMSNorm(x))
q = rope(RMSNorm(W_q·x)), k = rope(RMSNorm(W_k·x)), v = W_v·x   per head
Attn(x) = W_o·[softmax(q·k/√128)·v]
FFN(x) = Σ w_e·E_e(x)   over 8 of 128 experts
E(x) = W_down·(silu(W_gate·x) ∘ W_up·x)
s = softmax(W_r·x)   chosen by s   w_e = s_e
logits = W_head·RMSNorm(x)`,
		"NSA-27B-like": `
x += Attn(RMSNorm(x))
x += FFN(RMSNorm(x))
q = rope(W_q·x), k = rope(W_k·x), v = W_v·x   per head
g_c = σ(W_g,c·x)   per head, c: compressed blocks, selected blocks, window
Attn(x) = W_o·[Σ_c g_c·softmax(q·k/√192)·v]   over the keys and values of each c
FFN(x) = W_down·(silu(W_gate·x) ∘ W_up·x)
logits = W_head·RMSNorm(x)`,
		"DeepSeek-V3.2": `
x += Attn(RMSNorm(x))
x += FFN(RMSNorm(x))
[q_n; q_r] = W_qb·r, r = RMSNorm(W_qa·x)   per head
[c; k_r] = W_kva·x   kept: RMSNorm(c), rope(k_r)
q·k = (K_hᵀ·q_n)·c + rope(q_r)·k_r   = [q_n; rope(q_r)]·[K_h·c; k_r]
Attn(x) = W_o·[V_h·Σ softmax(0.1352·q·k)·c]
I(t,s) = Σ_h w_h(t)·relu(q_h(t)·k(s))   t attends to the 2048 best s
FFN(x) = Σ w_e·E_e(x) + E_shared(x)   over 8 of 256 experts
E(x) = W_down·(silu(W_gate·x) ∘ W_up·x)
s = σ(W_r·x)   chosen by s + bias   w_e = 2.5·s_e/Σ s
logits = W_head·RMSNorm(x)`,
		"DeepSeek-V4-Pro": `
X[k] = post[k]·f(RMSNorm(Σ pre[j]·X[j])) + Σ comb[j,k]·X[j]   f: Attn, then FFN
pre = σ(m₁)+ε, post = 2·σ(m₂), comb = Sinkhorn(m₃)   m = scale·(W·X/rms(X)) + base
q = rope(rms(W_qb·RMSNorm(W_qa·x)))   per head      kv = rope(RMSNorm(W_kv·x))
C = rope(RMSNorm(Σ_t softmax_t(W_g·x_t + bias) ∘ W_c·x_t))   of 4 or 128 positions t
o = rope⁻¹(softmax(q·k/√512, sink)·[kv; C])   over the window and entries
I(t,s) = Σ_h w_h(t)·relu(q_h(t)·k(s))   of entries of 4, t reads the 1024 best s
Attn(x) = W_ob·[W_oa,g·o_g]   g: groups of heads
FFN(x) = Σ w_e·E_e(x) + E_shared(x)   over 6 of 384 experts
E(x) = W_down·(silu(W_gate·x) ∘ W_up·x)   gates ≤ 10, |up| ≤ 10
s = √softplus(W_r·x)   chosen by s + bias   w_e = 2.5·s_e/Σ s
logits = W_head·RMSNorm(Σ pre[j]·X[j])`,
	} {
		got := strings.Join(describePublished(t, name).Equations, "\n")
		if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), got); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", name, diff)
		}
	}
}
