package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/kernel/panel"
	"github.com/foretoken/foretoken/internal/tensor"
	"pgregory.net/rapid"
)

// A row's streams, all of one length, as the kernels take them.
type streams struct {
	x, y, w, post, comb []float32
	check               func() error
}

func newStreams(r *rand.Rand, n int, wild bool) *streams {
	var s streams
	var checks []func() error
	for _, v := range []struct {
		to *[]float32
		n  int
	}{{&s.x, Streams * n}, {&s.y, n}, {&s.w, Streams}, {&s.post, Streams}, {&s.comb, Streams * Streams}} {
		x, check := guarded[float32](v.n, 7)
		*v.to = fill(r, x, false)
		checks = append(checks, check)
	}
	inf := float32(math.Inf(1))
	wilds := []float32{0, 1e-40, -1e-45, 1e-20, 1e20, -1e30, inf, -inf, float32(math.NaN())} // no sum of finite ones overflows
	for _, v := range [][]float32{s.x, s.y} {
		for i := range v {
			if wild && r.IntN(4) == 0 {
				v[i] = wilds[r.IntN(len(wilds))]
			}
		}
	}
	s.check = func() error {
		for _, check := range checks {
			if err := check(); err != nil {
				return err
			}
		}
		return nil
	}
	return &s
}

// sums returns Σ w[j]·x[j] and Σ |w[j]·x[j]| of value i, in float64.
func (s *streams) sums(w []float32, i int) (sum, size float64) {
	n := len(s.y)
	for j, w := range w {
		v := float64(w) * float64(s.x[j*n+i])
		sum += v
		size += math.Abs(v)
	}
	return sum, size
}

// near64 compares a float32 sum with one of float64 whose terms' magnitudes
// have the given sum.
func near64(got float32, want, size float64) bool {
	g := float64(got)
	return g == want || g != g && want != want || math.Abs(g-want) <= 4e-7*size+1e-37
}

func TestStreamKernels(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			r := drawRand(t)
			n := rapid.IntRange(0, 150).Draw(t, "n")
			s := newStreams(r, n, rapid.Bool().Draw(t, "wild"))
			y, check := guarded[float32](n, 7)
			active.rows.sumStreams(y, s.x, s.w)
			for i := range y {
				if want, size := s.sums(s.w, i); !near64(y[i], want, size) {
					t.Fatalf("sum %d of %d is %v, want %v", i, n, y[i], want)
				}
			}
			given := streams{x: slices.Clone(s.x), y: slices.Clone(s.y)}
			active.rows.mixStreams(s.x, s.y, s.post, s.comb)
			for k := range Streams {
				column := make([]float32, Streams)
				for j := range column {
					column[j] = s.comb[Streams*j+k]
				}
				for i := range n {
					want, size := given.sums(column, i)
					ofY := float64(s.post[k]) * float64(given.y[i])
					if got := s.x[k*n+i]; !near64(got, want+ofY, size+math.Abs(ofY)) {
						t.Fatalf("stream %d, value %d of %d is %v, want %v", k, i, n, got, want+ofY)
					}
				}
			}
			for _, err := range []error{within(0, s.y, given.y), check(), s.check()} {
				if err != nil {
					t.Fatal(err)
				}
			}
		})
	})
}

func TestSquares(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			x := fill(drawRand(t), make([]float32, rapid.IntRange(0, 150).Draw(t, "n")), rapid.Bool().Draw(t, "wild"))
			got, want := active.rows.squares(x), squaresGeneric(x)
			if got != want && !(got != got && want != want) {
				t.Fatalf("Σx² of %d values is %v, want %v", len(x), got, want)
			}
		})
	})
}

// normProduct packs fn and multiplies.
func (s *subject) normProduct(fn *Weight, x []float32, eps float32) []float32 {
	y := make([]float32, len(x)/fn.Cols*fn.Rows)
	s.Pool.NormProduct(y, x, fn, eps)
	return y
}

