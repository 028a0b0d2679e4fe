package model

import (
	"cmp"

	"github.com/foretoken/foretoken/internal/model/moe"
)

// mixtral is Mixtral (Jiang et al. 2024): Mistral with a mixture of experts for
// each feed-forward network. The weights of the chosen experts are their softmax.
var mixtral = family{layer: llamaLayer, defaults: mixtralDefaults, adapt: mixtralConfig}

func mixtralDefaults(hf *hfConfig) error {
	hf.RMSNormEps = cmp.Or(hf.RMSNormEps, new(1e-5))
	hf.RopeTheta = cmp.Or(hf.RopeTheta, new(1e6))
	return nil
}

func mixtralConfig(c *Config, hf *hfConfig) error {
	var f struct {
		NumLocalExperts  *int `json:"num_local_experts"`
		NumExpertsPerTok *int `json:"num_experts_per_tok"`
	}
	if err := hf.read(&f); err != nil {
		return err
	}
	experts, err := expertCount("num_local_experts", cmp.Or(f.NumLocalExperts, new(8)))
	if err != nil {
		return err
	}
	c.MoE = &moe.Config{
		Experts: experts, Active: or(f.NumExpertsPerTok, 2), Inner: c.Intermediate,
		Scoring: moe.Softmax, GroupTop: 1, Normalize: true, Scale: 1,
	}
	return mistralConfig(c, hf)
}

func mixtralGGUF(c *Config, m *ggufConfig) {
	c.MoE = m.mixture(moe.Config{Scoring: moe.Softmax, Normalize: true, Scale: 1}, c.Intermediate)
}
