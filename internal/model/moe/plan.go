package moe

import (
	"github.com/foretoken/foretoken/internal/kernel"
)

// A plan is who works on what in a step. Each row has Active terms, one for each
// expert that was chosen; in order of experts, those of an expert lie together.
type plan struct {
	active  int
	chosen  []int32   // [rows, Active]: experts, ascending
	weights []float32 // [rows, Active]

	places   []int32   // [rows, Active]: where each term is in the order
	rows     []int32   // [terms], in the order: the row of each
	ordered  []float32 // [terms], in the order: weights
	called   []int32   // experts that have terms, in the order
	sizes    []int32   // [Experts]: how many terms each has
	ends     []int32   // [Experts]: where its terms end
	counting []int32   // [terms]: 0, 1, 2, …

	products []kernel.Product // memory for those of a call
}

func (p *plan) init(c *Config) {
	p.active = c.Active
	p.called = make([]int32, 0, c.Experts)
	p.sizes, p.ends = make([]int32, c.Experts), make([]int32, c.Experts)
	p.products = make([]kernel.Product, 0, 2*c.Experts)
}

// resize makes room for the terms of as many rows.
func (p *plan) resize(rows int) {
	n := rows * p.active
	if n > cap(p.rows) {
		p.chosen, p.places, p.rows, p.counting = make([]int32, n), make([]int32, n), make([]int32, n), make([]int32, n)
		p.weights, p.ordered = make([]float32, n), make([]float32, n)
		for i := range p.counting {
			p.counting[i] = int32(i)
		}
	}
	p.chosen, p.places, p.rows = p.chosen[:n], p.places[:n], p.rows[:n]
	p.weights, p.ordered = p.weights[:n], p.ordered[:n]
}

// arrange orders terms by expert. Experts that are packed come first, so that
// none of them makes room for another before it has worked.
func (p *plan) arrange(experts []expert) {
	clear(p.sizes)
	for _, e := range p.chosen {
		p.sizes[e]++
	}
	p.called = p.called[:0]
	for _, packed := range []bool{true, false} {
		for e, n := range p.sizes {
			if n > 0 && (experts[e].slot != nil) == packed {
				p.called = append(p.called, int32(e))
			}
		}
	}
	at := int32(0)
	for _, e := range p.called {
		p.ends[e] = at // so far
		at += p.sizes[e]
	}
	for term, e := range p.chosen {
		place := p.ends[e]
		p.ends[e]++
		p.places[term], p.rows[place], p.ordered[place] = place, int32(term/p.active), p.weights[term]
	}
}

// span is where the terms of an expert are in the order.
func (p *plan) span(e int32) (from, to int) {
	return int(p.ends[e] - p.sizes[e]), int(p.ends[e])
}
