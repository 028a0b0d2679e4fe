package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Every kernel of logits on every tier against its reference: any length, any
// values, and no memory but its own.
func TestLogitKernels(t *testing.T) {
	ref := genericRows()
	eachTier(t, rapidCheck(func(t *rapid.T) {
		r := drawRand(t)
		n := rapid.IntRange(0, 700).Draw(t, "n")
		x, checkX := guarded[float32](n, 7)
		fill(r, x, rapid.Bool().Draw(t, "wild"))
		given := slices.Clone(x)

		peaks, checkPeaks := guarded[float32]((n+PeakGroup-1)/PeakGroup, 7)
		wantPeaks := slices.Clone(peaks)
		Peaks(peaks, x)
		for i := range wantPeaks {
			wantPeaks[i] = ref.peak(x[i*PeakGroup : min((i+1)*PeakGroup, n)])
		}

		set, checkSet := guarded[uint64](words(x), 7)
		wantSet := slices.Clone(set)
		floor := rapid.SampledFrom(append(specials, 0.3, -0.3)).Draw(t, "floor")
		AtLeast(set, x, floor)
		ref.atLeast(wantSet, x, floor)

		for _, err := range []error{within(0, x, given), within(0, peaks, wantPeaks), checkPeaks(), checkSet()} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(set, wantSet) {
			t.Fatalf("at least %v: got %x, want %x", floor, set, wantSet)
		}

		for i := range set {
			set[i] = r.Uint64() | -(r.Uint64() & 1)
		}
		want := slices.Clone(x)
		Mask(x, set)
		ref.mask(want, set)
		if err := within(0, x, want); err != nil {
			t.Fatalf("mask %x: %v", set, err)
		}
		by := rapid.SampledFrom([]float32{0.7, 1.3, 1e-5, 3e38}).Draw(t, "divisor")
		Divide(x, by)
		ref.divide(want, by)
		if err := within(0, x, want); err != nil {
			t.Fatalf("divided by %v: %v", by, err)
		}
		if err := checkX(); err != nil {
			t.Fatal(err)
		}
	}))
}

func TestArgmax(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	far := make([]float32, 70000)
	far[65537], far[69999] = 1, 1
	for _, test := range []struct {
		name string
		x    []float32
		want int
	}{
		{"nothing", nil, -1},
		{"one", []float32{-3}, 0},
		{"lowest of ties", []float32{1, 2, 2, 1}, 1},
		{"zeros of both signs", []float32{-1, float32(math.Copysign(0, -1)), 0}, 1},
		{"masked", []float32{-inf, -inf}, 0},
		{"masked but one", []float32{-inf, -3e38, -inf}, 1},
		{"infinity", []float32{1, inf, 2, inf}, 1},
		{"first NaN", []float32{1, inf, nan, 3, nan}, 2},
		{"NaN in a later group", append(make([]float32, 3*PeakGroup+5), nan, 1, nan), 3*PeakGroup + 5},
		{"far", far, 65537},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachTier(t, func(t *testing.T) {
				if got := Argmax(test.x); got != test.want {
					t.Errorf("got %d, want %d", got, test.want)
				}
			})
		})
	}
}

// Where the greatest value, and where a NaN lies, is found at every place.
func TestArgmaxAtEveryPlace(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		x := fill(rand.New(rand.NewPCG(3, 4)), make([]float32, 2*PeakGroup+45), false)
		for i, v := range x {
			for _, special := range []float32{100, float32(math.NaN())} {
				x[i] = special
				if got := Argmax(x); got != i {
					t.Fatalf("%v at %d of %d found at %d", special, i, len(x), got)
				}
			}
			x[i] = v
		}
	})
}

// exp as all kernels compute it, over its whole range.
func TestExp(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		check := func(x float32) {
			got, want := ExpSum([]float32{x}, 0), math.Exp(float64(x))
			switch {
			case x != x:
				if got == got {
					t.Fatalf("exp(NaN) is %v", got)
				}
			case x < -87:
				if got != 0 {
					t.Fatalf("exp(%v) is %v, want 0", x, got)
				}
			case x < -86.98 && got == 0:
			case want > math.MaxFloat32*(1+1e-7):
				if got != math.Inf(1) {
					t.Fatalf("exp(%v) is %v, want +Inf", x, got)
				}
			case !(math.Abs(got-want) <= 1.5e-7*want):
				t.Fatalf("exp(%v) is %v, want %v", x, got, want)
			}
		}
		for _, x := range specials {
			check(x)
		}
		for _, x := range []float32{nan, inf, -inf, 88.72283, 88.72284, math.Nextafter32(89, 0), -86.97, -87, math.Nextafter32(-87, -88)} {
			check(x)
		}
		for range 100_000 {
			check(r.Float32()*180 - 90)
			check(math.Float32frombits(r.Uint32()))
		}
	})
}

