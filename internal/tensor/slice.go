package tensor

import "fmt"

// Sliceable returns m, or m decoded to F32 if its block scales do not begin where
// rows do that are multiples of each of units: Slice takes those of the result.
func (m *Matrix) Sliceable(units ...int) *Matrix {
	for _, unit := range units {
		if m.Scales != nil && unit%m.Scales.BlockRows != 0 {
			return m.Floats()
		}
	}
	return m
}

// Slice returns rows [from, to) of m, which it shares memory with. Block scales
// must begin at from.
func (m *Matrix) Slice(from, to int) (*Matrix, error) {
	n := m.DType.RowBytes(m.Cols)
	s := *m
	s.Rows, s.Data = to-from, m.Data[from*n:to*n]
	if m.Scales == nil {
		return &s, nil
	}
	scales := *m.Scales
	if from%scales.BlockRows != 0 {
		return nil, fmt.Errorf("%s: rows %d to %d, expected to begin at a multiple of %d: that many rows share a scale", m.Name, from, to, scales.BlockRows)
	}
	perRow := (m.Cols + scales.BlockCols - 1) / scales.BlockCols * scales.DType.BlockBytes()
	scales.Data = scales.Data[from/scales.BlockRows*perRow : (to+scales.BlockRows-1)/scales.BlockRows*perRow]
	s.Scales = &scales
	return &s, nil
}
