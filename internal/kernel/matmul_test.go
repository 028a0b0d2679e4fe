package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/kernel/panel"
	"github.com/foretoken/foretoken/internal/tensor"
	"pgregory.net/rapid"
)

// random returns n values of a fixed stream.
func random(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func matrix(t testing.TB, d tensor.DType, rows, cols int, values []float32) *tensor.Matrix {
	t.Helper()
	data := make([]byte, rows*d.RowBytes(cols))
	if err := tensor.Encode(d, data, values); err != nil {
		t.Fatal(err)
	}
	m, err := tensor.NewMatrix("w", d, rows, cols, data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// subject packs weights for tests.
type subject struct {
	*Packer
	t testing.TB
}

func newSubject(t testing.TB, workers int, exact bool) *subject {
	pool, arena := NewPool(workers), new(Arena)
	t.Cleanup(func() {
		pool.Close()
		arena.Free()
	})
	return &subject{&Packer{Pool: pool, Arena: arena, Exact: exact}, t}
}

func (s *subject) pack(m *tensor.Matrix, unit int) *Weight {
	s.t.Helper()
	w, err := s.Pack(m, unit)
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

func (s *subject) matmul(x []float32, rows int, w *Weight, bias []float32) []float32 {
	y := make([]float32, rows*w.Rows)
	s.Pool.MatMul(x, rows, Product{Y: y, W: w, Bias: bias})
	return y
}

// With float32 activations a product is what float64 says, to the rounding of
// sums; with eight bits, to that of the activations.
func TestMatMulAgainstFloat64(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		exact, auto := newSubject(t, 3, true), newSubject(t, 3, false)
		rapid.Check(t, func(rt *rapid.T) {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
			d := rapid.SampledFrom(storage[:]).Draw(rt, "dtype")
			out, rows := rapid.IntRange(1, 70).Draw(rt, "out"), rapid.IntRange(1, 12).Draw(rt, "rows")
			in := rapid.IntRange(1, 9).Draw(rt, "blocks") * d.BlockLen()
			if d.BlockLen() == 1 {
				in = rapid.IntRange(1, 200).Draw(rt, "in")
			}
			m := weights(d, out, in, r)
			x, bias := random(2, rows*in), random(3, out)
			for _, unit := range []int{0, 1} {
				we, wa := exact.pack(m, unit), auto.pack(m, unit)
				ye, ya := exact.matmul(x, rows, we, bias), auto.matmul(x, rows, wa, bias)
				row := make([]float32, in)
				for o := range out {
					m.Row(row, o)
					for r := range rows {
						want, size := float64(bias[o]), math.Abs(float64(bias[o]))
						for i, v := range row {
							p := float64(v) * float64(x[r*in+i])
							want += p
							size += math.Abs(p)
						}
						if got := float64(ye[r*out+o]); !(math.Abs(got-want) <= 4e-6*size) {
							rt.Fatalf("%v [%d, %d], row %d, output %d: %v, want %v", d, out, in, r, o, got, want)
						}
						// A rounded activation is off by at most 1/254 of its block's
						// greatest, some multiple of the typical one.
						if got := float64(ya[r*out+o]); !(math.Abs(got-want) <= 0.04*size+1e-6) {
							rt.Fatalf("%v [%d, %d], rounded activations, row %d, output %d: %v, want %v", d, out, in, r, o, got, want)
						}
					}
				}
			}
		})
	})
}

// The same row has the same bits alone and inside any batch, on any number of
// workers, beside any other product.
func TestMatMulRowsAreIndependent(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for _, exact := range []bool{true, false} {
			one := newSubject(t, 1, exact)
			for _, d := range storage {
				const out, in, rows = 77, 512, 19
				m := weights(d, out, in, rand.New(rand.NewPCG(1, 2)))
				x := random(2, rows*in)
				for _, unit := range []int{0, 64} {
					w := one.pack(m, unit)
					want := make([]float32, 0, rows*out)
					for r := range rows {
						want = append(want, one.matmul(x[r*in:(r+1)*in], 1, w, nil)...)
					}
					for _, workers := range []int{1, 3} {
						many := newSubject(t, workers, exact)
						other := many.pack(weights(tensor.F32, 40, in, rand.New(rand.NewPCG(1, 2))), 0)
						for n := 1; n <= rows; n += 3 {
							y, z := make([]float32, n*out), make([]float32, n*40)
							many.Pool.MatMul(x[:n*in], n, Product{Y: z, W: other}, Product{Y: y, W: w})
							for i := range y {
								if math.Float32bits(y[i]) != math.Float32bits(want[i]) {
									t.Fatalf("%v, %d workers, %d rows: value %d is %v, alone %v", d, workers, n, i, y[i], want[i])
								}
							}
						}
					}
				}
			}
		}
	})
}

