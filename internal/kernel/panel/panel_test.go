package panel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
)

// randomMatrix fills a matrix of any storage type with random bits.
func randomMatrix(t testing.TB, d tensor.DType, rows, cols int, r *rand.Rand) *tensor.Matrix {
	t.Helper()
	data := make([]byte, rows*d.RowBytes(cols))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	m, err := tensor.NewMatrix("w", d, rows, cols, data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var packed = []struct {
	dtype tensor.DType
	kind  ID
}{
	{tensor.Q8_0, Q8},
	{tensor.Q4_0, Q4},
	{tensor.Q4_1, Q4M},
	{tensor.Q5_0, Q5},
	{tensor.Q5_1, Q5M},
	{tensor.Q2_K, Q2K},
	{tensor.Q3_K, Q3K},
	{tensor.Q4_K, Q4K},
	{tensor.Q5_K, Q5K},
	{tensor.Q6_K, Q6K},
	{tensor.IQ4_NL, IQ4NL},
	{tensor.IQ4_XS, IQ4XS},
	{tensor.MXFP4, MX4},
	{tensor.F8E4M3, F8},
	{tensor.F16, F16},
	{tensor.BF16, BF16},
	{tensor.F32, F32},
	{tensor.F8E5M2, F32},
	{tensor.I8, F32},
}

// What a panel holds is what the file's decoder gives, whatever the bits.
func TestPanelsKeepDecodedValues(t *testing.T) {
	for _, tc := range packed {
		t.Run(tc.dtype.String(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(tc.dtype)))
			for _, shape := range [][2]int{{32, 256}, {1, 512}, {45, 768}, {64, 256}} {
				m := randomMatrix(t, tc.dtype, shape[0], shape[1], r)
				checkPanels(t, m, tc.kind, []Segment{{0, 256}, {256, m.Cols}})
			}
		})
	}
}

func TestPanelsWithScalesBeside(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	for _, tc := range []struct {
		dtype, scales tensor.DType
		block         [2]int
		kind          ID
	}{
		{tensor.F8E4M3, tensor.F32, [2]int{128, 128}, F8},
		{tensor.F8E4M3, tensor.F8E8M0, [2]int{128, 128}, F8},
		{tensor.F8E4M3, tensor.BF16, [2]int{48, 96}, F8},
		{tensor.F8E4M3, tensor.BF16, [2]int{48, 80}, F32},
		{tensor.F4E2M1, tensor.F8E8M0, [2]int{1, 32}, MX4},
		{tensor.F4E2M1, tensor.F32, [2]int{1, 32}, F32},
	} {
		m := randomMatrix(t, tc.dtype, 150, 320, r)
		s := &tensor.Scales{DType: tc.scales, BlockRows: tc.block[0], BlockCols: tc.block[1]}
		n := (m.Rows + s.BlockRows - 1) / s.BlockRows * ((m.Cols + s.BlockCols - 1) / s.BlockCols)
		s.Data = make([]byte, n*tc.scales.BlockBytes())
		for i := range s.Data {
			s.Data[i] = byte(r.Uint32())
		}
		m.Scales = s
		checkPanels(t, m, tc.kind, []Segment{{0, m.Cols}})
	}
}

// Segments of float kinds end anywhere; what fills their last block is zero.
func TestRaggedSegments(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	for _, d := range []tensor.DType{tensor.F32, tensor.F16, tensor.BF16, tensor.F8E4M3} {
		m := randomMatrix(t, d, 33, 117, r)
		checkPanels(t, m, Of(m).ID, []Segment{{0, 5}, {5, 5}, {5, 50}, {50, 117}})
	}
}

func checkPanels(t *testing.T, m *tensor.Matrix, kind ID, segments []Segment) {
	t.Helper()
	k := Of(m)
	if k.ID != kind {
		t.Fatalf("%v is stored as %s, expected %s", m.DType, k.Name, Kinds[kind].Name)
	}
	blocks := 0
	for _, s := range segments {
		blocks += s.Blocks()
	}
	want := make([]float32, m.Cols)
	for p := range (m.Rows + Rows - 1) / Rows {
		data := make([]byte, k.Bytes(blocks))
		k.Pack(data, m, p, segments)
		got := make([]float32, blocks*Block*Rows)
		k.Unpack(got, data, blocks)
		for r := range Rows {
			if p*Rows+r < m.Rows {
				m.Row(want, p*Rows+r)
			} else {
				clear(want)
			}
			if err := compare(got, want, r, segments); err != nil {
				t.Fatalf("%v [%d, %d] row %d: %v", m.DType, m.Rows, m.Cols, p*Rows+r, err)
			}
		}
	}
}

func compare(got, want []float32, r int, segments []Segment) error {
	block := 0
	for _, s := range segments {
		for i := range s.Blocks() * Block {
			g := got[(block*Block+i)*Rows+r]
			if s.From+i >= s.To {
				if g != 0 {
					return fmt.Errorf("column %d of segment %v: %v, expected zero", i, s, g)
				}
				continue
			}
			w := want[s.From+i]
			if g != w && !(math.IsNaN(float64(g)) && math.IsNaN(float64(w))) {
				return fmt.Errorf("column %d: %v, the decoder gives %v", s.From+i, g, w)
			}
		}
		block += s.Blocks()
	}
	return nil
}

func BenchmarkPack(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, tc := range packed[:17] {
		m := randomMatrix(b, tc.dtype, 32, 1024, r)
		k := Of(m)
		segments := []Segment{{0, m.Cols}}
		dst := make([]byte, k.Bytes(m.Cols/Block))
		b.Run(tc.dtype.String(), func(b *testing.B) {
			b.SetBytes(int64(len(m.Data)))
			for b.Loop() {
				k.Pack(dst, m, 0, segments)
			}
		})
	}
}
