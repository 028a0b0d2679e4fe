package x86

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// ExpConsts is the macro for exp. Its constants are in memory.
type ExpConsts struct{ width int }

// NewExp prepares the macro for vectors of width bits, 512 or 256.
func NewExp(width int) *ExpConsts { return &ExpConsts{width} }

// The limits of exp's arguments. Below ExpMin the result is 0; the least other
// one is exp(-86.99), a little above the least normal float32, so that none is
// denormal. From ExpMax on, where exp(x) is no float32 any more, it is +Inf.
const (
	ExpMin = -87
	ExpMax = 89
)

// expCoefficients are those of 2·exp(r) from r⁶ down to r⁰: a minimax fit in
// relative error on |r| <= ln2/2, with the last two fixed; within 4e-9.
var expCoefficients = [...]uint32{
	0x3b3511e8, 0x3c891d10, 0x3daaac79, 0x3eaaaa49, 0x3f7ffffe, 0x40000000, 0x40000000,
}

// Apply replaces every lane of each x by its exponential, with a relative
// error below 1e-7; a NaN stays one. It takes two more registers per vector
// and one for all. With several x the chains of dependent instructions overlap
// and share the loads of constants.
//
// x = n·ln2 + r, and exp(x) = 2ⁿ⁻¹ · 2·exp(r): with the factor of two in the
// polynomial, 2ⁿ⁻¹ is a normal number for all n from -125 to 128 and the last
// product alone overflows.
func (c *ExpConsts) Apply(x ...reg.VecVirtual) {
	a := Vec(c.width)
	power, p := Vecs(c.width, len(x)), Vecs(c.width, len(x))

	// Minimum and maximum return the first operand here, x, if it is NaN.
	VBROADCASTSS(Float(ExpMax), a)
	for _, x := range x {
		VMINPS(x, a, x)
	}
	VBROADCASTSS(Float(ExpMin), a)
	for _, x := range x {
		VMAXPS(x, a, x)
	}

	// Added to 1.5·2²³ + 126, x/ln2 is rounded to n, and the last eight bits
	// are n-1 with the exponent's bias.
	magic := Float(1.5*(1<<23) + 126)
	for i := range x {
		VBROADCASTSS(magic, power[i])
	}
	VBROADCASTSS(Float(1.44269504), a)
	for i, x := range x {
		VFMADD231PS(a, x, power[i])
	}
	VBROADCASTSS(magic, a)
	for i := range x {
		VSUBPS(a, power[i], p[i]) // n
	}
	for _, part := range []float32{0.693359375, -2.12194440e-4} { // ln2; n times the first is exact
		VBROADCASTSS(Float(part), a)
		for i, x := range x {
			VFNMADD231PS(a, p[i], x)
		}
	}
	for i := range x {
		VPSLLD(U8(23), power[i], power[i])
	}

	for i := range x {
		VBROADCASTSS(Bits(expCoefficients[0]), p[i])
	}
	for _, coefficient := range expCoefficients[1:] {
		VBROADCASTSS(Bits(coefficient), a)
		for i, x := range x {
			VFMADD213PS(a, x, p[i])
		}
	}
	for i, x := range x {
		VMULPS(p[i], power[i], x)
	}
}