// A long prompt passes a task's panels in blocks of rows: those on both sides of
// every cut have the bits that they have alone.
func TestMatMulOfManyRowsAndPanels(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for _, exact := range []bool{true, false} {
			for _, d := range []tensor.DType{tensor.F32, tensor.Q8_0} {
				const out, in, rows = 40*panel.Rows + 5, 1024, 200
				s := newSubject(t, 2, exact)
				m := weights(d, out, in, rand.New(rand.NewPCG(1, 2)))
				w := s.pack(m, 0)
				x, bias := random(2, rows*in), random(3, out)
				y := s.matmul(x, rows, w, bias)
				row := make([]float32, in)
				for o := range out { // every panel is somebody's task
					m.Row(row, o)
					want, size := float64(bias[o]), math.Abs(float64(bias[o]))
					for i, v := range row {
						want += float64(v) * float64(x[i])
						size += math.Abs(float64(v) * float64(x[i]))
					}
					if got := float64(y[o]); !(math.Abs(got-want) <= 0.04*size) {
						t.Fatalf("%v, output %d: %v, want %v", d, o, got, want)
					}
				}
				if block := cachedRows / (4 * in); block >= rows || w.panels() < 2*tasksPerWorker*2 {
					t.Fatalf("blocks of %d rows, %d panels: nothing is cut", block, w.panels())
				}
				for row := 0; row < rows; row += 19 {
					want := s.matmul(x[row*in:(row+1)*in], 1, w, bias)
					for i, v := range want {
						if got := y[row*out+i]; math.Float32bits(got) != math.Float32bits(v) {
							t.Fatalf("%v, row %d, output %d: %v, alone %v", d, row, i, got, v)
						}
					}
				}
			}
		}
	})
}

// Segments end where scales do: a block of a panel has one.
func TestSplitWeightWithScalesBeside(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, tc := range []struct {
			dtype, scales tensor.DType
			cols          int // of a scale
		}{{tensor.F8E4M3, tensor.F32, 64}, {tensor.F4E2M1, tensor.F8E8M0, 64}} {
			const out, in = 40, 608
			m := weights(tc.dtype, out, in, r)
			n := out * ((in + tc.cols - 1) / tc.cols)
			m.Scales = &tensor.Scales{DType: tc.scales, BlockRows: 1, BlockCols: tc.cols, Data: make([]byte, n*tc.scales.BlockBytes())}
			for i := range n {
				if tc.scales == tensor.F32 {
					binary.LittleEndian.PutUint32(m.Scales.Data[4*i:], math.Float32bits(r.Float32()))
				} else {
					m.Scales.Data[i] = 120 + byte(r.IntN(8))
				}
			}
			x, row := random(2, in), make([]float32, in)
			s := newSubject(t, 1, true)
			y := s.matmul(x, 1, s.pack(m, 8), nil)
			for o, got := range y {
				m.Row(row, o)
				var want, size float64
				for i, v := range row {
					want += float64(v) * float64(x[i])
					size += math.Abs(float64(v) * float64(x[i]))
				}
				if !(math.Abs(float64(got)-want) <= 4e-6*size) {
					t.Fatalf("%v, output %d: %v, want %v", tc.dtype, o, got, want)
				}
			}
		}
	})
}

