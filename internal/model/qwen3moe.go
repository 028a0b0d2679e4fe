package model

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/foretoken/foretoken/internal/model/moe"
)

// qwen3moe is Qwen3's mixtures of experts (Yang et al. 2025): the attention of
// Qwen3, and many small experts without a shared one.
var qwen3moe = family{
	layer: qwen3MoELayer, defaults: qwen3MoEDefaults, adapt: qwen3MoEConfig, adaptGGUF: qwen3MoEGGUF, experts: true,
}

func qwen3MoELayer(b *builder, i int) Layer { return b.preNorm(i, b.normedAttention(i), b.ffn(i)) }

// qwen3MoEDefaults: a file may leave out the width of dense layers that it does
// not have.
func qwen3MoEDefaults(hf *hfConfig) error {
	hf.IntermediateSize = cmp.Or(hf.IntermediateSize, new(6144))
	return nil
}

func qwen3MoEConfig(c *Config, hf *hfConfig) error {
	var f struct {
		NumExperts          *int  `json:"num_experts"`
		NumExpertsPerTok    *int  `json:"num_experts_per_tok"`
		MoEIntermediateSize *int  `json:"moe_intermediate_size"`
		NormTopKProb        bool  `json:"norm_topk_prob"`
		DecoderSparseStep   *int  `json:"decoder_sparse_step"`
		MLPOnlyLayers       []int `json:"mlp_only_layers"`
	}
	if err := hf.read(&f); err != nil {
		return err
	}
	experts, err := expertCount("num_experts", cmp.Or(f.NumExperts, new(128)))
	if err != nil {
		return err
	}
	c.MoE = &moe.Config{
		Experts: experts, Active: or(f.NumExpertsPerTok, 8), Inner: or(f.MoEIntermediateSize, 768),
		Scoring: moe.Softmax, GroupTop: 1, Normalize: f.NormTopKProb, Scale: 1,
	}
	step := or(f.DecoderSparseStep, 1)
	if step < 1 {
		return fmt.Errorf("decoder_sparse_step is %d, expected a positive number", step)
	}
	c.Dense = make([]bool, c.Layers)
	sparse := everyNth(step)
	for i := range c.Dense {
		c.Dense[i] = !sparse(i)
	}
	for _, i := range f.MLPOnlyLayers {
		if i < 0 || i >= c.Layers {
			return fmt.Errorf("mlp_only_layers has %d, expected 0 to %d", i, c.Layers-1)
		}
		c.Dense[i] = true
	}
	if !slices.Contains(c.Dense, true) {
		c.Dense = nil
	}
	return qwenConfig(c, hf)
}

func qwen3MoEGGUF(c *Config, m *ggufConfig) {
	c.MoE = m.mixture(moe.Config{Scoring: moe.Softmax, Normalize: true, Scale: 1}, 0)
}
