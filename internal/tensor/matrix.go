package tensor

import "fmt"

// A Matrix is a weight as kernels want it: Rows output rows of Cols input
// columns, row-major, in its storage type. Data usually points into a mapped
// file and must not be written.
type Matrix struct {
	Name       string // its file and its name there, for error messages
	DType      DType
	Rows, Cols int
	Data       []byte  // Rows × DType.RowBytes(Cols)
	Scales     *Scales // nil unless the checkpoint keeps block scales beside the weight
}

// Scales multiply a Matrix block by block: fp8 weights have one scale per
// 128×128 block, packed fp4 weights one per 32 columns of each row.
type Scales struct {
	Name                 string // as in the checkpoint
	DType                DType  // F32, BF16 or F8E8M0
	BlockRows, BlockCols int    // values that share one scale
	Data                 []byte // [ceil(Rows/BlockRows), ceil(Cols/BlockCols)]
}

// NewMatrix checks that data has the size that the shape asks for.
func NewMatrix(name string, d DType, rows, cols int, data []byte) (*Matrix, error) {
	if rows <= 0 || cols <= 0 || cols%d.BlockLen() != 0 {
		return nil, fmt.Errorf("%s: shape [%d, %d]: expected positive sizes, columns a multiple of %d for %v", name, rows, cols, d.BlockLen(), d)
	}
	if want := rows * d.RowBytes(cols); len(data) != want {
		return nil, fmt.Errorf("%s: %d bytes for %v [%d, %d], expected %d", name, len(data), d, rows, cols, want)
	}
	return &Matrix{Name: name, DType: d, Rows: rows, Cols: cols, Data: data}, nil
}

// Row decodes row r into dst, which has Cols values.
func (m *Matrix) Row(dst []float32, r int) {
	n := m.DType.RowBytes(m.Cols)
	Decode(m.DType, dst[:m.Cols], m.Data[r*n:(r+1)*n])
	if m.Scales != nil {
		m.Scales.apply(dst[:m.Cols], r)
	}
}

// At returns the scale of row r and column c, of cols columns.
func (s *Scales) At(r, c, cols int) float32 {
	perRow := (cols + s.BlockCols - 1) / s.BlockCols
	size := s.DType.BlockBytes()
	at := (r/s.BlockRows*perRow + c/s.BlockCols) * size
	var scale [1]float32
	Decode(s.DType, scale[:], s.Data[at:at+size])
	return scale[0]
}

// apply multiplies row r, decoded in dst, by its scales.
func (s *Scales) apply(dst []float32, r int) {
	perRow := (len(dst) + s.BlockCols - 1) / s.BlockCols
	for b := range perRow {
		scale := s.At(r, b*s.BlockCols, len(dst))
		block := dst[b*s.BlockCols : min((b+1)*s.BlockCols, len(dst))]
		for i := range block {
			block[i] *= scale
		}
	}
}
