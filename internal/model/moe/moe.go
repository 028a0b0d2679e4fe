package moe

import (
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// MoE is the mixture of one layer:
//
//	y = Σ w_e · W_down,e(silu(W_gate,e·x) · W_up,e·x)  over the chosen experts e,  + shared(x)
type MoE struct {
	router
	gate       *nn.Linear // [Experts, hidden]
	experts    []expert
	shared     *nn.GatedMLP // nil: there is none
	memory     *Memory
	activation nn.Activation
	hidden     int

	plan plan

	// Arguments of routeOne, which is kept as a function, for making one of a
	// method costs an allocation.
	routeRow      func(row int)
	tokens        []int32
	logits, spare []float32
}

// Forward maps x [rows, hidden] to [rows, hidden].
func (m *MoE) Forward(step *nn.Step, st *nn.State, x []float32) []float32 {
	rows, p := len(x)/m.hidden, &m.plan
	p.resize(rows)
	m.route(step, st, x)
	p.arrange(m.experts)

	terms := len(p.rows)
	gate, up, out := st.Take(terms*m.Inner), st.Take(terms*m.Inner), st.Take(terms*m.hidden)
	for done := 0; done < len(p.called); {
		// As many experts as can be packed at once; one at least.
		m.memory.next()
		from := done
		for done < len(p.called) {
			held, err := m.memory.hold(&m.experts[p.called[done]])
			if err != nil {
				st.Fail(err)
				return st.Take(len(x))
			}
			if !held {
				break
			}
			done++
		}
		m.compute(st, x, gate, up, out, p.called[from:done])
	}

	y := st.Take(len(x))
	sum := kernel.Combination{
		Y: y, X: out, Width: m.hidden,
		Experts: m.Experts, Active: m.Active, Chosen: p.chosen, Places: p.places, Weights: p.weights,
	}
	if m.WeighInner {
		sum.Weights = nil
	}
	if m.shared != nil {
		sum.Shared = m.shared.Forward(step, st, x)
	}
	st.Pool.Combine(sum)
	return y
}

// route chooses the experts of every row.
func (m *MoE) route(step *nn.Step, st *nn.State, x []float32) {
	m.tokens = step.Tokens
	m.logits = m.gate.Forward(st, x)
	m.spare = st.Take(len(x) / m.hidden * (m.Experts + m.Groups))
	const grain = 16 // rows, of a microsecond or so
	st.Pool.Each(len(x)/m.hidden, grain, m.routeRow)
}

func (m *MoE) routeOne(row int) {
	n, k := m.Experts+m.Groups, m.Active
	m.router.route(m.logits[row*m.Experts:][:m.Experts], m.spare[row*n:][:n], m.tokens[row], m.plan.chosen[row*k:][:k], m.plan.weights[row*k:][:k])
}

// compute runs experts that are packed on their rows. gate, up [terms, Inner]
// and out [terms, hidden] are in the order of the plan.
func (m *MoE) compute(st *nn.State, x, gate, up, out []float32, experts []int32) {
	p, inner := &m.plan, m.Inner
	products := p.products[:0]
	for _, e := range experts {
		from, to := p.span(e)
		w := &m.experts[e].slot.weights
		products = append(products,
			kernel.Product{Y: gate[from*inner : to*inner], W: w[0], Rows: p.rows[from:to]},
			kernel.Product{Y: up[from*inner : to*inner], W: w[1], Rows: p.rows[from:to]})
	}
	st.Pool.MatMul(x, len(x)/m.hidden, products...)

	from, _ := p.span(experts[0])
	_, to := p.span(experts[len(experts)-1])
	gate, up = gate[from*inner:to*inner], up[from*inner:to*inner]
	m.activation(st.Pool, gate, up)
	if m.WeighInner {
		st.Pool.ScaleRows(gate, inner, p.ordered[from:to])
	}

	products = products[:0]
	for _, e := range experts {
		a, b := p.span(e)
		products = append(products, kernel.Product{
			Y: out[a*m.hidden : b*m.hidden], W: m.experts[e].slot.weights[2], Rows: p.counting[a-from : b-from],
		})
	}
	st.Pool.MatMul(gate, to-from, products...)
}
