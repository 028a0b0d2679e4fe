package tensor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// randomMatrix is a matrix of any bytes but those that mean NaN, with scales in
// blocks of the given size, none if that is 0.
func randomMatrix(d DType, rows, cols, block int) *Matrix {
	random := rand.New(rand.NewPCG(uint64(d), uint64(rows)))
	m := &Matrix{Name: "w", DType: d, Rows: rows, Cols: cols, Data: make([]byte, rows*d.RowBytes(cols))}
	for i := range m.Data {
		m.Data[i] = byte(random.IntN(0x38)) // small in every type, scales of blocks among them
	}
	if block > 0 {
		m.Scales = &Scales{Name: "s", DType: BF16, BlockRows: block, BlockCols: 2 * block}
		for range ceilDiv(rows, block) * ceilDiv(cols, 2*block) {
			m.Scales.Data = append(m.Scales.Data, byte(random.IntN(256)), 0x3f)
		}
	}
	return m
}

func decoded(m *Matrix) []float32 {
	values := make([]float32, m.Rows*m.Cols)
	for r := range m.Rows {
		m.Row(values[r*m.Cols:][:m.Cols], r)
	}
	return values
}

var turned = []struct {
	d                 DType
	rows, cols, block int
	keeps             bool // the storage type
}{
	{F32, 3, 5, 0, true},
	{BF16, 64, 48, 0, true},
	{F16, 1, 7, 0, true},
	{F8E4M3, 9, 13, 0, true},
	{F8E4M3, 9, 13, 4, true},
	{F8E4M3, 16, 32, 4, true},
	{F8E5M2, 10, 4, 3, true},
	{F4E2M1, 6, 8, 0, false},
	{F4E2M1, 6, 8, 2, false},
	{Q8_0, 5, 64, 0, false},
	{Q4_K, 3, 256, 0, false},
}

// The values of a transposed matrix are those of the matrix.
func TestTranspose(t *testing.T) {
	for _, tc := range turned {
		t.Run(fmt.Sprintf("%v [%d, %d] scales %d", tc.d, tc.rows, tc.cols, tc.block), func(t *testing.T) {
			m := randomMatrix(tc.d, tc.rows, tc.cols, tc.block)
			turned := m.Transpose()
			if turned.Rows != m.Cols || turned.Cols != m.Rows || (turned.DType == m.DType) != tc.keeps {
				t.Fatalf("%v [%d, %d] of %v", turned.DType, turned.Rows, turned.Cols, m.DType)
			}
			if tc.block > 0 && tc.keeps && (turned.Scales.BlockRows != 2*tc.block || turned.Scales.BlockCols != tc.block) {
				t.Errorf("blocks of [%d, %d]", turned.Scales.BlockRows, turned.Scales.BlockCols)
			}
			got, want := decoded(turned), decoded(m)
			for r := range m.Rows {
				for c := range m.Cols {
					if math.Float32bits(got[c*m.Rows+r]) != math.Float32bits(want[r*m.Cols+c]) {
						t.Fatalf("[%d, %d] is %v, want %v", c, r, got[c*m.Rows+r], want[r*m.Cols+c])
					}
				}
			}
		})
	}
}
