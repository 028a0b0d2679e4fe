package exec

import (
	"math"
	"slices"
)

// roundEntry rounds all but the rotated values of a key in blocks of 64, to
// e4m3 times a power of two.
func (r *reference) roundEntry(k []float64) {
	if !r.rounded {
		return
	}
	size := 64
	switch k = k[:len(k)-r.RopeDim]; r.wrong {
	case "whole keys share a scale":
		size = len(k)
	case "rotated values rounded":
		roundBlock(k[len(k):len(k)+r.RopeDim], 1e-4, 448, -6, 3, true)
	}
	for block := range slices.Chunk(k, size) {
		roundBlock(block, 1e-4, 448, -6, 3, r.wrong != "scales not powers of two")
	}
}

// roundIndex rotates an index query or key by Hadamard's matrix, and rounds it
// in blocks of 32 to e2m1 times a power of two; that of V3.2 as one block to e4m3.
func (r *reference) roundIndex(k []float64) {
	if !r.rounded {
		return
	}
	turned := make([]float64, len(k))
	for i := range k {
		for j, v := range k {
			if parity(i&j) != 0 {
				v = -v
			}
			turned[i] += v / math.Sqrt(float64(len(k)))
		}
	}
	if r.wrong != "no hadamard" {
		copy(k, turned)
	}
	if r.Family == "deepseek_v32" {
		roundBlock(k, 1e-4, 448, -6, 3, r.wrong != "scales not powers of two")
		return
	}
	for block := range slices.Chunk(k, 32) {
		if r.wrong == "index as fp8" {
			roundBlock(block, 1e-4, 448, -6, 3, true)
			continue
		}
		roundBlock(block, 6*0x1p-126, 6, 0, 1, true)
	}
}

// parity is 1 if an odd number of bits are set.
func parity(n int) (odd int) {
	for ; n > 0; n &= n - 1 {
		odd ^= 1
	}
	return odd
}

// roundBlock rounds x to v·s, s the least number, or power of two, with which all
// are within top, and v a number of some bits after its first, to even ones, or less below
// 2 to the least exponent.
func roundBlock(x []float64, floor, top float64, least, bits int, power bool) {
	peak := floor
	for _, v := range x {
		peak = math.Max(peak, math.Abs(v))
	}
	s := peak / top
	if power {
		s = math.Exp2(math.Ceil(math.Log2(s)))
	}
	for i, v := range x {
		v /= s
		_, e := math.Frexp(v) // v = f·2ᵉ, f from ½ to 1
		unit := math.Exp2(float64(max(e-1, least) - bits))
		x[i] = s * math.RoundToEven(v/unit) * unit
	}
}
