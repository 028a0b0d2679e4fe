package nn

import "github.com/foretoken/foretoken/internal/kernel"

// A Linear computes x·wᵀ + bias.
type Linear struct {
	Weight *kernel.Weight
	Bias   []float32 // [out] or nil
}

// Forward multiplies rows rows of x [rows, in]; the result [rows, out] is
// workspace.
func (l *Linear) Forward(st *State, x []float32) []float32 {
	return Project(st, x, l)[0]
}

// maxProjections bounds the layers of one Project: queries, keys, values and
// gates.
const maxProjections = 4

// Project applies layers to one input x [rows, in] in a single pass of the
// workers; the results [rows, out] are workspace.
func Project(st *State, x []float32, layers ...*Linear) (y [maxProjections][]float32) {
	var products [maxProjections]kernel.Product
	rows := len(x) / layers[0].Weight.Cols
	for i, l := range layers {
		y[i] = st.Take(rows * l.Weight.Rows)
		products[i] = kernel.Product{Y: y[i], W: l.Weight, Bias: l.Bias}
	}
	st.Pool.MatMul(x, rows, products[:len(layers)]...)
	return y
}

// A Norm is RMSNorm with a learned weight.
type Norm struct {
	Weight []float32
	Eps    float32
}

// Forward normalises each row of x; the result is workspace.
func (n *Norm) Forward(st *State, x []float32) []float32 {
	y := st.Take(len(x))
	st.Pool.RMSNorm(y, x, n.Weight, n.Eps)
	return y
}

// InPlace normalises each row of x. A nil Norm leaves x as it is.
func (n *Norm) InPlace(st *State, x []float32) {
	if n != nil {
		st.Pool.RMSNorm(x, x, n.Weight, n.Eps)
	}
}

// An Activation writes act(gate)·up into gate.
type Activation func(p *kernel.Pool, gate, up []float32)

// A GatedMLP is down(act(gate(x)) · up(x)).
type GatedMLP struct {
	Gate, Up, Down *Linear
	Activation     Activation
}

// Forward maps x [rows, hidden] to [rows, hidden].
func (m *GatedMLP) Forward(_ *Step, st *State, x []float32) []float32 {
	y := Project(st, x, m.Gate, m.Up)
	m.Activation(st.Pool, y[0], y[1])
	return m.Down.Forward(st, y[0])
}
