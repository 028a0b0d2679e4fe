package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/tensor"
)

// weights counts parameters, and bytes by type.
func (d *description) weights(c *checkpoint.Checkpoint, config *model.Config) {
	d.WeightBytes = c.Size()
	shares := map[tensor.DType]*typeShare{}
	var always, routed int64 // parameters that work on every token, and those of experts of which some do
	for _, name := range c.Names() {
		info, _ := c.Info(name)
		values := int64(1)
		for _, n := range info.Shape {
			values *= int64(n)
		}
		s := shares[info.DType]
		if s == nil {
			s = &typeShare{Type: info.DType.String()}
			shares[info.DType] = s
		}
		s.Tensors++
		s.Bytes += values / int64(info.DType.BlockLen()) * int64(info.DType.BlockBytes())
		if !learned(c, name) {
			continue
		}
		if m, err := c.Matrix(name); err == nil { // packed values are counted one by one
			values = int64(m.Rows) * int64(m.Cols)
		}
		d.Parameters += values
		switch {
		case ofMTP(name, config.Layers):
			d.MTPParameters += values
		case strings.Contains(name, ".mlp.experts."):
			routed += values
		case strings.HasPrefix(name, "model.") || strings.HasPrefix(name, "lm_head."):
			always += values
		}
	}
	d.ActiveParameters = always
	if m := config.MoE; m != nil {
		d.ActiveParameters += routed / int64(m.Experts) * int64(m.Active)
	}
	for _, s := range shares {
		d.Types = append(d.Types, *s)
	}
	slices.SortFunc(d.Types, func(a, b typeShare) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Type, b.Type))
	})
}

// learned reports whether a tensor has parameters: scales of stored weights,
// rotary frequencies and tables of experts are none.
func learned(c *checkpoint.Checkpoint, name string) bool {
	if weight, ok := strings.CutSuffix(name, ".scale"); ok {
		if _, ok := c.Info(weight + ".weight"); ok {
			return false
		}
	}
	return !strings.HasSuffix(name, "_scale_inv") && !strings.HasSuffix(name, ".tid2eid") &&
		!strings.HasSuffix(name, "rotary_emb.inv_freq") && !strings.HasPrefix(name, "rope_")
}

// ofMTP reports whether a tensor belongs to a module of multi-token prediction:
// they have names of their own, or those of layers behind the model's.
func ofMTP(name string, layers int) bool {
	if strings.HasPrefix(name, "model.mtp.") {
		return true
	}
	rest, ok := strings.CutPrefix(name, "model.layers.")
	number, _, _ := strings.Cut(rest, ".")
	i, err := strconv.Atoi(number)
	return ok && err == nil && i >= layers
}