func TestNormProductAgainstFloat64(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		s := newSubject(t, 3, true)
		rapid.Check(t, func(t *rapid.T) {
			r := drawRand(t)
			out, rows := rapid.IntRange(1, panel.Rows).Draw(t, "out"), rapid.IntRange(0, 2*normProductRows+3).Draw(t, "rows")
			in := panel.Block * rapid.IntRange(1, 20).Draw(t, "blocks") // fewer than segments, too
			scale := rapid.SampledFrom([]float32{1, 1e3, 1e-3, 1e25}).Draw(t, "scale")
			values := fill(r, make([]float32, out*in), false)
			fn := s.pack(matrix(s.t, tensor.F32, out, in, values), NormProductUnit)
			x := fill(r, make([]float32, rows*in), false)
			for i := range x {
				x[i] *= scale
			}
			const eps = 1e-6
			y := s.normProduct(fn, x, eps)
			for row := range rows {
				x := x[row*in:][:in]
				var squares float64
				for _, v := range x {
					squares += float64(v) * float64(v)
				}
				inv := 1 / math.Sqrt(squares/float64(in)+eps)
				for o := range out {
					var want, size float64
					for i, v := range values[o*in:][:in] {
						want += float64(v) * float64(x[i])
						size += math.Abs(float64(v) * float64(x[i]))
					}
					if got := float64(y[row*out+o]); !(math.Abs(got-want*inv) <= 2e-6*size*inv) {
						t.Fatalf("row %d of %d, output %d of %d, %d columns: %v, want %v", row, rows, o, out, in, got, want*inv)
					}
				}
			}
		})
	})
}

// The same row alone and at any place of a batch, with any number of workers.
func TestHyperRowsDoNotDependOnTheirNeighbours(t *testing.T) {
	one, many := newSubject(t, 1, true), newSubject(t, 3, true)
	eachTier(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			r := drawRand(t)
			n := 8 * rapid.IntRange(1, 12).Draw(t, "n")
			rows := rapid.SampledFrom([]int{1, 2, 7, normProductRows + 1, 3 * normProductRows, 3*rowGrain/(Streams*n) + 1}).Draw(t, "rows")
			w := matrix(one.t, tensor.F32, 24, Streams*n, fill(r, make([]float32, 24*Streams*n), false))
			x, y := fill(r, make([]float32, rows*Streams*n), false), fill(r, make([]float32, rows*n), false)
			m := fill(r, make([]float32, rows*Streams*Streams), false)
			post := fill(r, make([]float32, rows*Streams), false)
			row := rapid.IntRange(0, rows-1).Draw(t, "row")

			run := func(s *subject, from, to int) (results [][]float32) {
				rows := to - from
				x, y := slices.Clone(x[from*Streams*n:to*Streams*n]), y[from*n:to*n]
				m, post := slices.Clone(m[from*Streams*Streams:to*Streams*Streams]), post[from*Streams:to*Streams]
				product := s.normProduct(s.pack(w, NormProductUnit), x, 1e-6)
				s.Pool.Sinkhorn(m, 20, 1e-6)
				sum := make([]float32, rows*n)
				s.Pool.SumStreams(sum, x, post)
				s.Pool.MixStreams(x, y, post, m)
				return [][]float32{product, m, sum, x}
			}
			alone := run(one, row, row+1)
			for i, all := range run(rapid.SampledFrom([]*subject{one, many}).Draw(t, "pool"), 0, rows) {
				width := len(all) / rows
				if err := within(0, all[row*width:][:width], alone[i]); err != nil {
					t.Fatalf("%s of row %d among %d: %v", [...]string{"product", "matrix", "sum", "mix"}[i], row, rows, err)
				}
			}
		})
	})
}

// A NaN in a row makes that row's results NaN and no other's.
func TestHyperKeepsNaNInItsRow(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		const n, rows, bad = 16, 5, 2
		s := newSubject(t, 2, true)
		fn := s.pack(matrix(t, tensor.F32, 24, Streams*n, random(1, 24*Streams*n)), NormProductUnit)
		x := random(2, rows*Streams*n)
		x[bad*Streams*n+3] = float32(math.NaN())
		for i, v := range s.normProduct(fn, x, 1e-6) {
			if isNaN := v != v; isNaN != (i/24 == bad) {
				t.Fatalf("output %d of row %d is %v", i%24, i/24, v)
			}
		}
		m := random(3, rows*16)
		m[bad*16] = float32(math.NaN())
		s.Pool.Sinkhorn(m, 20, 1e-6)
		for i, v := range m {
			if isNaN := v != v; isNaN != (i/16 == bad) {
				t.Fatalf("entry %d of matrix %d is %v", i%16, i/16, v)
			}
		}
	})
}

// With enough iterations rows and columns sum to 1, and the columns, which
// come last, do after any number.
func TestSinkhornIsNearlyDoublyStochastic(t *testing.T) {
	p := NewPool(1)
	for _, iterations := range []int{1, 2, 20} {
		m := random(1, 100*16)
		p.Sinkhorn(m, iterations, 1e-6)
		for at := 0; at < len(m); at += 16 {
			for i := range Streams {
				var row, column float64
				for j := range Streams {
					row += float64(m[at+Streams*i+j])
					column += float64(m[at+Streams*j+i])
				}
				if !(math.Abs(column-1) <= 1e-5) || iterations == 20 && !(math.Abs(row-1) <= 1e-4) {
					t.Fatalf("%d iterations, matrix %d: row %d sums to %v, column to %v", iterations, at/16, i, row, column)
				}
			}
		}
	}
}

