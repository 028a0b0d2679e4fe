package model

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/foretoken/foretoken/internal/model/moe"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/model/residual"
)

// V4Config is what DeepSeek V4 has beyond other families.
type V4Config struct {
	QueryRank          int   // of queries
	OutGroups, OutRank int   // groups of heads that are projected together, and to how many values
	Ratios             []int // [Layers + MTPLayers], or [Layers]: positions per compressed entry; 0: window alone
	HashLayers         int   // the first layers, whose experts are chosen by token

	IndexHeads, IndexDim, IndexTopK int

	Hyper residual.Config
	Round bool // round what is cached as training did: to fp8, keys of the indexer to fp4
}

// deepseek4Fields are those of config.json.
type deepseek4Fields struct {
	QueryRank   *int     `json:"q_lora_rank"`
	RopeDim     *int     `json:"qk_rope_head_dim"`
	OutGroups   *int     `json:"o_groups"`
	OutRank     *int     `json:"o_lora_rank"`
	Ratios      []int    `json:"compress_ratios"`
	RopeTheta   *float64 `json:"compress_rope_theta"`
	HashLayers  *int     `json:"num_hash_layers"`
	Predict     int      `json:"num_nextn_predict_layers"`
	IndexHeads  *int     `json:"index_n_heads"`
	IndexDim    *int     `json:"index_head_dim"`
	IndexTopK   *int     `json:"index_topk"`
	Streams     *int     `json:"hc_mult"`
	HyperEps    *float64 `json:"hc_eps"`
	Iterations  *int     `json:"hc_sinkhorn_iters"`
	Experts     *int     `json:"n_routed_experts"`
	Active      *int     `json:"num_experts_per_tok"`
	Shared      *int     `json:"n_shared_experts"`
	Inner       *int     `json:"moe_intermediate_size"`
	Scoring     string   `json:"scoring_func"`
	Normalize   *bool    `json:"norm_topk_prob"`
	RoutedScale *float64 `json:"routed_scaling_factor"`
	SwiGLULimit *float64 `json:"swiglu_limit"`
}

func deepseek4Defaults(hf *hfConfig) {
	hf.IntermediateSize = cmp.Or(hf.IntermediateSize, new(1)) // all layers have experts
	hf.HeadDim = cmp.Or(hf.HeadDim, new(512))
	hf.SlidingWindow = cmp.Or(hf.SlidingWindow, new(128))
}

func deepseek4Config(c *Config, hf *hfConfig) error {
	var f deepseek4Fields
	if err := hf.read(&f); err != nil {
		return err
	}
	v := &V4Config{
		QueryRank: or(f.QueryRank, 1024), OutGroups: or(f.OutGroups, 8), OutRank: or(f.OutRank, 1024),
		Ratios: f.Ratios, HashLayers: or(f.HashLayers, 3),
		IndexHeads: or(f.IndexHeads, 64), IndexDim: or(f.IndexDim, 128), IndexTopK: or(f.IndexTopK, 512),
		Hyper: residual.Config{Streams: or(f.Streams, residual.Streams), Iterations: or(f.Iterations, 20), Eps: float32(or(f.HyperEps, 1e-6))},
	}
	if f.Experts == nil || f.Active == nil || f.Inner == nil {
		return errors.New("n_routed_experts, num_experts_per_tok and moe_intermediate_size: expected all three")
	}
	c.V4, c.MoE = v, &moe.Config{
		Experts: *f.Experts, Active: *f.Active, Inner: *f.Inner, Shared: or(f.Shared, 1) * *f.Inner,
		Scoring: moe.Scoring(cmp.Or(f.Scoring, "sqrtsoftplus")), Normalize: or(f.Normalize, true),
		Scale: or(f.RoutedScale, 1.5), Limit: or(f.SwiGLULimit, 0), WeighInner: true,
	}
	c.Rope.Dim, c.MTPLayers = or(f.RopeDim, 64), f.Predict
	return c.deepseek4(or(hf.SlidingWindow, 128), or(f.RopeTheta, 160000))
}

// deepseek4Heads reads the shape of attention: one vector of a position for
// all heads.
func deepseek4Heads(m *ggufConfig, c *Config) error {
	c.KVHeads = m.size("attention.head_count_kv", 1)
	c.HeadDim = m.size("attention.key_length", 0)
	c.Rope.Dim = m.size("rope.dimension_count", 64)
	c.QueryScale = 1 / math.Sqrt(float64(c.HeadDim))
	return m.err
}

