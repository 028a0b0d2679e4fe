package model

import (
	"cmp"
	"fmt"

	"github.com/foretoken/foretoken/internal/model/moe"
)

// ffn loads the feed-forward part of layer i: a mixture of experts, unless the
// layer or the model is dense.
func (b *builder) ffn(i int) feedForward {
	if b.MoE == nil || b.Dense != nil && b.Dense[i] {
		return b.mlp(i)
	}
	return moe.Load(b.weights.Sub("model.layers.%d.mlp.", i), b.MoE, b.Hidden, b.memory)
}

// expertCount reads how many experts a layer has, from the field called name.
func expertCount(name string, p *int) (int, error) {
	switch {
	case p == nil:
		return 0, fmt.Errorf("%s is missing", name)
	case *p < 1 || *p > moe.MaxExperts:
		return 0, fmt.Errorf("%s is %d, expected 1 to %d", name, *p, moe.MaxExperts)
	}
	return *p, nil
}

// gatingFuncs has the numbers of expert_gating_func.
var gatingFuncs = map[int]moe.Scoring{1: moe.Softmax, 2: moe.Sigmoid, 4: moe.SqrtSoftplus}

// mixture reads how experts are chosen; c has what files leave out. nil: the
// model has no experts.
func (m *ggufConfig) mixture(c moe.Config, intermediate int) *moe.Config {
	if m.intOr("expert_count", 0) == 0 {
		return nil
	}
	c.Experts = m.size("expert_count", 0)
	c.Active = m.size("expert_used_count", 0)
	c.Inner = m.size("expert_feed_forward_length", intermediate)
	c.Shared = c.Inner * m.intOr("expert_shared_count", 0)
	c.Scale = m.floatOr("expert_weights_scale", c.Scale)
	c.Normalize = m.boolOr("expert_weights_norm", c.Normalize)
	c.Groups = m.intOr("expert_group_count", 0)
	c.ActiveGroups = m.intOr("expert_group_used_count", 0)
	if f := m.intOr("expert_gating_func", 0); f != 0 {
		if c.Scoring = gatingFuncs[f]; c.Scoring == "" {
			m.fail("key %s.expert_gating_func is %d, expected 1 (softmax), 2 (sigmoid) or 4 (sqrtsoftplus)", m.arch, f)
		}
	}
	c.GroupTop = cmp.Or(c.GroupTop, 1)
	return &c
}
