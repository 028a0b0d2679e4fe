package nn

import (
	"slices"

	"github.com/foretoken/foretoken/internal/tensor"
)

// PerHead reads name.weight [heads·out, in], whose parts of out rows are
// layers of their own.
func (l *Loader) PerHead(name string, heads, out, in int) PerHead {
	m := l.Matrix(name+".weight", heads*out, in)
	layers := make(PerHead, heads)
	if m == nil || l.Packer == nil {
		return layers
	}
	m = m.Sliceable(out)
	for h := range layers {
		part, err := m.Slice(h*out, (h+1)*out)
		l.Fail(err)
		layers[h] = l.Pack(part, 0)
	}
	return layers
}

// Floats reads a two-dimensional tensor as float32, row after row.
func (l *Loader) Floats(name string, rows, cols int) []float32 {
	return l.floats(l.Matrix(name, rows, cols))
}

func (l *Loader) floats(m *tensor.Matrix) []float32 {
	if m == nil {
		return nil
	}
	rows, cols := m.Rows, m.Cols
	values := make([]float32, rows*cols)
	l.Fail(l.source.Guard(func() error {
		for r := range rows {
			m.Row(values[r*cols:], r)
		}
		return nil
	}))
	return values
}

// Indices reads a two-dimensional tensor of numbers below limit, row after row.
func (l *Loader) Indices(name string, rows, cols, limit int) []int32 {
	values := l.floats(l.matrix(name, rows, cols))
	indices := make([]int32, len(values))
	for i, v := range values {
		indices[i] = int32(v)
		if float32(indices[i]) != v || v < 0 || v >= float32(limit) {
			l.Fail(l.errorf(l.prefix+name, "row %d has %v, expected an integer from 0 to %d", i/cols, v, limit-1))
			return nil
		}
	}
	return indices
}

// PlainNorm is an RMSNorm of n values without weights.
func PlainNorm(n int, eps float32) *Norm { return &Norm{slices.Repeat([]float32{1}, n), eps} }
