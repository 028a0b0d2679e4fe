package moe

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/tensor"
)

// Load reads the mixture of a layer whose tensors w names: gate, experts and
// shared_experts. Experts are in m from then on.
func Load(w *nn.Loader, c *Config, hidden int, m *Memory) *MoE {
	l := &MoE{
		router:     router{Config: c},
		gate:       w.ExactLinear("gate", c.Experts, hidden),
		memory:     m,
		activation: (*kernel.Pool).SwiGLU,
		hidden:     hidden,
	}
	if c.Limit > 0 {
		limit := float32(c.Limit)
		l.activation = func(p *kernel.Pool, gate, up []float32) { p.ClampedSwiGLU(gate, up, limit) }
	}
	if c.Bias && !c.Hash {
		l.bias = w.Vector("gate.e_score_correction_bias", c.Experts)
	}
	if c.Hash {
		l.table = w.Indices("gate.tid2eid", c.Vocab, c.Active, c.Experts)
	}
	l.experts = readExperts(w, c, hidden)
	m.share = float64(c.Active) / float64(c.Experts)
	for i := range l.experts {
		m.load(w, &l.experts[i])
	}
	if c.Shared > 0 {
		l.shared = w.Sub("shared_experts.").GatedMLP(hidden, c.Shared, l.activation)
	}
	l.plan.init(c)
	l.routeRow = l.routeOne
	return l
}

// readExperts finds the matrices of experts in any of the forms that files give
// them: one tensor for each, a stack for each projection (GGUF), or one in which
// the rows of up projections follow those of gates (transformers since 5).
// Experts of a layer are all stored alike. nil: there was an error.
func readExperts(w *nn.Loader, c *Config, hidden int) []expert {
	experts := make([]expert, c.Experts)
	put := func(i int, stack []*tensor.Matrix) {
		for e, m := range stack {
			experts[e].matrices[i] = m
		}
	}
	switch {
	case w.Has("experts.gate_up_proj"):
		for e, m := range w.Stack("experts.gate_up_proj", c.Experts, 2*c.Inner, hidden) {
			for i := range 2 {
				part, err := m.Slice(i*c.Inner, (i+1)*c.Inner)
				w.Fail(err)
				experts[e].matrices[i] = part
			}
		}
		put(2, w.Stack("experts.down_proj", c.Experts, hidden, c.Inner))
	case w.GGUF() || w.Has("experts.gate_proj.weight"):
		put(0, w.Stack("experts.gate_proj.weight", c.Experts, c.Inner, hidden))
		put(1, w.Stack("experts.up_proj.weight", c.Experts, c.Inner, hidden))
		put(2, w.Stack("experts.down_proj.weight", c.Experts, hidden, c.Inner))
	default:
		for e := range experts {
			w := w.Sub("experts.%d.", e)
			experts[e].matrices = [3]*tensor.Matrix{
				w.Matrix("gate_proj.weight", c.Inner, hidden),
				w.Matrix("up_proj.weight", c.Inner, hidden),
				w.Matrix("down_proj.weight", hidden, c.Inner),
			}
			if w.Err() != nil {
				break
			}
		}
	}
	if w.Err() != nil {
		return nil
	}
	for e := range experts {
		if first := experts[0].matrices; !alike(experts[e].matrices, first) {
			w.Fail(fmt.Errorf("%s: stored in other types than %s, expected the same for all experts of a layer", experts[e].matrices[0].Name, first[0].Name))
			return nil
		}
	}
	return experts
}
