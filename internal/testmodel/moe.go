package testmodel

import "fmt"

// mixtures are the specs of families with dense attention and experts.
var mixtures = map[string]Spec{
	"mixtral":   {Heads: 4, KVHeads: 2, HeadDim: 16, Theta: 1e6, Eps: 1e-5, Experts: Experts{Count: 6, Active: 2, Inner: 48}},
	"qwen3_moe": {Heads: 4, KVHeads: 2, HeadDim: 32, Theta: 1e6, Eps: 1e-6, Experts: Experts{Count: 9, Active: 3, Inner: 32, Normalize: true}},
}

// mixed tells these families.
func (s Spec) mixed() bool {
	_, ok := mixtures[s.Family]
	return ok
}

// hasMixture reports whether layer i has experts.
func (s Spec) hasMixture(i int) bool { return s.mixed() && (i+1)%max(s.Experts.Every, 1) == 0 }

// mixture draws the experts of a layer, under the names that the family's files
// have. The gate's logits spread, so that weights differ.
func (s Spec) mixture(w *weights) {
	e, prefix, names := s.Experts, "mlp.", [3]string{"gate_proj", "up_proj", "down_proj"}
	if s.Family == "mixtral" {
		prefix, names = "block_sparse_moe.", [3]string{"w1", "w3", "w2"}
	}
	w.linear(prefix+"gate", e.Count, s.Hidden, 1.5, false)
	for i := range e.Count {
		expert := fmt.Sprintf("%sexperts.%d.", prefix, i)
		w.linear(expert+names[0], e.Inner, s.Hidden, 1, false)
		w.linear(expert+names[1], e.Inner, s.Hidden, 1, false)
		w.linear(expert+names[2], s.Hidden, e.Inner, 3, false)
	}
}

// mixtureConfig adds the keys of config.json.
func (s Spec) mixtureConfig(c map[string]any) {
	e := s.Experts
	c["num_experts_per_tok"] = e.Active
	if s.Family == "mixtral" {
		c["num_local_experts"], c["intermediate_size"] = e.Count, e.Inner
		return
	}
	c["num_experts"], c["moe_intermediate_size"], c["norm_topk_prob"] = e.Count, e.Inner, e.Normalize
	c["decoder_sparse_step"], c["mlp_only_layers"] = max(e.Every, 1), []int{}
}

// mixtureMetadata sets the keys of a GGUF file that a dense model's does not
// have, or has otherwise.
func (s Spec) mixtureMetadata(set func(key string, value any)) {
	e := s.Experts
	set("expert_count", uint32(e.Count))
	set("expert_used_count", uint32(e.Active))
	if s.Family == "mixtral" {
		set("feed_forward_length", uint32(e.Inner))
	} else {
		set("expert_feed_forward_length", uint32(e.Inner))
	}
}
