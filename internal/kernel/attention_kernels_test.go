package kernel

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/foretoken/foretoken/internal/tensor"
	"pgregory.net/rapid"
)

// A fence surrounds what kernels are given. It is NaN in every type of the
// cache, so that even reading it leaves a trace.
type fence[T any] struct{ all, slice []T }

const fenceBytes = 256

func fenced[T any](values []T) fence[T] {
	n := fenceBytes / int(unsafe.Sizeof(*new(T)))
	all := make([]T, 2*n+len(values))
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&all[0])), len(all)*int(unsafe.Sizeof(*new(T))))
	for i := range bytes {
		bytes[i] = 0xff
	}
	f := fence[T]{all, all[n : n+len(values) : n+len(values)]}
	copy(f.slice, values)
	return f
}

func (f fence[T]) check(t *rapid.T, name string) {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&f.all[0])), len(f.all)*int(unsafe.Sizeof(*new(T))))
	for i := range fenceBytes {
		if bytes[i] != 0xff || bytes[len(bytes)-1-i] != 0xff {
			t.Fatalf("written outside %s", name)
		}
	}
}

// unequal returns the first index at which a and b differ by more than bound,
// or in being NaN, or -1.
func unequal(a, b []float32, bound func(i int) float64) int {
	for i := range a {
		switch {
		case math.Float32bits(a[i]) == math.Float32bits(b[i]), a[i] != a[i] && b[i] != b[i]:
		case !(math.Abs(float64(a[i])-float64(b[i])) <= bound(i)):
			return i
		}
	}
	return -1
}

// kvSpecials are what arithmetic treats differently; products of two are finite
// where both are.
var kvSpecials = []float32{0, float32(math.Copysign(0, -1)), 1e-40, -3e-45, 1e18, -3e18, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.Float32frombits(0x7f800001)}

// drawValues returns n values, a few of them special on request.
func drawValues(t *rapid.T, n int, special bool) []float32 {
	v := random(rapid.Uint64().Draw(t, "seed"), n)
	if special {
		drawSpecials(t, v)
	}
	return v
}

// drawSpecials makes a few values special.
func drawSpecials(t *rapid.T, v []float32) {
	for range min(len(v), rapid.IntRange(0, 3).Draw(t, "specials")) {
		v[rapid.IntRange(0, len(v)-1).Draw(t, "at")] = rapid.SampledFrom(kvSpecials).Draw(t, "special")
	}
}

func multiply(x []float32, a float32) {
	for i := range x {
		x[i] *= a
	}
}

// Both products differ from their twins by rounding alone: a chain of n
// multiply-adds, fused or not, is within n·2⁻²³ of the sum of magnitudes, and
// n·2⁻¹²⁶ more where subnormal sums may be 0.
func chainBound(kind kvKind, n int, size []float32) func(i int) float64 {
	flushed := 0.0
	if kind == kvPairs {
		flushed = 0x1p-126
	}
	return func(i int) float64 { return float64(n) * (0x1p-23*float64(size[i]) + flushed) }
}

func TestScoresAgainstTwin(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			kind := drawKind(t)
			l, m := drawShape(t, kind)
			k, _ := panels(&l, kvTypes[kind], drawValues(t, KVBlock*l.keyDim, true), make([]float32, KVBlock*l.valueDim))
			vectors := drawValues(t, m*l.keyDim, true)
			q := fenced(asQueries(kind, vectors))
			keys, s, want := fenced(k), fenced(make([]float32, m*KVBlock)), make([]float32, m*KVBlock)
			active.attention.scores[kind](s.slice, q.slice, keys.slice, l.keyDim, &keys.slice[0])
			attentionGeneric.scores[kind](want, asQueries(kind, vectors), k, l.keyDim, nil)
			size := make([]float32, m*KVBlock)
			attentionGeneric.scores[kind](size, asQueries(kind, magnitudes(vectors)), absolutePanels(kind, k), l.keyDim, nil)
			if i := unequal(s.slice, want, chainBound(kind, l.keyDim, size)); i >= 0 {
				t.Fatalf("query %d, lane %d: %v, twin %v", i/KVBlock, i%KVBlock, s.slice[i], want[i])
			}
			s.check(t, "s")
			keys.check(t, "keys")
			q.check(t, "q")
		})
	})
}

