package model

import (
	"errors"
	"fmt"
	"slices"
)

// deepseek4NativeFields are those in which configurations that transformers
// wrote say what DeepSeek's own say otherwise.
type deepseek4NativeFields struct {
	Kinds   []string       `json:"layer_types"`
	Rates   map[string]int `json:"compress_rates"`
	MLPs    []string       `json:"mlp_layer_types"`
	Partial *float64       `json:"partial_rotary_factor"`
	Rope    struct {
		Main     *hfRope `json:"main"`
		Compress *hfRope `json:"compress"`
	} `json:"rope_parameters"`
}

// twoRopes gives the two rotary embeddings of DeepSeek V4 the places that they
// have in its own files: the base of layers with compressed entries apart, and
// everything else as if there was one.
func (hf *hfConfig) twoRopes() error {
	hf.PartialRotary = nil // it is qk_rope_head_dim in other words
	if isNull(hf.RopeParameters) {
		return nil
	}
	var f deepseek4NativeFields
	if err := hf.read(&f); err != nil {
		return err
	}
	switch {
	case f.Rope.Main == nil && f.Rope.Compress == nil: // rope_scaling by its newer name
		hf.RopeScaling = new(hfRope)
		err := unmarshal("rope_parameters", hf.RopeParameters, hf.RopeScaling)
		hf.RopeParameters, hf.RopeScaling.PartialRotary = nil, nil
		return err
	case f.Rope.Main == nil || f.Rope.Compress == nil:
		return errors.New("rope_parameters: expected both main and compress")
	}
	if t := f.Rope.Main.Type; t != "" && t != "default" {
		return fmt.Errorf("rope_parameters.main.rope_type is %.40q, expected default", t)
	}
	hf.RopeParameters, hf.RopeTheta, hf.RopeScaling = nil, f.Rope.Main.Theta, f.Rope.Compress
	hf.RopeScaling.Theta, hf.RopeScaling.PartialRotary = f.Rope.Main.Theta, nil
	return nil
}

// compressRates has the kinds of attention and their compress_ratios.
var compressRates = map[string]int{
	"sliding_attention": 0, "compressed_sparse_attention": overlapping, "heavily_compressed_attention": heavy,
}

// deepseek4Native reads what layers are.
func (c *Config) deepseek4Native(hf *hfConfig, compressTheta *float64) error {
	var f deepseek4NativeFields
	if err := hf.read(&f); err != nil {
		return err
	}
	if f.Kinds == nil {
		return errors.New("compress_ratios is missing")
	}
	for kind, rate := range f.Rates {
		if want, ok := compressRates[kind]; !ok || rate != want {
			return fmt.Errorf("compress_rates has %d for %.40q, expected 4 for compressed_sparse_attention and 128 for heavily_compressed_attention", rate, kind)
		}
	}
	if len(f.Kinds) != c.Layers {
		return fmt.Errorf("layer_types has %d entries, expected %d", len(f.Kinds), c.Layers)
	}
	for _, kind := range f.Kinds {
		ratio, ok := compressRates[kind]
		if !ok {
			return fmt.Errorf("layer_types: %.40q is not supported: expected sliding_attention, compressed_sparse_attention or heavily_compressed_attention", kind)
		}
		c.V4.Ratios = append(c.V4.Ratios, ratio)
	}
	if f.MLPs != nil {
		if len(f.MLPs) != c.Layers {
			return fmt.Errorf("mlp_layer_types has %d entries, expected %d", len(f.MLPs), c.Layers)
		}
		c.V4.HashLayers = 0
		for c.V4.HashLayers < c.Layers && f.MLPs[c.V4.HashLayers] == "hash_moe" {
			c.V4.HashLayers++
		}
		if i := slices.IndexFunc(f.MLPs[c.V4.HashLayers:], func(kind string) bool { return kind != "moe" }); i >= 0 {
			return fmt.Errorf("mlp_layer_types: %.40q at %d, expected some hash_moe, and moe behind them", f.MLPs[c.V4.HashLayers+i], c.V4.HashLayers+i)
		}
	}
	if f.Partial != nil {
		c.Rope.Dim = int(float64(c.HeadDim)**f.Partial + 0.5)
	}
	if r := f.Rope.Compress; r != nil && r.Theta != nil {
		*compressTheta = *r.Theta
	}
	return nil
}