func TestExpSum(t *testing.T) {
	eachTier(t, rapidCheck(func(t *rapid.T) {
		r := drawRand(t)
		n := rapid.IntRange(0, 300).Draw(t, "n")
		x, check := guarded(n, float32(math.NaN()))
		_ = check // NaN beside the slice would be in the sum
		fill(r, x, false)
		if n > 0 {
			x[r.IntN(n)] = negInf
		}
		shift := float32(r.NormFloat64())
		var want float64
		for _, v := range x {
			want += math.Exp(float64(v - shift))
		}
		if got := ExpSum(x, shift); !(math.Abs(got-want) <= 2e-7*want) {
			t.Fatalf("%d values: got %v, want %v", n, got, want)
		}
	}))
}

// gumbel is the noise of number i of a stream.
func gumbel(state uint64, i int) float64 {
	z := splitMixHigh(state + uint64(i+1)*splitGamma)
	v := (float64((z^z>>31)>>12) + 0.5) * 0x1p-52
	return -math.Log(-math.Log1p(-v))
}

// Whoever may win is among the contenders, and hardly anyone else.
func TestContenders(t *testing.T) {
	eachTier(t, rapidCheck(func(t *rapid.T) {
		r := drawRand(t)
		n := rapid.IntRange(0, 1024).Draw(t, "n")
		x, checkX := guarded[float32](n, 7)
		scale := rapid.SampledFrom([]float64{0.01, 1, 10, 1000}).Draw(t, "scale")
		for i := range x {
			x[i] = float32(scale * r.NormFloat64())
			if r.IntN(10) == 0 {
				x[i] = negInf
			}
		}
		state := r.Uint64()
		score := func(i int) float64 { return float64(x[i]) + gumbel(state, i) }
		best := scale * r.NormFloat64()
		if n > 0 && rapid.Bool().Draw(t, "tie") {
			best = score(r.IntN(n))
		}
		set := Contenders(x, state, best)
		for i := range x {
			in := set[i/64]>>(i%64)&1 == 1
			if !in && score(i) >= best {
				t.Fatalf("%d of %d: %v is left out of those that reach %v", i, n, score(i), best)
			}
			z := splitMixHigh(state + uint64(i+1)*splitGamma)
			v := float64(z>>12) * 0x1p-52
			if bound := float64(x[i]) - math.Log(v); in && bound < best-0.1-1e-5*math.Abs(best) {
				t.Fatalf("%d of %d: at most %v, a contender for %v", i, n, bound, best)
			}
		}
		for i := n; i < 64*len(set); i++ {
			if set[i/64]>>(i%64)&1 == 1 {
				t.Fatalf("bits beyond the %d values: %x", n, set)
			}
		}
		if err := checkX(); err != nil {
			t.Fatal(err)
		}
	}))
}

// Nanoseconds for a vocabulary of 151,936, on each tier.
func BenchmarkLogits(b *testing.B) {
	x := fill(rand.New(rand.NewPCG(1, 2)), make([]float32, 151936), false)
	peaks, set := make([]float32, len(x)/PeakGroup+1), make([]uint64, words(x))
	all := slices.Repeat([]uint64{math.MaxUint64}, len(set))
	for _, kernel := range []struct {
		name string
		run  func()
	}{
		{"argmax", func() { Argmax(x) }},
		{"peaks", func() { Peaks(peaks, x) }},
		{"divide", func() { Divide(x, 1) }},
		{"expsum", func() { ExpSum(x, 5) }},
		{"atleast", func() { AtLeast(set, x, 3) }},
		{"mask", func() { Mask(x, all) }},
		{"contenders", func() {
			for from := 0; from < len(x); from += 1024 {
				Contenders(x[from:min(from+1024, len(x))], uint64(from), 20)
			}
		}},
	} {
		for _, c := range machine() {
			b.Run(fmt.Sprintf("%s/%v", kernel.name, c.Tier), func(b *testing.B) {
				saved := active
				defer func() { active = saved }()
				active = kernelsFor(c)
				for b.Loop() {
					kernel.run()
				}
			})
		}
	}
}
