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
	rows := len(x) / l.Weight.Cols
	y := st.Take(rows * l.Weight.Rows)
	st.Pool.MatMul(y, x, rows, l.Weight, l.Bias)
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
	kernel.RMSNorm(y, x, n.Weight, n.Eps)
	return y
}

// InPlace normalises each row of x. A nil Norm leaves x as it is.
func (n *Norm) InPlace(x []float32) {
	if n != nil {
		kernel.RMSNorm(x, x, n.Weight, n.Eps)
	}
}

// A GatedMLP is down(act(gate(x)) · up(x)).
type GatedMLP struct {
	Gate, Up, Down *Linear
	Activation     func(gate, up []float32) // writes act(gate)·up into gate
}

// Forward maps x [rows, hidden] to [rows, hidden].
func (m *GatedMLP) Forward(st *State, x []float32) []float32 {
	gate := m.Gate.Forward(st, x)
	m.Activation(gate, m.Up.Forward(st, x))
	return m.Down.Forward(st, gate)
}
