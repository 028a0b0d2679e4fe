package kernel

import (
	"math"
	"math/bits"
)

func peakGeneric(x []float32) float32 {
	most := negInf
	for _, v := range x {
		if v != v {
			return v
		}
		if v > most {
			most = v
		}
	}
	return most
}

func divideGeneric(x []float32, a float32) {
	for i := range x {
		x[i] /= a
	}
}

func expSumGeneric(x []float32, shift float32) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(expGeneric(v - shift))
	}
	return sum
}

func atLeastGeneric(set []uint64, x []float32, floor float32) {
	clear(set)
	for i, v := range x {
		if v >= floor {
			set[i/64] |= 1 << (i % 64)
		}
	}
}

func maskGeneric(x []float32, allowed []uint64) {
	for w, word := range allowed {
		part := x[w*64 : min(w*64+64, len(x))]
		for not := ^word; not != 0; not &= not - 1 {
			i := bits.TrailingZeros64(not)
			if i >= len(part) {
				break
			}
			part[i] = negInf
		}
	}
}

// SplitMix64 (Steele, Lea, Flood 2014), up to the last step of its finaliser,
// which does not reach the 31 high bits.
const splitGamma = 0x9e3779b97f4a7c15

func splitMixHigh(state uint64) uint64 {
	z := (state ^ state>>30) * 0xbf58476d1ce4e5b9
	return (z ^ z>>27) * 0x94d049bb133111eb
}

// With v number r of the stream as a fraction of 2⁶⁴, the noise is below
// -ln(v), v is at least m·2⁻³¹ with m the 31 high bits of r, and log2(m) is at
// least bits(m)·2⁻²³ - 127, where bits are those of m as a float32: a logarithm
// is concave between powers of two. So x + noise >= best only if x -
// bits(m)·ln2·2⁻²³ >= best - (31+127)·ln2, less what rounding takes.
func contenderFloor(best float64) float32 {
	floor := best - (31+127)*math.Ln2
	return float32(floor - 1e-3 - 1e-6*math.Abs(floor))
}

func contendersGeneric(x []float32, state uint64, floor float32) (set [16]uint64) {
	for i, v := range x {
		state += splitGamma
		m := float32(int32(splitMixHigh(state) >> 33))
		if v-float32(float32(int32(math.Float32bits(m)))*(math.Ln2/(1<<23))) >= floor {
			set[i/64] |= 1 << (i % 64)
		}
	}
	return set
}
