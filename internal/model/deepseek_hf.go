package model

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/model/attention"
	"github.com/foretoken/foretoken/internal/model/moe"
)

// deepseekFields are those of config.json that DeepSeek's models have beside
// the common ones.
type deepseekFields struct {
	QLoraRank  *int `json:"q_lora_rank"`
	KVLoraRank *int `json:"kv_lora_rank"`
	NopeDim    *int `json:"qk_nope_head_dim"`
	RopeDim    *int `json:"qk_rope_head_dim"`
	ValueDim   *int `json:"v_head_dim"`

	RopeInterleave *bool `json:"rope_interleave"`

	deepseekExperts
	Groups       *int    `json:"n_group"`
	ActiveGroups *int    `json:"topk_group"`
	Method       *string `json:"topk_method"`
	FirstDense   *int    `json:"first_k_dense_replace"`
	LayerFreq    *int    `json:"moe_layer_freq"`

	NextN *int `json:"num_nextn_predict_layers"`

	IndexHeads *int `json:"index_n_heads"`
	IndexDim   *int `json:"index_head_dim"`
	IndexTopK  *int `json:"index_topk"`
}

// required reads fields that have to be there.
func required(fields ...requiredField) error {
	for _, f := range fields {
		if f.from == nil {
			return fmt.Errorf("%s is missing", f.name)
		}
		*f.to = *f.from
	}
	return nil
}

type requiredField struct {
	to   *int
	from *int
	name string
}

func deepseekConfig(c *Config, hf *hfConfig) error {
	var f deepseekFields
	if err := hf.read(&f); err != nil {
		return err
	}
	mla := attention.MLAConfig{QueryRank: or(f.QLoraRank, 0)}
	err := required(
		requiredField{&mla.Rank, f.KVLoraRank, "kv_lora_rank"},
		requiredField{&mla.NopeDim, f.NopeDim, "qk_nope_head_dim"},
		requiredField{&mla.RopeDim, f.RopeDim, "qk_rope_head_dim"},
		requiredField{&mla.ValueDim, f.ValueDim, "v_head_dim"},
	)
	if err != nil {
		return err
	}
	if f.QLoraRank != nil && *f.QLoraRank < 1 {
		return fmt.Errorf("q_lora_rank is %d, expected a positive number or null", *f.QLoraRank)
	}
	if err := c.latent(mla); err != nil {
		return err
	}
	c.Rope.Interleaved = or(f.RopeInterleave, true)
	scaling, err := hf.scaling()
	if err != nil {
		return err
	}
	if scaling != nil {
		c.sharpen(0.1 * or(scaling.MScaleAllDim, 0))
	}
	if c.MTPLayers = or(f.NextN, 0); c.MTPLayers < 0 || c.MTPLayers > maxLayers {
		return fmt.Errorf("num_nextn_predict_layers is %d, expected 0 to %d", c.MTPLayers, maxLayers)
	}
	if hf.ModelType == "deepseek_v32" {
		var index attention.IndexerConfig
		err := required(
			requiredField{&index.Heads, f.IndexHeads, "index_n_heads"},
			requiredField{&index.Dim, f.IndexDim, "index_head_dim"},
			requiredField{&index.TopK, f.IndexTopK, "index_topk"},
		)
		if err != nil {
			return err
		}
		if err := c.index(index); err != nil {
			return err
		}
	}
	return f.experts(c)
}

// scaling is rope_scaling, wherever the file has it; nil: there is none.
func (hf *hfConfig) scaling() (*hfRope, error) {
	if isNull(hf.RopeParameters) {
		return hf.RopeScaling, nil
	}
	r := new(hfRope)
	if err := unmarshal("rope_parameters", hf.RopeParameters, r); err != nil {
		return nil, err
	}
	return r, r.checkMScale("rope_parameters")
}

// experts reads how layers choose experts, and which do.
func (f *deepseekFields) experts(c *Config) error {
	if f.Routed == nil {
		return nil
	}
	v2 := c.Architecture == "deepseek_v2"
	m, method := &moe.Config{Scoring: moe.Sigmoid, GroupTop: 1, Normalize: !v2, Scale: 1}, "noaux_tc"
	if v2 {
		m.Scoring, method = moe.Softmax, "greedy"
	}
	if err := f.deepseekExperts.read(m, 0); err != nil {
		return err
	}
	if m.Scoring != moe.Softmax && m.Scoring != moe.Sigmoid {
		return fmt.Errorf("scoring_func %.40q is not supported: expected softmax or sigmoid", string(m.Scoring))
	}
	switch method = or(f.Method, method); method {
	case "greedy":
	case "group_limited_greedy": // V2: a group counts as its best expert
		m.Groups, m.ActiveGroups = or(f.Groups, 1), or(f.ActiveGroups, 1)
	case "noaux_tc": // V3: as its best two
		m.Groups, m.ActiveGroups, m.GroupTop, m.Bias = or(f.Groups, 1), or(f.ActiveGroups, 1), 2, true
	default:
		return fmt.Errorf("topk_method %.40q is not supported: expected greedy, group_limited_greedy or noaux_tc", method)
	}
	if m.Groups < 1 && method != "greedy" {
		return fmt.Errorf("n_group is %d, expected a divisor of the %d experts", m.Groups, m.Experts)
	}
	if v2 && m.Normalize {
		m.Scale = 1 // V2 does one or the other
	}
	c.MoE = m
	return c.denseLayers(or(f.FirstDense, 0), or(f.LayerFreq, 1))
}

// denseLayers marks those that have no experts: the first ones, and all but
// every freq-th.
func (c *Config) denseLayers(first, freq int) error {
	if first < 0 || first > c.Layers {
		return fmt.Errorf("first_k_dense_replace is %d, expected 0 to num_hidden_layers %d", first, c.Layers)
	}
	if freq < 1 {
		return fmt.Errorf("moe_layer_freq is %d, expected a positive number", freq)
	}
	c.Dense = make([]bool, c.Layers+c.MTPLayers)
	for i := range c.Dense {
		c.Dense[i] = i < first || i%freq != 0
	}
	return nil
}
