package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

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

func TestMatMulAgainstFloat64(t *testing.T) {
	pool := NewPool(3)
	defer pool.Close()
	rapid.Check(t, func(rt *rapid.T) {
		d := rapid.SampledFrom([]tensor.DType{tensor.F32, tensor.BF16, tensor.F16, tensor.Q8_0, tensor.Q4_0}).Draw(rt, "dtype")
		out, rows := rapid.IntRange(1, 70).Draw(rt, "out"), rapid.IntRange(1, 5).Draw(rt, "rows")
		in := rapid.IntRange(1, 9).Draw(rt, "blocks") * d.BlockLen()
		if d.BlockLen() == 1 {
			in = rapid.IntRange(1, 200).Draw(rt, "in")
		}
		m := matrix(t, d, out, in, random(1, out*in))
		x, bias := random(2, rows*in), random(3, out)
		for _, w := range []*Weight{NewWeight(m), NewSplitWeight(m, 1)} {
			y := make([]float32, rows*out)
			pool.MatMul(y, x, rows, w, bias)
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
					if got := float64(y[r*out+o]); !(math.Abs(got-want) <= 4e-6*size) {
						rt.Fatalf("%v [%d, %d], row %d, output %d: %v, want %v", d, out, in, r, o, got, want)
					}
				}
			}
		}
	})
}

// The same row has the same bits alone and inside any batch.
func TestMatMulRowsAreIndependent(t *testing.T) {
	const out, in = 37, 150
	m := matrix(t, tensor.F32, out, in, random(1, out*in))
	for _, w := range []*Weight{NewWeight(m), NewSplitWeight(m, 6)} {
		one := NewPool(1)
		x := random(2, 7*in)
		want := make([]float32, 7*out)
		for r := range 7 {
			one.MatMul(want[r*out:], x[r*in:(r+1)*in], 1, w, nil)
		}
		for _, workers := range []int{1, 2, 5} {
			pool := NewPool(workers)
			for rows := 1; rows <= 7; rows++ {
				got := make([]float32, rows*out)
				pool.MatMul(got, x, rows, w, nil)
				for i := range got {
					if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
						t.Fatalf("%d workers, %d rows: value %d is %v, alone %v", workers, rows, i, got[i], want[i])
					}
				}
			}
			pool.Close()
		}
	}
}

// A product that is split among ranks is the balanced tree of its segments:
// ranks that own half of them each sum to the same bits.
func TestSplitWeightIsATreeOfSegments(t *testing.T) {
	pool := NewPool(1)
	for _, tc := range []struct{ in, unit int }{{64, 1}, {576, 64}, {80, 16}, {8, 8}, {24, 8}, {56, 8}} {
		const out = 5
		values, x := random(1, out*tc.in), random(2, tc.in)
		whole := NewSplitWeight(matrix(t, tensor.F32, out, tc.in, values), tc.unit)
		got := make([]float32, out)
		pool.MatMul(got, x, 1, whole, nil)

		segment := func(s int) ([]float32, bool) {
			g := whole.segments[s]
			if g.from == g.to {
				return nil, false
			}
			part := make([]float32, 0, out*(g.to-g.from))
			for o := range out {
				part = append(part, values[o*tc.in+g.from:o*tc.in+g.to]...)
			}
			y := make([]float32, out)
			pool.MatMul(y, x[g.from:g.to], 1, NewWeight(matrix(t, tensor.F32, out, g.to-g.from, part)), nil)
			return y, true
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
				Add(a, b)
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
}

// A weight's NaN or infinity spoils the outputs it belongs to and no other.
func TestMatMulKeepsSpecialValuesToTheirRow(t *testing.T) {
	const out, in = 9, 40
	values := random(1, out*in)
	values[3*in+5] = float32(math.NaN())
	values[7*in] = float32(math.Inf(1))
	pool := NewPool(2)
	defer pool.Close()
	y := make([]float32, 2*out)
	pool.MatMul(y, random(2, 2*in), 2, NewWeight(matrix(t, tensor.F32, out, in, values)), nil)
	for i, v := range y {
		finite := !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0)
		if spoilt := i%out == 3 || i%out == 7; finite == spoilt {
			t.Errorf("output %d of row %d is %v", i%out, i/out, v)
		}
	}
}

func BenchmarkMatMul(b *testing.B) {
	const out, in = 1536, 576
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.Q8_0, tensor.Q4_0} {
		for _, rows := range []int{1, 4, 64} {
			b.Run(fmt.Sprintf("%v/rows=%d", d, rows), func(b *testing.B) {
				pool := NewPool(1)
				w := NewWeight(matrix(b, d, out, in, random(1, out*in)))
				x, y := random(2, rows*in), make([]float32, rows*out)
				b.ResetTimer()
				for range b.N {
					pool.MatMul(y, x, rows, w, nil)
				}
				b.ReportMetric(float64(b.N*rows*out*in)/b.Elapsed().Seconds()/1e9, "GMAC/s")
			})
		}
	}
}
