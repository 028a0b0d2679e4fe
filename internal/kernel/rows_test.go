package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// guarded returns n values between others that check expects unchanged.
func guarded[T comparable](n int, sentinel T) (s []T, check func() error) {
	const margin = 40 // more than a vector and its tail
	all := slices.Repeat([]T{sentinel}, n+2*margin)
	return all[margin : margin+n : margin+n], func() error {
		for i, v := range all {
			if v != sentinel && (i < margin || i >= margin+n) {
				return fmt.Errorf("value %d beside a slice of %d became %v", i-margin, n, v)
			}
		}
		return nil
	}
}

// specials are values on which kernels go wrong.
var specials = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, 88.7, 89, 100, -86.99, -87.5, -104, 127, 1e-38, 1e-40, -1e-45, 1e-20, 1e20, -3e38,
	math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
}

// fill draws values like those of a model; with wild, specials among them and
// any exponent.
func fill(r *rand.Rand, x []float32, wild bool) []float32 {
	for i := range x {
		x[i] = float32(r.NormFloat64())
		if wild && r.IntN(4) == 0 {
			x[i] = specials[r.IntN(len(specials))]
		} else if wild && r.IntN(4) == 0 {
			x[i] = math.Float32frombits(r.Uint32())
		}
	}
	return x
}

func drawRand(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
}

func rapidCheck(f func(t *rapid.T)) func(t *testing.T) {
	return func(t *testing.T) { rapid.Check(t, f) }
}

// within compares results with those wanted: relative error, a little beside
// denormals; 0 wants the same value. All NaNs are equal.
func within(tolerance float64, got, want []float32) error {
	for i := range want {
		g, w := float64(got[i]), float64(want[i])
		switch {
		case g == w, g != g && w != w:
		case tolerance > 0 && math.Abs(g-w) <= tolerance*math.Abs(w)+1e-36:
		default:
			return fmt.Errorf("value %d of %d is %v (%#x), want %v (%#x)", i, len(want),
				got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
		}
	}
	return nil
}

// Every kernel on every tier against its reference: any length, any values,
// and no memory but its own.
func TestRowKernels(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		k, ref := active.rows, genericRows()
		for _, test := range []struct {
			name      string
			tolerance float64 // relative; 0: exact
			run       func(k rowKernels, y, x []float32)
		}{
			{"add", 0, func(k rowKernels, y, x []float32) { k.add(y, x) }},
			{"scale", 0, func(k rowKernels, y, x []float32) { k.scale(y, 1.7) }},
			{"scale by a tiny factor", 0, func(k rowKernels, y, x []float32) { k.scale(y, 1e-39) }},
			{"swiglu", 1e-6, func(k rowKernels, y, x []float32) { k.swiglu(y, x) }},
			// The argument of exp, up to 89, is known to a few rounding errors.
			{"geglu", 3e-5, func(k rowKernels, y, x []float32) { k.geglu(y, x) }},
			{"rmsnorm", 0, func(k rowKernels, y, x []float32) { k.rmsNorm(y, slices.Clone(x), slices.Clone(y), 1e-6) }},
			{"rmsnorm in place", 0, func(k rowKernels, y, x []float32) { k.rmsNorm(y, y, x, 1e-6) }},
		} {
			t.Run(test.name, rapidCheck(func(t *rapid.T) {
				r := drawRand(t)
				n := rapid.IntRange(0, 150).Draw(t, "n")
				wild := rapid.Bool().Draw(t, "wild")
				y, checkY := guarded[float32](n, 7)
				x, checkX := guarded[float32](n, 7)
				fill(r, y, wild)
				fill(r, x, wild)
				want, given := slices.Clone(y), slices.Clone(x)
				test.run(ref, want, slices.Clone(x))
				test.run(k, y, x)
				for _, err := range []error{within(test.tolerance, y, want), within(0, x, given), checkX(), checkY()} {
					if err != nil {
						t.Fatal(err)
					}
				}
			}))
		}
	})
}

func TestRotateKernels(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for _, form := range []struct {
			name     string
			run, ref func(x, cos, sin []float32, heads, width int)
		}{
			{"half-split", active.rows.rotate, rotateGeneric},
			{"interleaved", active.rows.rotatePairs, rotatePairsGeneric},
		} {
			t.Run(form.name, rapidCheck(func(t *rapid.T) {
				r := drawRand(t)
				heads, half := rapid.IntRange(0, 3).Draw(t, "heads"), rapid.IntRange(1, 70).Draw(t, "half")
				width := 2*half + rapid.SampledFrom([]int{0, 0, 1, 20}).Draw(t, "beyond")
				wild := rapid.Bool().Draw(t, "wild")
				x, checkX := guarded[float32](heads*width, 7)
				cos, checkCos := guarded[float32](half, 7)
				sin, checkSin := guarded[float32](half, 7)
				for _, s := range [][]float32{x, cos, sin} {
					fill(r, s, wild)
				}
				want := slices.Clone(x)
				form.ref(want, cos, sin, heads, width)
				form.run(x, cos, sin, heads, width)
				for _, err := range []error{within(0, x, want), checkX(), checkCos(), checkSin()} {
					if err != nil {
						t.Fatal(err)
					}
				}
			}))
		}
	})
}

