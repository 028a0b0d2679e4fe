package convert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/tensor"
)

// describeExperts writes what GGUF has keys for, and refuses what it has none for.
func (p *plan) describeExperts(arch string, c *model.Config) error {
	m := c.MoE
	switch {
	case m == nil:
		return nil
	case slices.Contains(c.Dense, true):
		return fmt.Errorf("GGUF files of architecture %s cannot express that layer %d has no experts", arch, slices.Index(c.Dense, true))
	case !m.Normalize:
		return fmt.Errorf("GGUF files of architecture %s cannot express norm_topk_prob false", arch)
	}
	p.set(arch+".expert_count", uint32(m.Experts))
	p.set(arch+".expert_used_count", uint32(m.Active))
	if arch != "llama" { // there it is feed_forward_length
		p.set(arch+".expert_feed_forward_length", uint32(m.Inner))
	}
	return nil
}

// loadExperts lists the tensors in which GGUF has the experts of a layer, one for
// each projection, where the name of the first of them stands in the source. It
// reports whether name is that of an expert.
func (p *plan) loadExperts(source *checkpoint.Checkpoint, arch, name string, c *model.Config) (ok bool, err error) {
	layer, rest, ok := strings.Cut(name, ".mlp.experts.")
	if !ok {
		return false, nil
	}
	add := func(projection string, matrices []*tensor.Matrix) {
		stored, _ := checkpoint.GGUFName(arch, layer+".mlp.experts."+projection+".weight")
		p.weights = append(p.weights, stack(stored, matrices))
	}
	switch first, one := strings.CutPrefix(rest, "0."); {
	case rest == "gate_up_proj":
		matrices, err := source.Stack(name)
		if err != nil {
			return true, err
		}
		for i, projection := range []string{"gate_proj", "up_proj"} {
			half := make([]*tensor.Matrix, len(matrices))
			for e, m := range matrices {
				if half[e], err = m.Slice(i*m.Rows/2, (i+1)*m.Rows/2); err != nil {
					return true, err
				}
			}
			add(projection, half)
		}
	case rest == "down_proj":
		matrices, err := source.Stack(name)
		if err != nil {
			return true, err
		}
		add(rest, matrices)
	case one && strings.HasSuffix(first, ".weight"): // scales are part of it
		projection := strings.TrimSuffix(first, ".weight")
		matrices := make([]*tensor.Matrix, c.MoE.Experts)
		for e := range matrices {
			if matrices[e], err = source.Matrix(fmt.Sprintf("%s.mlp.experts.%d.%s", layer, e, first)); err != nil {
				return true, err
			}
		}
		add(projection, matrices)
	}
	return true, nil
}
