package tensor

import (
	"encoding/binary"
	"math"
)

// Transpose returns mᵀ, with exactly the same values. Its storage type is m's,
// scales included, where values are stored one by one; blocks of values along a
// row cannot be turned and are decoded to F32.
func (m *Matrix) Transpose() *Matrix {
	if m.DType.BlockLen() > 1 {
		m = m.Floats()
	}
	t := &Matrix{Name: m.Name, DType: m.DType, Rows: m.Cols, Cols: m.Rows}
	t.Data = transpose(m.Data, m.Rows, m.Cols, m.DType.BlockBytes())
	if m.Scales != nil {
		s := *m.Scales
		s.Data = transpose(s.Data, ceilDiv(m.Rows, s.BlockRows), ceilDiv(m.Cols, s.BlockCols), s.DType.BlockBytes())
		s.BlockRows, s.BlockCols = s.BlockCols, s.BlockRows
		t.Scales = &s
	}
	return t
}

// Floats returns m decoded, in F32.
func (m *Matrix) Floats() *Matrix {
	row := make([]float32, m.Cols)
	data := make([]byte, 0, m.Rows*F32.RowBytes(m.Cols))
	for r := range m.Rows {
		m.Row(row, r)
		for _, v := range row {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
	}
	return &Matrix{Name: m.Name, DType: F32, Rows: m.Rows, Cols: m.Cols, Data: data}
}

// transpose turns rows×cols elements of some bytes each.
func transpose(src []byte, rows, cols, size int) []byte {
	dst := make([]byte, len(src))
	for r := range rows {
		for c := range cols {
			copy(dst[(c*rows+r)*size:][:size], src[(r*cols+c)*size:])
		}
	}
	return dst
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