// The same row alone and at any place of a batch, with any number of workers.
func TestRowsDoNotDependOnTheirNeighbours(t *testing.T) {
	pools := []*Pool{NewPool(1), NewPool(3)}
	for _, p := range pools {
		defer p.Close()
	}
	eachTier(t, func(t *testing.T) {
		const half = 5
		for _, test := range []struct {
			name string
			run  func(p *Pool, y, x []float32, rows, n int)
		}{
			{"add", func(p *Pool, y, x []float32, _, _ int) { p.Add(y, x) }},
			{"scale", func(p *Pool, y, x []float32, _, _ int) { p.Scale(y, 1.7) }},
			{"swiglu", func(p *Pool, y, x []float32, _, _ int) { p.SwiGLU(y, x) }},
			{"geglu", func(p *Pool, y, x []float32, _, _ int) { p.GeGLU(y, x) }},
			{"rmsnorm", func(p *Pool, y, x []float32, _, n int) {
				p.RMSNorm(y, x, fill(rand.New(rand.NewPCG(1, 1)), make([]float32, n), false), 1e-5)
			}},
			{"rotate", func(p *Pool, y, x []float32, rows, n int) {
				p.Rotate(y, 1, n, Rotation{Cos: x[:rows*half], Sin: x[rows*half:], Half: half})
			}},
			{"rotate pairs", func(p *Pool, y, x []float32, rows, n int) {
				p.Rotate(y, 1, n, Rotation{Cos: x[:rows*half], Sin: x[rows*half:], Half: half, Interleaved: true})
			}},
		} {
			t.Run(test.name, rapidCheck(func(t *rapid.T) {
				r := drawRand(t)
				n := rapid.IntRange(2*half, 80).Draw(t, "n")
				// Up to several tasks, at lengths that cut rows apart.
				rows := rapid.SampledFrom([]int{1, 2, 3, 17, 3 * rowGrain / n}).Draw(t, "rows")
				y, x := fill(r, make([]float32, rows*n), false), fill(r, make([]float32, rows*n), false)
				row := rapid.IntRange(0, rows-1).Draw(t, "row")
				alone, beside := slices.Clone(y[row*n:][:n]), slices.Clone(x[row*n:][:n])
				if test.name == "rotate" || test.name == "rotate pairs" {
					beside = append(slices.Clone(x[row*half:][:half]), x[(rows+row)*half:][:half]...)
				}
				test.run(pools[0], alone, beside, 1, n)
				test.run(rapid.SampledFrom(pools).Draw(t, "pool"), y, x, rows, n)
				if err := within(0, y[row*n:][:n], alone); err != nil {
					t.Fatal(err)
				}
			}))
		}
	})
}

func near(t *testing.T, what string, got, want []float32, tolerance float64) {
	t.Helper()
	for i := range want {
		if !(math.Abs(float64(got[i])-float64(want[i])) <= tolerance) {
			t.Errorf("%s: got %v, want %v", what, got, want)
			return
		}
	}
}

func TestRMSNorm(t *testing.T) {
	p := NewPool(1)
	eachTier(t, func(t *testing.T) {
		x := []float32{3, 4, 0, 0, 1, 1, 1, 1}
		y := make([]float32, 8)
		p.RMSNorm(y, x, []float32{1, 2, 1, 1}, 0)
		near(t, "two rows", y, []float32{3 / 2.5, 8 / 2.5, 0, 0, 1, 2, 1, 1}, 1e-6)
		p.RMSNorm(x, x, []float32{1, 2, 1, 1}, 0)
		near(t, "in place", x, y, 0)
		p.RMSNorm(y, x, nil, 0) // a width of nothing
	})
}

func TestActivations(t *testing.T) {
	p := NewPool(1)
	eachTier(t, func(t *testing.T) {
		gate := []float32{0, 1, -1, 20, -100}
		p.SwiGLU(gate, []float32{5, 2, 1, 1, 1})
		near(t, "silu", gate, []float32{0, 2 * 0.7310586, -0.26894143, 20, 0}, 1e-6)
		gate = []float32{0, 1, -1, 20, -100}
		p.GeGLU(gate, []float32{5, 2, 1, 1, 1})
		near(t, "gelu", gate, []float32{0, 2 * 0.841192, -0.158808, 20, 0}, 1e-6)
	})
}

