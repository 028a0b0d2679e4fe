package model

import (
	"cmp"
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
	Predict     *int     `json:"num_nextn_predict_layers"`
	IndexHeads  *int     `json:"index_n_heads"`
	IndexDim    *int     `json:"index_head_dim"`
	IndexTopK   *int     `json:"index_topk"`
	Streams     *int     `json:"hc_mult"`
	HyperEps    *float64 `json:"hc_eps"`
	Iterations  *int     `json:"hc_sinkhorn_iters"`
	SwiGLULimit *float64 `json:"swiglu_limit"`
	Method      *string  `json:"topk_method"`
	deepseekExperts
}

func deepseek4Defaults(hf *hfConfig) error {
	hf.IntermediateSize = new(1) // see deepseek4: all layers have experts
	hf.NumKeyValueHeads = cmp.Or(hf.NumKeyValueHeads, new(1))
	hf.HeadDim = cmp.Or(hf.HeadDim, new(512))
	hf.SlidingWindow = cmp.Or(hf.SlidingWindow, new(128))
	return hf.twoRopes()
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
	m := &moe.Config{
		Scoring: moe.SqrtSoftplus, Normalize: true, Scale: 1.5, GroupTop: 1,
		Limit: or(f.SwiGLULimit, 0), WeighInner: true,
	}
	if err := f.deepseekExperts.read(m, 1); err != nil {
		return err
	}
	if method := or(f.Method, "noaux_tc"); method != "noaux_tc" {
		return fmt.Errorf("topk_method %.40q is not supported: expected noaux_tc", method)
	}
	c.V4, c.MoE = v, m
	c.Rope.Dim, c.MTPLayers = or(f.RopeDim, 64), or(f.Predict, 0)
	theta := or(f.RopeTheta, 160000)
	if v.Ratios == nil {
		if err := c.deepseek4Native(hf, &theta); err != nil {
			return err
		}
	}
	return c.deepseek4(*hf.SlidingWindow, theta)
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
	if shared := m.floats("swiglu_clamp_shexp"); shared != nil && !slices.Equal(limits, shared) || len(slices.Compact(slices.Clone(limits))) > 1 {
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
	// Modules of multi-token prediction, where files have them, are counted with
	// the layers.
	n := m.intOr("nextn_predict_layers", 0)
	if _, ok := m.source.Info(fmt.Sprintf("blk.%d.nextn.eh_proj.weight", c.Layers-n)); ok && n > 0 && n < c.Layers {
		c.Layers, c.MTPLayers = c.Layers-n, n
	}
	window, theta := m.size("attention.sliding_window", 128), m.floatOr("attention.compress_rope_freq_base", 160000)
	if m.err == nil {
		m.err = c.deepseek4(window, theta)
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
	c.Window, c.Intermediate = window, c.MoE.Inner

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
		{"hc_mult", v.Hyper.Streams, residual.Streams, residual.Streams},
		{"hc_sinkhorn_iters", v.Hyper.Iterations, 1, residual.MaxIterations},
		{"index_topk", v.IndexTopK, 1, math.MaxInt32},
		{"sliding_window", window, 1, maxWidth},
		{"moe_intermediate_size", c.MoE.Inner, 1, maxWidth},
	} {
		if f.value < f.low || f.value > f.high {
			if f.low == f.high {
				return fmt.Errorf("%s is %d, expected %d", f.name, f.value, f.low)
			}
			return fmt.Errorf("%s is %d, expected %d to %d", f.name, f.value, f.low, f.high)
		}
	}
	if c.Rope.Dim%2 != 0 {
		return fmt.Errorf("qk_rope_head_dim is %d, expected an even number: rotary embeddings turn pairs", c.Rope.Dim)
	}
	if eps := v.Hyper.Eps; !(eps > 0 && eps < 1) {
		return fmt.Errorf("hc_eps is %v, expected a number between 0 and 1", eps)
	}
	if c.Heads%v.OutGroups != 0 {
		return fmt.Errorf("num_attention_heads is %d, expected a multiple of o_groups %d", c.Heads, v.OutGroups)
	}
	// Files without modules of multi-token prediction may still count one.
	if n, most := len(v.Ratios), c.Layers+max(c.MTPLayers, 1); n < c.Layers || n > most {
		return fmt.Errorf("compress_ratios has %d entries, expected %d: one for each of %d layers and, behind them, modules of multi-token prediction", n, most, c.Layers)
	}
	for i, r := range v.Ratios {
		if r != 0 && r != overlapping && r != heavy {
			return fmt.Errorf("compress_ratios[%d] is %d, expected 0, 4 or 128", i, r)
		}
	}
	c.MoE.Vocab = c.Vocab
	return v.Hyper.Validate()
}
