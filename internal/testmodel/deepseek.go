package testmodel

import (
	"fmt"
	"maps"
	"slices"
)

// Latent is the shape of latent attention, with an indexer if it has heads.
type Latent struct {
	QueryRank, Rank, NopeDim, RopeDim, ValueDim int
	IndexHeads, IndexDim, TopK                  int
	Joint                                       bool // GGUF: as in old files, kv_b in one tensor
}

// Experts is the shape of mixtures of experts.
type Experts struct {
	Count, Active, Inner int
	Shared               int // how many of Inner's width are always active
	Groups, ActiveGroups int
	FirstDense           int // layers before have none
	Every                int // of the others, those at multiples have some (qwen3_moe: the last of every so many); 0: all (all that GGUF can say)
	Scoring              string
	Method               string
	Normalize            bool
	Scale                float64
}

// deepseek are the specs of DeepSeek's families: V2-Lite, V3 and V3.2 in small.
var deepseek = map[string]Spec{
	"deepseek_v2": {
		Heads: 4, KVHeads: 4, Theta: 10000, Eps: 1e-6, Layers: 3,
		Latent:  Latent{Rank: 16, NopeDim: 12, RopeDim: 8, ValueDim: 16},
		Experts: Experts{Count: 6, Active: 2, Inner: 24, Shared: 2, FirstDense: 1, Scoring: "softmax", Method: "greedy", Scale: 1},
		Scaling: Scaling{Type: "yarn", Factor: 8, Original: 32, MScale: 0.707},
	},
	"deepseek_v3": {
		Heads: 4, KVHeads: 4, Theta: 10000, Eps: 1e-6, Layers: 3,
		Latent: Latent{QueryRank: 24, Rank: 32, NopeDim: 16, RopeDim: 8, ValueDim: 12},
		Experts: Experts{
			Count: 8, Active: 3, Inner: 16, Shared: 1, Groups: 4, ActiveGroups: 2, FirstDense: 1,
			Scoring: "sigmoid", Method: "noaux_tc", Normalize: true, Scale: 2.5,
		},
		Scaling: Scaling{Type: "yarn", Factor: 8, Original: 32, MScale: 1},
	},
	"deepseek_v32": {
		Heads: 4, KVHeads: 4, Theta: 10000, Eps: 1e-6, Layers: 2,
		Latent: Latent{QueryRank: 24, Rank: 32, NopeDim: 16, RopeDim: 8, ValueDim: 16, IndexHeads: 4, IndexDim: 16, TopK: 12},
		Experts: Experts{
			Count: 8, Active: 3, Inner: 16, Shared: 1, Groups: 2, ActiveGroups: 1, FirstDense: 1,
			Scoring: "sigmoid", Method: "noaux_tc", Normalize: true, Scale: 2.5,
		},
		Scaling: Scaling{Type: "yarn", Factor: 8, Original: 32, MScale: 1},
	},
}

// latent tells the families of latent attention.
func (s Spec) latent() bool { return s.Latent.Rank > 0 }

// deepseekConfig adds the keys of config.json.
func (s Spec) deepseekConfig(c map[string]any) {
	l, e := s.Latent, s.Experts
	delete(c, "head_dim")
	maps.Copy(c, map[string]any{
		"q_lora_rank": nil, "kv_lora_rank": l.Rank, "qk_nope_head_dim": l.NopeDim, "qk_rope_head_dim": l.RopeDim, "v_head_dim": l.ValueDim,
		"n_routed_experts": e.Count, "num_experts_per_tok": e.Active, "moe_intermediate_size": e.Inner, "n_shared_experts": e.Shared,
		"n_group": max(e.Groups, 1), "topk_group": max(e.ActiveGroups, 1), "scoring_func": e.Scoring, "topk_method": e.Method,
		"norm_topk_prob": e.Normalize, "routed_scaling_factor": e.Scale, "first_k_dense_replace": e.FirstDense, "moe_layer_freq": max(e.Every, 1),
		"num_nextn_predict_layers": s.MTP,
	})
	if l.QueryRank > 0 {
		c["q_lora_rank"] = l.QueryRank
	}
	if l.IndexHeads > 0 {
		c["index_n_heads"], c["index_head_dim"], c["index_topk"] = l.IndexHeads, l.IndexDim, l.TopK
	}
}

