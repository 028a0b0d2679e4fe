package kernel

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// smallFormat is what a small format holds, by its definition.
type smallFormat struct {
	name   string
	values []float64 // from 0 on, in order: the last bit of a value's code is that of its index
	format minifloat
	round  func(p *Pool, x []float32, n int)
	floor  float64 // of the peak of a block
}

var smallFormats = []smallFormat{
	{"e4m3", smallValues(4, 3, 7, 1), e4m3, (*Pool).RoundE4M3, float64(float32(1e-4))},
	{"e2m1", smallValues(2, 1, 1, 0), e2m1, (*Pool).RoundE2M1, 6 * 0x1p-126},
}

// smallValues lists the values of a format that are not negative, except for
// some codes at the end that are none.
func smallValues(exponentBits, fractionBits, bias, none int) (values []float64) {
	ones := 1 << fractionBits
	for code := range 1<<(exponentBits+fractionBits) - none {
		exponent, fraction := code/ones, float64(code%ones)/float64(ones)
		if exponent == 0 {
			values = append(values, math.Ldexp(fraction, 1-bias))
		} else {
			values = append(values, math.Ldexp(1+fraction, exponent-bias))
		}
	}
	return values
}

// nearest is the value of the format that is nearest to x, the one with an
// even code if there are two. Float64 holds everything here exactly.
func (f *smallFormat) nearest(x float64) float64 {
	i, _ := slices.BinarySearch(f.values, math.Abs(x))
	i = min(max(i, 1), len(f.values)-1)
	below, above := math.Abs(x)-f.values[i-1], f.values[i]-math.Abs(x)
	if below < above || below == above && i%2 == 1 {
		i--
	}
	return math.Copysign(f.values[i], x)
}

// scale is 2 to ⌈log₂(peak/top)⌉, found by trying.
func (f *smallFormat) scale(x []float32) float64 {
	peak := f.floor
	for _, v := range x {
		peak = max(peak, math.Abs(float64(v)))
	}
	top, e := f.values[len(f.values)-1], -130
	for math.Ldexp(top, e) < peak {
		e++
	}
	return math.Ldexp(1, e)
}

func TestFormatsEnd(t *testing.T) {
	for _, f := range smallFormats {
		if top := f.values[len(f.values)-1]; math.Float32frombits(f.format.top) != float32(top) {
			t.Errorf("%s ends at %v, want %v", f.name, math.Float32frombits(f.format.top), top)
		}
	}
}

// Every value of a format, every middle between two neighbours and what is
// beside these, rounded with a scale of 1: a peak of 448 or 6 sees to that.
func TestRoundingIsToNearestEven(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for _, f := range smallFormats {
			top := f.values[len(f.values)-1]
			x := []float32{float32(top)}
			for i, v := range f.values {
				x = append(x, float32(v))
				if i > 0 {
					middle := float32((v + f.values[i-1]) / 2)
					x = append(x, middle, math.Nextafter32(middle, 0), math.Nextafter32(middle, 1000))
				}
			}
			x = append(x, 1e-45, 1e-40, 1e-20)
			for i := range len(x) {
				x = append(x, -x[i])
			}
			got := slices.Clone(x)
			f.round(NewPool(1), got, len(x))
			for i, v := range x {
				if want := float32(f.nearest(float64(v))); math.Float32bits(got[i]) != math.Float32bits(want) {
					t.Errorf("%s of %v is %v, want %v", f.name, v, got[i], want)
				}
			}
		}
	})
}

// Blocks of any size, with scales of their own.
func TestRoundAgainstDefinition(t *testing.T) {
	pools := []*Pool{NewPool(1), NewPool(3)}
	for _, p := range pools {
		defer p.Close()
	}
	eachTier(t, func(t *testing.T) {
		for _, f := range smallFormats {
			t.Run(f.name, rapidCheck(func(t *rapid.T) {
				n := rapid.SampledFrom([]int{1, 2, 15, 32, 64, 128, 131}).Draw(t, "n")
				blocks := rapid.SampledFrom([]int{0, 1, 3, rowGrain/n + 3}).Draw(t, "blocks")
				x, check := guarded[float32](n*blocks, 7)
				fill(drawRand(t), x, false)
				for b := range blocks { // each of another size, up to where scales end
					multiply(x[b*n:][:n], float32(math.Ldexp(1, rapid.SampledFrom([]int{0, 1, -1, 5, -13, -20, 40, 120, -120, -130, -145}).Draw(t, "exponent"))))
					if b == 3 {
						break
					}
				}
				if len(x) > 0 { // a peak that is just a power of two times the last value, or beside it
					edge := float32(f.values[len(f.values)-1]) * 8
					x[0] = rapid.SampledFrom([]float32{x[0], edge, -edge, math.Nextafter32(edge, 0), math.Nextafter32(edge, 1e9), 3.4e38}).Draw(t, "edge")
				}
				want := slices.Clone(x)
				for b := range blocks {
					block := want[b*n:][:n]
					scale := f.scale(block)
					for i, v := range block {
						block[i] = float32(f.nearest(float64(v)/scale) * scale)
					}
				}
				f.round(rapid.SampledFrom(pools).Draw(t, "pool"), x, n)
				for i := range x {
					if math.Float32bits(x[i]) != math.Float32bits(want[i]) {
						t.Fatalf("value %d of block %d: %v, want %v", i%n, i/n, x[i], want[i])
					}
				}
				if err := check(); err != nil {
					t.Fatal(err)
				}
			}))
		}
	})
}

// What is not finite spoils its block and no other.
func TestRoundOfNoNumbers(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for _, f := range smallFormats {
			for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
				x := slices.Repeat([]float32{1}, 3*32)
				x[32+17] = bad
				f.round(NewPool(1), x, 32)
				for i, v := range x {
					if i/32 == 1 && v == v || i/32 != 1 && v != 1 {
						t.Fatalf("%s, %v in block 1: value %d of block %d is %v", f.name, bad, i%32, i/32, v)
					}
				}
			}
		}
	})
}

func TestPeakBitsAgainstTwin(t *testing.T) {
	eachTier(t, rapidCheck(func(t *rapid.T) {
		x, _ := guarded(rapid.IntRange(0, 150).Draw(t, "n"), float32(math.NaN()))
		fill(drawRand(t), x, rapid.Bool().Draw(t, "wild"))
		if got, want := active.indexer.peakBits(x), peakBitsGeneric(x); got != want {
			t.Fatalf("%#x, want %#x", got, want)
		}
	}))
}