// One iteration and the second by hand, on logits far apart: what is 0 in
// float32 has eps for its weight.
func TestSinkhornByHand(t *testing.T) {
	const eps = 0.25
	m := []float32{
		200, 0, 0, 0,
		200, 0, 0, 0,
		0, 0, 200, 0,
		0, 0, 0, 200,
	}
	p := NewPool(1)
	first := slices.Clone(m)
	p.Sinkhorn(first, 1, eps)
	// softmax + ¼: ones become 5/4, zeros 1/4. Column sums + ¼: 13/4, 5/4, 9/4, 9/4.
	want := []float32{
		5. / 13, 1. / 5, 1. / 9, 1. / 9,
		5. / 13, 1. / 5, 1. / 9, 1. / 9,
		1. / 13, 1. / 5, 5. / 9, 1. / 9,
		1. / 13, 1. / 5, 1. / 9, 5. / 9,
	}
	near(t, "softmax, columns", first, want, 1e-7)

	p.Sinkhorn(m, 2, eps)
	for range 2 { // rows, then columns: transposed, the same
		for at := 0; at < 16; at += 4 {
			sum := want[at] + want[at+1] + want[at+2] + want[at+3] + eps
			for k := range Streams {
				want[at+k] /= sum
			}
		}
		for i := range 16 {
			if j, k := i/4, i%4; j < k {
				want[i], want[4*k+j] = want[4*k+j], want[i]
			}
		}
	}
	near(t, "rows, columns", m, want, 1e-7)
}

func TestHyperAllocatesNothing(t *testing.T) {
	s := newSubject(t, 2, true)
	const n, rows = 256, 3 * normProductRows
	fn := s.pack(matrix(t, tensor.F32, 24, Streams*n, random(1, 24*Streams*n)), NormProductUnit)
	x, y, m := random(2, rows*Streams*n), make([]float32, rows*n), make([]float32, rows*24)
	if n := testing.AllocsPerRun(10, func() {
		s.Pool.NormProduct(m, x, fn, 1e-6)
		s.Pool.Sinkhorn(m[:rows*16], 20, 1e-6)
		s.Pool.SumStreams(y, x, m[:rows*Streams])
		s.Pool.MixStreams(x, y, m[:rows*Streams], m[:rows*16])
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestNormProductRefusesOtherWeights(t *testing.T) {
	exact, auto := newSubject(t, 1, true), newSubject(t, 1, false)
	for name, w := range map[string]*Weight{
		"two panels":     exact.pack(matrix(t, tensor.F32, 33, 64, random(1, 33*64)), NormProductUnit),
		"one segment":    exact.pack(matrix(t, tensor.F32, 24, 64, random(1, 24*64)), 0),
		"parts of block": exact.pack(matrix(t, tensor.F32, 24, 65, random(1, 24*65)), NormProductUnit),
		"eight bits":     auto.pack(matrix(t, tensor.Q8_0, 24, 64, random(1, 24*64)), NormProductUnit),
	} {
		if w.input == inInt8 || name != "eight bits" { // plain Go has floats alone
			if !panics(func() { exact.normProduct(w, make([]float32, w.Cols), 1e-6) }) {
				t.Errorf("%s: no panic", name)
			}
		}
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

// Nanoseconds for a stream of 4096, and for a matrix, on each tier.
func BenchmarkStreams(b *testing.B) {
	const n = 4096
	s := newStreams(rand.New(rand.NewPCG(1, 2)), n, false)
	p := NewPool(1)
	for _, c := range tiers() {
		k := rowsFor(c)
		b.Run(fmt.Sprintf("sum/%v", c), func(b *testing.B) {
			for b.Loop() {
				k.sumStreams(s.y, s.x, s.w)
			}
		})
		b.Run(fmt.Sprintf("mix/%v", c), func(b *testing.B) {
			clear(s.comb)
			for b.Loop() {
				k.mixStreams(s.x, s.y, s.post, s.comb)
			}
		})
		b.Run(fmt.Sprintf("squares/%v", c), func(b *testing.B) {
			for b.Loop() {
				k.squares(s.y)
			}
		})
	}
	b.Run("sinkhorn", func(b *testing.B) {
		m := make([]float32, 16)
		for b.Loop() {
			copy(m, s.comb)
			p.Sinkhorn(m, 20, 1e-6)
		}
	})
}