func TestValuesAgainstTwin(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			kind := drawKind(t)
			l, m := drawShape(t, kind)
			from := rapid.IntRange(0, KVBlock-1).Draw(t, "from")
			to := rapid.IntRange(from+1, KVBlock).Draw(t, "to")
			rows := drawValues(t, KVBlock*l.valueDim, true)
			for _, unseen := range [][]float32{rows[:from*l.valueDim], rows[to*l.valueDim:]} {
				for i := range unseen {
					unseen[i] = float32(math.NaN())
				}
			}
			_, v := panels(&l, kvTypes[kind], make([]float32, KVBlock*l.keyDim), rows)
			weights := drawValues(t, m*KVBlock, true)
			if kind == kvPairs {
				roundTrip(tensor.BF16, weights)
			}
			for i := range weights {
				if lane := i % KVBlock; lane < from || lane >= to {
					weights[i] = float32(math.NaN())
				}
			}
			w, vals := fenced(weights), fenced(v)
			start := drawValues(t, m*l.valueDim, true)
			out, want := fenced(start), slices.Clone(start)
			active.attention.values[kind](out.slice, w.slice, make([]float32, m*KVBlock), vals.slice, l.valueDim, from, to, &vals.slice[0])
			attentionGeneric.values[kind](want, w.slice, nil, v, l.valueDim, from, to, nil)
			size := magnitudes(start)
			attentionGeneric.values[kind](size, magnitudes(w.slice), nil, absolutePanels(kind, v), l.valueDim, from, to, nil)
			if i := unequal(out.slice, want, chainBound(kind, to-from+1, size)); i >= 0 {
				t.Fatalf("query %d, dimension %d: %v, twin %v", i/l.valueDim, i%l.valueDim, out.slice[i], want[i])
			}
			out.check(t, "out")
			w.check(t, "w")
			vals.check(t, "values")
		})
	})
}

func magnitudes(x []float32) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(math.Abs(float64(v)))
	}
	return y
}

// absolutePanels returns panels with the magnitudes of their values.
func absolutePanels(kind kvKind, panels []byte) []byte {
	b := slices.Clone(panels)
	switch kind {
	case kvQ8:
		for i := range b {
			if c := int8(b[i]); i%q8Panel >= q8Codes && c < 0 {
				b[i] = byte(-c)
			}
		}
	default:
		size := kvTypes[kind].BlockBytes()
		for i := size - 1; i < len(b); i += size {
			b[i] &= 0x7f
		}
	}
	return b
}

// Maxima are those of the twin; weights and their sums are within the
// precision of exp, and exactly zero where nothing is seen. Weights that are
// rounded to bfloat16 are added after that.
func TestSoftmaxAgainstTwin(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			m := rapid.IntRange(0, 9).Draw(t, "m")
			x := drawValues(t, m*KVBlock, true)
			multiply(x, rapid.SampledFrom([]float32{1, 30, 1000}).Draw(t, "spread"))
			lanes := make([]uint32, m)
			for i := range lanes {
				lanes[i] = rapid.SampledFrom([]uint32{^uint32(0), 1, 1 << 31, 0x0000fff0, 0x00018000, 0x7fffffff}).Draw(t, "lanes")
			}
			s, want := fenced(x), slices.Clone(x)
			seen, high, sum := fenced(lanes), fenced(make([]float32, m)), fenced(make([]float32, m))
			wantHigh, wantSum := make([]float32, m), make([]float32, m)
			relative := 4e-7
			if active.cpu.BF16 && rapid.Bool().Draw(t, "bf16") {
				relative = 0x1p-7 // neighbours
				active.attention.softmaxBF16(s.slice, seen.slice, high.slice, sum.slice, 0.3)
				softmaxBF16Generic(want, lanes, wantHigh, wantSum, 0.3)
				rounded, added := slices.Clone(s.slice), make([]float32, m)
				roundTrip(tensor.BF16, rounded)
				if i := unequal(s.slice, rounded, func(int) float64 { return 0 }); i >= 0 {
					t.Fatalf("query %d, lane %d: %v is not rounded", i/KVBlock, i%KVBlock, s.slice[i])
				}
				for i := range rounded {
					added[i/KVBlock] += rounded[i]
				}
				if i := unequal(sum.slice, added, func(i int) float64 { return KVBlock * 0x1p-24 * float64(added[i]) }); i >= 0 {
					t.Fatalf("query %d: sum %v, that of rounded weights %v", i, sum.slice[i], added[i])
				}
			} else {
				active.attention.softmax(s.slice, seen.slice, high.slice, sum.slice, 0.3)
				softmaxGeneric(want, lanes, wantHigh, wantSum, 0.3)
			}
			if i := unequal(high.slice, wantHigh, func(int) float64 { return 0 }); i >= 0 {
				t.Fatalf("query %d: maximum %v, twin %v", i, high.slice[i], wantHigh[i])
			}
			const least = 0x1p-125 // below, exp may be 0
			if i := unequal(s.slice, want, func(i int) float64 { return relative*float64(want[i]) + least }); i >= 0 {
				t.Fatalf("query %d, lane %d: %v, twin %v", i/KVBlock, i%KVBlock, s.slice[i], want[i])
			}
			if i := unequal(sum.slice, wantSum, func(i int) float64 { return 2*relative*float64(wantSum[i]) + KVBlock*least }); i >= 0 {
				t.Fatalf("query %d: sum %v, twin %v", i, sum.slice[i], wantSum[i])
			}
			for i := range s.slice {
				if seen.slice[i/KVBlock]>>(i%KVBlock)&1 == 0 && s.slice[i] != 0 {
					t.Fatalf("query %d, lane %d is not seen and weighs %v", i/KVBlock, i%KVBlock, s.slice[i])
				}
			}
			s.check(t, "s")
			seen.check(t, "lanes")
			high.check(t, "high")
			sum.check(t, "sum")
		})
	})
}