// Activations against float64, where they bend.
func TestActivationsAreExact(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		const n = 1 << 14
		x, one := make([]float32, n), slices.Repeat([]float32{1}, n)
		for i := range x {
			x[i] = float32(i-n/2) * (12.0 / (n / 2))
		}
		silu, gelu := slices.Clone(x), slices.Clone(x)
		active.rows.swiglu(silu, one)
		active.rows.geglu(gelu, one)
		for i, v := range x {
			g := float64(v)
			tolerance := 2e-7 * max(1, math.Abs(g))
			if want := g / (1 + math.Exp(-g)); !(math.Abs(float64(silu[i])-want) <= tolerance) {
				t.Fatalf("silu(%v) is %v, want %v", v, silu[i], want)
			}
			if want := 0.5 * g * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(g+0.044715*g*g*g))); !(math.Abs(float64(gelu[i])-want) <= tolerance) {
				t.Fatalf("gelu(%v) is %v, want %v", v, gelu[i], want)
			}
		}
	})
}

// A quarter turn of each pair, in both layouts; values beyond 2·half stay.
func TestRotate(t *testing.T) {
	p := NewPool(1)
	eachTier(t, func(t *testing.T) {
		x := []float32{1, 2, 3, 4, 9}
		p.Rotate(x, 1, 5, Rotation{Cos: []float32{0, 1}, Sin: []float32{1, 0}, Half: 2})
		near(t, "half-split", x, []float32{-3, 2, 1, 4, 9}, 0)
		x = []float32{1, 2, 3, 4, 9}
		p.Rotate(x, 1, 5, Rotation{Cos: []float32{0, 1}, Sin: []float32{1, 0}, Half: 2, Interleaved: true})
		near(t, "interleaved", x, []float32{-2, 1, 3, 4, 9}, 0)
		x = []float32{9, 1, 2, 3, 4, 8, 5, 6, 7, 0}
		p.Rotate(x, 2, 5, Rotation{Cos: []float32{0, 1}, Sin: []float32{1, 0}, First: 1, Half: 2, Interleaved: true})
		near(t, "the last four of two heads", x, []float32{9, -2, 1, 3, 4, 8, -6, 5, 7, 0}, 0)
	})
}

func TestRowsAllocateNothing(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	x, y := make([]float32, 4*rowGrain), make([]float32, 4*rowGrain)
	blocks, halves := make([]QBlock, len(x)/qBlock), make([]uint16, len(x))
	allocs := testing.AllocsPerRun(10, func() {
		p.Add(y, x)
		p.Scale(y, 2)
		p.SwiGLU(y, x)
		p.GeGLU(y, x)
		p.RMSNorm(y, x, x[:1024], 1e-6)
		p.Rotate(y, 4, 128, Rotation{Cos: x, Sin: x, Half: 64})
		p.Quantize(blocks, x)
		p.ToBF16(halves, x)
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}

// Nanoseconds for 1024 values, on each tier.
func BenchmarkRows(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 1024
	x, y, w := fill(r, make([]float32, n), false), make([]float32, n), fill(r, make([]float32, n), false)
	blocks, halves := make([]QBlock, n/qBlock), make([]uint16, n)
	for _, kernel := range []struct {
		name string
		run  func(k *rowKernels)
	}{
		{"rmsnorm", func(k *rowKernels) { k.rmsNorm(y, x, w, 1e-6) }},
		{"add", func(k *rowKernels) { k.add(y, x) }},
		{"scale", func(k *rowKernels) { k.scale(y, 1) }},
		{"swiglu", func(k *rowKernels) { copy(y, w); k.swiglu(y, x) }},
		{"geglu", func(k *rowKernels) { copy(y, w); k.geglu(y, x) }},
		{"rotate", func(k *rowKernels) { copy(y, w); k.rotate(y, x[:64], w[:64], n/128, 128) }},
		{"rotatepairs", func(k *rowKernels) { copy(y, w); k.rotatePairs(y, x[:64], w[:64], n/128, 128) }},
		{"quantize", func(k *rowKernels) { k.quantize(blocks, x) }},
		{"tobf16", func(k *rowKernels) { k.toBF16(halves, x) }},
	} {
		for _, c := range machine() {
			k := rowsFor(c)
			b.Run(fmt.Sprintf("%s/%v", kernel.name, c.Tier), func(b *testing.B) {
				for b.Loop() {
					kernel.run(&k)
				}
			})
		}
	}
}
