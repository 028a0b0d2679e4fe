package model

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/model/attention"
	"github.com/foretoken/foretoken/internal/model/moe"
)

// deepseekHeadsGGUF reads the shape of latent attention. Newer files say the
// widths of heads in keys of their own, and in the common ones those of what
// absorbed heads attend to; older files have the former in the common keys.
func deepseekHeadsGGUF(m *ggufConfig, c *Config) error {
	mla := attention.MLAConfig{
		QueryRank: m.intOr("attention.q_lora_rank", 0), // 0: files of "lite" models
		Rank:      m.size("attention.kv_lora_rank", 0),
		RopeDim:   m.size("rope.dimension_count", 0),
	}
	head := m.size("attention.key_length_mla", m.intOr("attention.key_length", 0))
	mla.ValueDim = m.size("attention.value_length_mla", m.intOr("attention.value_length", 0))
	if m.err != nil {
		return m.err
	}
	if mla.NopeDim = head - mla.RopeDim; mla.NopeDim < 1 {
		return fmt.Errorf("key %s.attention.key_length_mla is %d, expected more than the rope.dimension_count %d", m.arch, head, mla.RopeDim)
	}
	return c.latent(mla)
}

func deepseekConfigGGUF(c *Config, m *ggufConfig) {
	c.Rope.Interleaved = true
	if c.Rope.Scaling.Type == "yarn" {
		c.Rope.Scaling.Attention = 1
		const most = maxMScale / 10
		multiplier := m.floatOr("rope.scaling.yarn_log_multiplier", 0)
		if !(multiplier >= 0 && multiplier <= most) {
			m.fail("key %s.rope.scaling.yarn_log_multiplier is %v, expected 0 to %d", m.arch, multiplier, most)
			return
		}
		c.sharpen(multiplier)
	}
	// Layers of multi-token prediction are counted with the others.
	c.MTPLayers = m.intOr("nextn_predict_layers", 0)
	if c.MTPLayers < 0 || c.MTPLayers >= c.Layers {
		m.fail("key %s.nextn_predict_layers is %d, expected 0 to %d of %d blocks", m.arch, c.MTPLayers, c.Layers-1, c.Layers)
		return
	}
	c.Layers -= c.MTPLayers
	if m.arch == "deepseek32" {
		if eps := m.floatOr("attention.layer_norm_epsilon", attention.IndexEps); float32(eps) != attention.IndexEps {
			m.fail("key %s.attention.layer_norm_epsilon is %v, expected %v", m.arch, float32(eps), attention.IndexEps)
			return
		}
		err := c.index(attention.IndexerConfig{
			Heads: m.size("attention.indexer.head_count", 0),
			Dim:   m.size("attention.indexer.key_length", 0),
			TopK:  m.size("attention.indexer.top_k", 0),
		})
		if err != nil {
			m.fail("%w", err)
			return
		}
	}
	c.MoE = m.mixture(moe.Config{Scoring: moe.Softmax, Scale: 1}, 0) // of V2, whose files say less
	if c.MoE == nil {
		return
	}
	if c.MoE.Scoring == moe.Sigmoid { // V3
		c.MoE.Bias, c.MoE.GroupTop = true, 2
	}
	if err := c.denseLayers(m.intOr("leading_dense_block_count", 0), 1); err != nil {
		m.fail("%w", err)
	}
}