func TestMergeAndNormaliseAgainstTwins(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			m, dim := rapid.IntRange(0, 9).Draw(t, "m"), valueUnit*rapid.IntRange(1, 9).Draw(t, "dim/16")
			operands := [6][]float32{
				drawValues(t, m*dim, true), drawValues(t, m*dim, true), // out, block
				drawValues(t, m, false), magnitudes(drawValues(t, m, true)), drawValues(t, m, false), magnitudes(drawValues(t, m, true)), // top, total, high, sum
			}
			if m > 0 && rapid.Bool().Draw(t, "first") {
				operands[2][m-1] = -math.MaxFloat32
			}
			var got [6]fence[float32]
			var want [6][]float32
			for i, x := range operands {
				got[i], want[i] = fenced(x), slices.Clone(x)
			}
			active.attention.merge(got[0].slice, got[1].slice, got[2].slice, got[3].slice, got[4].slice, got[5].slice, dim)
			mergeBlockGeneric(want[0], want[1], want[2], want[3], want[4], want[5], dim)
			for i, name := range []string{"out", "block", "top", "total", "high", "sum"} {
				bound := func(int) float64 { return 0 }
				switch name { // sums of two products with factors of at most 1, which exp gives
				case "out": // and subnormal numbers are 2⁻¹⁴⁹ apart
					bound = func(k int) float64 {
						return 6e-7*math.Abs(float64(operands[0][k])) + 6e-7*math.Abs(float64(operands[1][k])) + 0x1p-145
					}
				case "total":
					bound = func(k int) float64 { return 6e-7 * float64(operands[3][k]+operands[5][k]) }
				}
				if k := unequal(got[i].slice, want[i], bound); k >= 0 {
					t.Fatalf("%s[%d] of dimension %d: %v, twin %v", name, k, dim, got[i].slice[k], want[i][k])
				}
				got[i].check(t, name)
			}

			dst := fenced(make([]float32, m*dim))
			active.attention.normalise(dst.slice, operands[0], operands[3], dim)
			normaliseGeneric(want[0], operands[0], operands[3], dim)
			if k := unequal(dst.slice, want[0], func(int) float64 { return 0 }); k >= 0 {
				t.Fatalf("quotient %d of dimension %d: %v, twin %v", k, dim, dst.slice[k], want[0][k])
			}
			dst.check(t, "dst")
		})
	})
}

// What is packed decodes to the same values everywhere.
func TestPackAgainstTwin(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			kind := drawKind(t)
			d := kvTypes[kind]
			n := rapid.IntRange(0, 150).Draw(t, "n") / d.BlockLen() * d.BlockLen()
			x := drawValues(t, n, false)
			multiply(x, rapid.SampledFrom([]float32{1, 1e-3, 1e-5, 3e-6, 1e-7, 5e4, 1e9}).Draw(t, "size"))
			drawSpecials(t, x)
			src, got, want := fenced(x), fenced(make([]byte, d.RowBytes(n))), make([]byte, d.RowBytes(n))
			active.attention.pack[kind](got.slice, src.slice)
			attentionGeneric.pack[kind](want, x)
			a, b := make([]float32, n), make([]float32, n)
			tensor.Decode(d, a, got.slice)
			tensor.Decode(d, b, want)
			if i := unequal(a, b, func(int) float64 { return 0 }); i >= 0 {
				t.Fatalf("%v of value %d, %v: %v, twin %v", d, i, x[i], a[i], b[i])
			}
			got.check(t, "dst")
			src.check(t, "src")
		})
	})
}
