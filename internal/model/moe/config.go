// Package moe is the mixture of experts: a gate chooses for each token a few of
// many feed-forward networks, whose outputs are weighed and summed (Shazeer et
// al. 2017; Fedus et al. 2021).
package moe

import (
	"fmt"
	"math"
)

// Scoring turns the logits of the gate into scores of experts.
type Scoring string

// The ways to score: softmax is over all experts, the others are of each alone.
const (
	Softmax      Scoring = "softmax"
	Sigmoid      Scoring = "sigmoid"
	SqrtSoftplus Scoring = "sqrtsoftplus"
)

// Config is the shape of a mixture and how its gate chooses.
type Config struct {
	Experts int // routed experts
	Active  int // of them, those that work on a token
	Inner   int // width inside an expert
	Shared  int // width inside the expert that works on every token; 0: there is none

	Scoring      Scoring
	Bias         bool    // a learned bias takes part in choosing, but not in weights (Wang et al. 2024)
	Groups       int     // experts are in as many groups, of which only some are chosen from; 0: all are
	ActiveGroups int     // of them, those that are chosen from
	GroupTop     int     // how many of a group's scores sum to its own: 1 (DeepSeek V2) or 2 (V3)
	Normalize    bool    // weights are divided by their sum
	Scale        float64 // multiplies weights

	Hash  bool // a table says which experts a token has (DeepSeek V4)
	Vocab int  // tokens of that table

	Limit      float64 // gates are clamped from above, and up projections from both sides; 0: they are not
	WeighInner bool    // weights multiply before the down projection instead of after
}

// MaxExperts bounds the experts of a layer; published models have at most 512.
const MaxExperts = 1 << 12

const maxWidth = 1 << 20

// Validate reports what keeps c from describing a mixture, by the names of
// config.json.
func (c *Config) Validate() error {
	for _, f := range []struct {
		name            string
		value, min, max int
	}{
		{"number of experts", c.Experts, 1, MaxExperts},
		{"num_experts_per_tok", c.Active, 1, c.Experts},
		{"moe_intermediate_size", c.Inner, 1, maxWidth},
		{"width of shared experts", c.Shared, 0, maxWidth},
	} {
		if f.value < f.min || f.value > f.max {
			return fmt.Errorf("%s is %d, expected %d to %d", f.name, f.value, f.min, f.max)
		}
	}
	switch c.Scoring {
	case Softmax, Sigmoid, SqrtSoftplus:
	default:
		return fmt.Errorf("scoring_func %.40q is not supported: expected softmax, sigmoid or sqrtsoftplus", c.Scoring)
	}
	if !(c.Scale > 0) || math.IsInf(float64(float32(c.Scale)), 0) {
		return fmt.Errorf("routed_scaling_factor is %v, expected a positive number", c.Scale)
	}
	if !(c.Limit >= 0) || math.IsInf(c.Limit, 0) {
		return fmt.Errorf("swiglu_limit is %v, expected a positive number, or 0 for none", c.Limit)
	}
	return c.validateGroups()
}

func (c *Config) validateGroups() error {
	if !c.grouped() {
		return nil
	}
	if c.Groups < 0 || c.Experts%c.Groups != 0 {
		return fmt.Errorf("n_group is %d, expected a divisor of the %d experts", c.Groups, c.Experts)
	}
	size := c.Experts / c.Groups
	switch {
	case c.ActiveGroups < 1 || c.ActiveGroups > c.Groups:
		return fmt.Errorf("topk_group is %d, expected 1 to the %d of n_group", c.ActiveGroups, c.Groups)
	case c.ActiveGroups*size < c.Active:
		return fmt.Errorf("topk_group is %d: as many groups of %d experts have fewer than num_experts_per_tok %d", c.ActiveGroups, size, c.Active)
	case c.GroupTop < 1 || c.GroupTop > 2 || c.GroupTop > size:
		return fmt.Errorf("n_group is %d: groups of %d experts cannot be scored by their best %d", c.Groups, size, c.GroupTop)
	}
	return nil
}

// grouped reports whether groups of experts are chosen first.
func (c *Config) grouped() bool { return c.Groups != 0 && c.Groups != 1 }