// A product that is split among ranks is the balanced tree of its segments:
// ranks that own half of them each sum to the same bits.
func TestSplitWeightIsATreeOfSegments(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		s := newSubject(t, 1, true)
		for _, tc := range []struct{ in, unit int }{{64, 1}, {576, 64}, {80, 16}, {8, 8}, {24, 8}, {56, 8}} {
			const out = 5
			values, x := random(1, out*tc.in), random(2, tc.in)
			whole := s.pack(matrix(t, tensor.F32, out, tc.in, values), tc.unit)
			got := s.matmul(x, 1, whole, nil)

			segment := func(i int) ([]float32, bool) {
				g := whole.segments[i]
				if g.From == g.To {
					return nil, false
				}
				part := make([]float32, 0, out*(g.To-g.From))
				for o := range out {
					part = append(part, values[o*tc.in+g.From:o*tc.in+g.To]...)
				}
				return s.matmul(x[g.From:g.To], 1, s.pack(matrix(t, tensor.F32, out, g.To-g.From, part), 0), nil), true
			}
			var tree func(from, to int) ([]float32, bool)
			tree = func(from, to int) ([]float32, bool) {
				if to-from == 1 {
					return segment(from)
				}
				a, haveA := tree(from, (from+to)/2)
				b, haveB := tree((from+to)/2, to)
				if !haveA {
					return b, haveB
				}
				if haveB {
					s.Pool.Add(a, b)
				}
				return a, true
			}
			want, _ := tree(0, maxSegments)
			for o := range want {
				if math.Float32bits(got[o]) != math.Float32bits(want[o]) {
					t.Errorf("in %d, unit %d: %v, tree of segments %v", tc.in, tc.unit, got, want)
					break
				}
			}
		}
	})
}

// A weight's NaN or infinity spoils the outputs it belongs to and no other.
func TestMatMulKeepsSpecialValuesToTheirRow(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		const out, in = 9, 40
		values := random(1, out*in)
		values[3*in+5] = float32(math.NaN())
		values[7*in] = float32(math.Inf(1))
		s := newSubject(t, 2, true)
		y := s.matmul(random(2, 2*in), 2, s.pack(matrix(t, tensor.F32, out, in, values), 0), nil)
		for i, v := range y {
			finite := !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0)
			if spoilt := i%out == 3 || i%out == 7; finite == spoilt {
				t.Errorf("output %d of row %d is %v", i%out, i/out, v)
			}
		}
	})
}

// Quantize rounds floats as the encoder does, and refuses what is quantised.
func TestPackQuantizes(t *testing.T) {
	s := newSubject(t, 2, true)
	s.Quantize = tensor.Q8_0
	values, x := random(1, 70*64), random(2, 64)
	plain := newSubject(t, 2, true)
	want := plain.matmul(x, 1, plain.pack(matrix(t, tensor.Q8_0, 70, 64, values), 0), nil)
	got := s.matmul(x, 1, s.pack(matrix(t, tensor.F32, 70, 64, values), 0), nil)
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("output %d: %v, from a file of Q8_0 %v", i, got[i], want[i])
		}
	}
	// Rows that are no whole blocks stay as they are; so does what is of the type.
	for _, m := range []*tensor.Matrix{matrix(t, tensor.F32, 70, 40, random(1, 70*40)), matrix(t, tensor.Q8_0, 70, 64, values)} {
		want, got := plain.matmul(x[:m.Cols], 1, plain.pack(m, 0), nil), s.matmul(x[:m.Cols], 1, s.pack(m, 0), nil)
		if !slices.Equal(got, want) {
			t.Errorf("%v of %d columns is not kept", m.DType, m.Cols)
		}
	}
	values[64] = float32(math.Inf(1))
	if _, err := s.Pack(matrix(t, tensor.F32, 70, 64, values), 0); err == nil {
		t.Error("an infinity was quantised")
	}
	if _, err := s.Pack(matrix(t, tensor.Q4_0, 70, 64, random(1, 70*64)), 0); err == nil {
		t.Error("Q4_0 was quantised again")
	}
}

// What the eight segments of a split product cost: down_proj of Qwen3-0.6B.
func BenchmarkSegments(b *testing.B) {
	const rows, cols = 1024, 3072
	for _, d := range []tensor.DType{tensor.Q8_0, tensor.Q4_0, tensor.Q4_K} {
		m := weights(d, rows, cols, rand.New(rand.NewPCG(1, 1)))
		for _, unit := range []int{0, 1} {
			s := newSubject(b, 1, false)
			// Enough copies that none is in the cache.
			copies := make([]*Weight, 64)
			for i := range copies {
				copies[i] = s.pack(m, unit)
			}
			for _, n := range []int{1, 4, 128} {
				b.Run(fmt.Sprintf("%v/segments=%d/rows=%d", d, len(copies[0].segments), n), func(b *testing.B) {
					x, y := random(2, n*cols), make([]float32, n*rows)
					i := 0
					for b.Loop() {
						s.Pool.MatMul(x, n, Product{Y: y, W: copies[i%len(copies)]})
						i++
					}
				})
			}
		}
	}
}
