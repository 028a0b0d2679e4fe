package model

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/model/moe"
)

// deepseekExperts are the fields of config.json that say what all of DeepSeek's
// mixtures have.
type deepseekExperts struct {
	Routed    *int         `json:"n_routed_experts"`
	PerToken  *int         `json:"num_experts_per_tok"`
	Inner     *int         `json:"moe_intermediate_size"`
	Shared    *int         `json:"n_shared_experts"` // each as wide as a routed one
	Scoring   *moe.Scoring `json:"scoring_func"`
	Normalize *bool        `json:"norm_topk_prob"`
	Scaling   *float64     `json:"routed_scaling_factor"`
}

// read completes m, which has what files leave out, but for how many experts are
// shared. Errors: a number of experts or the width of one is missing, or out of
// range.
func (f *deepseekExperts) read(m *moe.Config, shared int) (err error) {
	if m.Experts, err = expertCount("n_routed_experts", f.Routed); err != nil {
		return err
	}
	err = required(
		requiredField{&m.Active, f.PerToken, "num_experts_per_tok"},
		requiredField{&m.Inner, f.Inner, "moe_intermediate_size"},
	)
	if err != nil {
		return err
	}
	if shared = or(f.Shared, shared); shared < 0 || shared > moe.MaxExperts {
		return fmt.Errorf("n_shared_experts is %d, expected 0 to %d", shared, moe.MaxExperts)
	}
	m.Shared = shared * m.Inner
	m.Scoring, m.Normalize, m.Scale = or(f.Scoring, m.Scoring), or(f.Normalize, m.Normalize), or(f.Scaling, m.Scale)
	return nil
}
