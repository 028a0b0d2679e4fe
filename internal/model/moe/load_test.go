package moe

import (
	"math"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/tensor"
)

func TestValidate(t *testing.T) {
	v3 := Config{
		Experts: 24, Active: 6, Inner: 40, Shared: 40, Scoring: Sigmoid, Bias: true,
		Groups: 6, ActiveGroups: 3, GroupTop: 2, Normalize: true, Scale: 2.5,
	}
	if err := v3.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Experts = 0 }, "number of experts is 0, expected 1 to"},
		{func(c *Config) { c.Experts = 1 << 30 }, "number of experts is 1073741824, expected 1 to"},
		{func(c *Config) { c.Active = 0 }, "num_experts_per_tok is 0, expected 1 to 24"},
		{func(c *Config) { c.Active = 25 }, "num_experts_per_tok is 25, expected 1 to 24"},
		{func(c *Config) { c.Active = 13 }, "topk_group is 3: as many groups of 4 experts have fewer than num_experts_per_tok 13"},
		{func(c *Config) { c.Inner = 0 }, "moe_intermediate_size is 0"},
		{func(c *Config) { c.Inner = -1 }, "moe_intermediate_size is -1"},
		{func(c *Config) { c.Inner = 1 << 40 }, "moe_intermediate_size is 1099511627776"},
		{func(c *Config) { c.Shared = -1 }, "width of shared experts is -1"},
		{func(c *Config) { c.Scoring = "tanh\n" }, `scoring_func "tanh\n" is not supported: expected softmax`},
		{func(c *Config) { c.Scoring = "" }, `scoring_func "" is not supported`},
		{func(c *Config) { c.Groups = 5 }, "n_group is 5, expected a divisor of the 24 experts"},
		{func(c *Config) { c.Groups = -2 }, "n_group is -2, expected a divisor"},
		{func(c *Config) { c.Groups, c.Active = 24, 3 }, "n_group is 24: groups of 1 experts cannot be scored by their best 2"},
		{func(c *Config) { c.Groups, c.GroupTop = 25, 1 }, "n_group is 25, expected a divisor"},
		{func(c *Config) { c.ActiveGroups = 0 }, "topk_group is 0, expected 1 to the 6 of n_group"},
		{func(c *Config) { c.ActiveGroups = 7 }, "topk_group is 7, expected 1 to the 6 of n_group"},
		{func(c *Config) { c.GroupTop = 3 }, "best 3"},
		{func(c *Config) { c.Scale = 0 }, "routed_scaling_factor is 0, expected a positive number"},
		{func(c *Config) { c.Scale = math.NaN() }, "routed_scaling_factor is NaN"},
		{func(c *Config) { c.Scale = 1e300 }, "routed_scaling_factor is 1e+300"},
		{func(c *Config) { c.Limit = -1 }, "swiglu_limit is -1"},
		{func(c *Config) { c.Limit = math.Inf(1) }, "swiglu_limit is +Inf"},
		{func(c *Config) { c.Limit = math.NaN() }, "swiglu_limit is NaN"},
	} {
		c := v3
		tc.change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v, want an error with %q", err, tc.want)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	byToken := Config{Experts: 4, Active: 2, Inner: 32, Scoring: Softmax, Scale: 1, Hash: true, Vocab: 3}
	byScore := Config{Experts: 4, Active: 2, Inner: 32, Scoring: Sigmoid, Bias: true, Scale: 1}
	for _, tc := range []struct {
		config Config
		name   string // of the tensor to change, after mlp.
		change func(*layerFile, int)
		want   string
	}{
		{byToken, "gate.tid2eid", func(f *layerFile, i int) { f.tensors[i].Values[3] = 4 }, "row 1 has 4, expected an integer from 0 to 3"},
		{byToken, "gate.tid2eid", func(f *layerFile, i int) { f.tensors[i].Values[0] = -1 }, "row 0 has -1, expected"},
		{byToken, "gate.tid2eid", func(f *layerFile, i int) { f.tensors[i].Values[0] = 0.5 }, "row 0 has 0.5, expected"},
		{byToken, "gate.tid2eid", func(f *layerFile, i int) { f.tensors[i].Values[5] = float32(math.NaN()) }, "row 2 has NaN, expected"},
		{byToken, "gate.tid2eid", func(f *layerFile, i int) { f.tensors[i].Shape = []int{2, 3} }, "shape [2, 3], expected [3, 2]"},
		{byScore, "gate.e_score_correction_bias", func(f *layerFile, i int) { f.tensors[i].Shape, f.tensors[i].Values = []int{3}, f.tensors[i].Values[:3] }, "3 values, expected 4"},
		{byScore, "gate.weight", func(f *layerFile, i int) { f.tensors[i].Shape = []int{8, 32} }, "shape [8, 32], expected [4, 64]"},
		{byScore, "experts.3.down_proj.weight", func(f *layerFile, i int) { f.tensors[i].Shape = []int{32, 64} }, "shape [32, 64], expected [64, 32]"},
		{byScore, "experts.3.down_proj.weight", func(f *layerFile, i int) { f.tensors[i].Name += "x" }, `no tensor "mlp.experts.3.down_proj.weight"`},
		{byScore, "experts.2.up_proj.weight", func(f *layerFile, i int) {
			f.tensors[i].DType, f.tensors[i].Data = tensor.BF16, make([]byte, 2*len(f.tensors[i].Values))
		}, "stored in other types than"},
	} {
		f := newLayer(tc.config)
		for i := range f.tensors {
			if f.tensors[i].Name == "mlp."+tc.name {
				tc.change(f, i)
			}
		}
		if _, err := f.load(t, kernel.Packer{}, 1, 0); err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "mlp.") {
			t.Errorf("%s: %v, want an error with %q", tc.name, err, tc.want)
		}
	}
}