// deepseekMetadata sets the keys of a GGUF file that differ from a dense
// model's.
func (s Spec) deepseekMetadata(set func(key string, value any)) {
	l, e := s.Latent, s.Experts
	number := func(key string, n int) { set(key, uint32(n)) }
	number("block_count", s.Layers+s.MTP)
	number("rope.dimension_count", l.RopeDim)
	number("attention.kv_lora_rank", l.Rank)
	if l.QueryRank > 0 {
		number("attention.q_lora_rank", l.QueryRank)
	}
	if l.Joint {
		number("attention.key_length", l.NopeDim+l.RopeDim)
		number("attention.value_length", l.ValueDim)
	} else {
		number("attention.head_count_kv", 1)
		number("attention.key_length", l.Rank+l.RopeDim)
		number("attention.value_length", l.Rank)
		number("attention.key_length_mla", l.NopeDim+l.RopeDim)
		number("attention.value_length_mla", l.ValueDim)
	}
	if l.IndexHeads > 0 {
		number("attention.indexer.head_count", l.IndexHeads)
		number("attention.indexer.key_length", l.IndexDim)
		number("attention.indexer.top_k", l.TopK)
	}
	number("leading_dense_block_count", e.FirstDense)
	number("expert_count", e.Count)
	number("expert_used_count", e.Active)
	number("expert_feed_forward_length", e.Inner)
	number("expert_shared_count", e.Shared)
	if e.Groups > 0 {
		number("expert_group_count", e.Groups)
		number("expert_group_used_count", e.ActiveGroups)
	}
	number("expert_gating_func", map[string]int{"softmax": 1, "sigmoid": 2}[e.Scoring])
	set("expert_weights_norm", e.Normalize)
	set("expert_weights_scale", float32(e.Scale))
	if s.MTP > 0 {
		number("nextn_predict_layers", s.MTP)
	}
	if s.Scaling.MScale != 0 {
		set("rope.scaling.yarn_log_multiplier", float32(0.1*s.Scaling.MScale))
	}
}

// deepseekLayer draws layer i, whose prefix w has.
func (s Spec) deepseekLayer(w *weights, i int) {
	l := s.Latent
	w.norm("input_layernorm", s.Hidden, 1)
	w.norm("post_attention_layernorm", s.Hidden, 1)
	q := s.Heads * (l.NopeDim + l.RopeDim)
	if l.QueryRank > 0 {
		w.linear("self_attn.q_a_proj", l.QueryRank, s.Hidden, 1, false)
		w.norm("self_attn.q_a_layernorm", l.QueryRank, 1)
		w.linear("self_attn.q_b_proj", q, l.QueryRank, 1.5, false)
	} else {
		w.linear("self_attn.q_proj", q, s.Hidden, 1.5, false)
	}
	w.linear("self_attn.kv_a_proj_with_mqa", l.Rank+l.RopeDim, s.Hidden, 1.5, false)
	w.norm("self_attn.kv_a_layernorm", l.Rank, 1)
	w.linear("self_attn.kv_b_proj", s.Heads*(l.NopeDim+l.ValueDim), l.Rank, 1.5, false)
	w.linear("self_attn.o_proj", s.Hidden, s.Heads*l.ValueDim, 2, false)
	if l.IndexHeads > 0 {
		w.linear("self_attn.indexer.wq_b", l.IndexHeads*l.IndexDim, l.QueryRank, 1, false)
		w.linear("self_attn.indexer.wk", l.IndexDim, s.Hidden, 1, false)
		w.norm("self_attn.indexer.k_norm", l.IndexDim, 1)
		w.draw("self_attn.indexer.k_norm.bias", 0, 0.3, l.IndexDim)
		w.linear("self_attn.indexer.weights_proj", l.IndexHeads, s.Hidden, 1, false)
	}
	if i < s.Experts.FirstDense || i%max(s.Experts.Every, 1) != 0 {
		w.gated("mlp.", s.Hidden, s.Intermediate)
		return
	}
	s.experts(w)
}

// experts draws the mixture of a layer.
func (s Spec) experts(w *weights) {
	e := s.Experts
	w.linear("mlp.gate", e.Count, s.Hidden, 1, false)
	if e.Method == "noaux_tc" {
		w.draw("mlp.gate.e_score_correction_bias", 0, 0.2, e.Count)
	}
	for i := range e.Count {
		w.gated(fmt.Sprintf("mlp.experts.%d.", i), s.Hidden, e.Inner)
	}
	if e.Shared > 0 {
		w.gated("mlp.shared_experts.", s.Hidden, e.Shared*e.Inner)
	}
}

// mtpModules draws the modules of multi-token prediction, which have copies of
// embedding and head.
func (s Spec) mtpModules(w *weights) {
	for i := s.Layers; i < s.Layers+s.MTP; i++ {
		embedding, head := w.find("model.embed_tokens.weight"), w.find("lm_head.weight")
		w.prefix = fmt.Sprintf("model.layers.%d.", i)
		s.deepseekLayer(w, i)
		w.norm("enorm", s.Hidden, 1)
		w.norm("hnorm", s.Hidden, 1)
		w.linear("eh_proj", s.Hidden, 2*s.Hidden, 1, false)
		w.norm("shared_head.norm", s.Hidden, 1)
		embedding.Name, head.Name = w.prefix+"embed_tokens.weight", w.prefix+"shared_head.head.weight"
		w.tensors = append(w.tensors, embedding, head)
	}
}

// gated draws a gated network.
func (w *weights) gated(prefix string, hidden, inner int) {
	w.linear(prefix+"gate_proj", inner, hidden, 1, false)
	w.linear(prefix+"up_proj", inner, hidden, 1, false)
	w.linear(prefix+"down_proj", hidden, inner, 2, false)
}

func (w *weights) find(name string) Tensor {
	return w.tensors[slices.IndexFunc(w.tensors, func(t Tensor) bool { return t.Name == name })]
}
