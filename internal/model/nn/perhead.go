package nn

import "github.com/foretoken/foretoken/internal/kernel"

// PerHead is a linear layer of its own for each head, all of one shape.
type PerHead []*kernel.Weight

// Forward maps x [heads, rows, in] to [heads, rows, out], which is workspace.
func (p PerHead) Forward(st *State, x []float32) []float32 {
	rows := len(x) / (len(p) * p[0].Cols)
	return p.products(st, x, len(p)*rows, rows, rows)
}

// Broadcast maps x [rows, in], which all heads read, to [heads, rows, out],
// which is workspace.
func (p PerHead) Broadcast(st *State, x []float32) []float32 {
	rows := len(x) / p[0].Cols
	return p.products(st, x, rows, rows, 0)
}

// products multiplies n of the given rows for each head, which begin so many
// rows after those of the head before.
func (p PerHead) products(st *State, x []float32, rows, n, apart int) []float32 {
	out := n * p[0].Rows
	y := st.Take(len(p) * out)
	st.products, st.rows = st.products[:0], numbers(st.rows, rows)
	for h, w := range p {
		st.products = append(st.products, kernel.Product{Y: y[h*out : (h+1)*out], W: w, Rows: st.rows[h*apart : h*apart+n]})
	}
	st.Pool.MatMul(x, rows, st.products...)
	return y
}

// numbers returns 0, 1, … n-1 in memory that may be that of list, which counts
// likewise.
func numbers(list []int32, n int) []int32 {
	for i := len(list); i < n; i++ {
		list = append(list, int32(i))
	}
	return list
}