func deepseek4GGUF(c *Config, m *ggufConfig) {
	v := &V4Config{
		QueryRank: m.size("attention.q_lora_rank", 0),
		OutGroups: m.size("attention.output_group_count", 0), OutRank: m.size("attention.output_lora_rank", 0),
		HashLayers: m.intOr("hash_layer_count", 0),
		IndexHeads: m.size("attention.indexer.head_count", 0), IndexDim: m.size("attention.indexer.key_length", 0),
		IndexTopK: m.size("attention.indexer.top_k", 0),
		Hyper: residual.Config{
			Streams:    m.size("hyper_connection.count", 0),
			Iterations: m.size("hyper_connection.sinkhorn_iterations", 0), Eps: float32(m.floatOr("hyper_connection.epsilon", 1e-6)),
		},
	}
	for _, r := range m.ints("attention.compress_ratios") {
		v.Ratios = append(v.Ratios, int(r))
	}
	c.V4 = v
	limits := m.floats("swiglu_clamp_exp")
	if shared := m.floats("swiglu_clamp_shexp"); !slices.Equal(limits, shared) || len(slices.Compact(slices.Clone(limits))) > 1 {
		m.fail("keys %s.swiglu_clamp_exp and swiglu_clamp_shexp: expected one value for all layers", m.arch)
		return
	}
	c.MoE = m.mixture(moe.Config{Scoring: moe.SqrtSoftplus, Normalize: true, Scale: 1, WeighInner: true}, c.Intermediate)
	switch {
	case c.MoE == nil:
		m.fail("key %s.expert_count is missing", m.arch)
		return
	case len(limits) > 0:
		c.MoE.Limit = float64(limits[0])
	}
	c.MTPLayers = m.intOr("nextn_predict_layers", 0)
	if m.err == nil {
		m.err = c.deepseek4(m.size("attention.sliding_window", 128), m.floatOr("attention.compress_rope_freq_base", 160000))
	}
}

// deepseek4 completes a configuration, whose rope is that of layers without a
// compressor, and checks it.
func (c *Config) deepseek4(window int, compressTheta float64) error {
	v := c.V4
	v.Hyper.Hidden, v.Hyper.NormEps = c.Hidden, float32(c.NormEps)
	// Angles are stretched where entries are compressed, and there alone. Nothing
	// multiplies cosines, sines or scores.
	c.Rope.Interleaved = true
	local := c.Rope
	local.Scaling = nn.RopeScaling{}
	c.LocalRope = &local
	c.Rope.Theta = compressTheta
	if c.Rope.Scaling.Type == "yarn" {
		c.Rope.Scaling.Attention = 1
	}
	c.Window = window

	layers := c.Layers + c.MTPLayers
	for _, f := range []struct {
		name             string
		value, low, high int
	}{
		{"num_key_value_heads", c.KVHeads, 1, 1},
		{"head_dim", c.HeadDim, 2, maxWidth},
		{"qk_rope_head_dim", c.Rope.Dim, 2, c.HeadDim},
		{"q_lora_rank", v.QueryRank, 1, maxWidth},
		{"o_groups", v.OutGroups, 1, c.Heads},
		{"o_lora_rank", v.OutRank, 1, maxWidth},
		{"num_hash_layers", v.HashLayers, 0, c.Layers},
		{"num_nextn_predict_layers", c.MTPLayers, 0, maxLayers},
		{"index_n_heads", v.IndexHeads, 1, maxWidth},
		{"index_head_dim", v.IndexDim, c.Rope.Dim, maxWidth},
		{"index_topk", v.IndexTopK, 1, math.MaxInt32},
		{"sliding_window", window, 1, maxWidth},
	} {
		if f.value < f.low || f.value > f.high {
			return fmt.Errorf("%s is %d, expected %d to %d", f.name, f.value, f.low, f.high)
		}
	}
	if c.Heads%v.OutGroups != 0 {
		return fmt.Errorf("num_attention_heads is %d, expected a multiple of o_groups %d", c.Heads, v.OutGroups)
	}
	if n := len(v.Ratios); n != c.Layers && n != layers {
		return fmt.Errorf("compress_ratios has %d entries, expected %d: one for each layer and each layer of multi-token prediction", n, layers)
	}
	for i, r := range v.Ratios {
		if r != 0 && r != overlapping && r != 128 {
			return fmt.Errorf("compress_ratios[%d] is %d, expected 0, 4 or 128", i, r)
		}
	}
	c.MoE.Vocab = c.Vocab
	return v.Hyper.Validate()
}
