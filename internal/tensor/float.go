package tensor

import "math"

// Small floating-point formats. Those of 16 bits also appear inside block
// formats and caches, hence the scalar conversions.

// f16 is the value of every IEEE half-precision code. A lookup is twice as
// fast as shifting and, unlike scaling by 2^112, has no slow subnormals; the
// codes that a model uses stay in the second-level cache.
var f16 = func() *[1 << 16]float32 {
	t := new([1 << 16]float32)
	for c := range t {
		t[c] = f16Value(uint16(c))
	}
	return t
}()

// f16Value computes 1 sign, 5 exponent (bias 15) and 10 fraction bits.
func f16Value(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&0x3ff)
	switch {
	case exp == 0: // subnormal: frac × 2^-24, which float32 holds as a normal
		return math.Float32frombits(sign | math.Float32bits(float32(frac)*0x1p-24))
	case exp < 31:
		return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
	case frac == 0:
		return math.Float32frombits(sign | 0x7f800000)
	default: // NaN: keep the payload, set the quiet bit as hardware does
		return math.Float32frombits(sign | 0x7fc00000 | frac<<13)
	}
}

// F16ToF32 returns the value of the half-precision code h, exactly.
func F16ToF32(h uint16) float32 { return f16[h] }

// F32ToF16 rounds x to half precision, to nearest and ties to even. What is
// too large becomes infinity, NaN stays a (quiet) NaN.
func F32ToF16(x float32) uint16 {
	b := math.Float32bits(x)
	sign, mag := uint16(b>>16&0x8000), b&0x7fffffff
	switch {
	case mag > 0x7f800000:
		return sign | 0x7e00 | uint16(mag>>13&0x3ff)
	case mag >= 0x477ff000: // 65520, half-way between the largest half and 2^16
		return sign | 0x7c00
	case mag >= 0x38800000: // 2^-14, the smallest normal
		mag += 0xfff + mag>>13&1
		return sign | uint16(mag>>13-(127-15)<<10)
	default: // subnormal: adding 0.5 rounds to multiples of 2^-24, its last place
		sum := math.Float32frombits(mag) + 0.5
		return sign | uint16(math.Float32bits(sum)-math.Float32bits(0.5))
	}
}

// BF16ToF32 returns the value of the bfloat16 code h, exactly.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 rounds x to bfloat16, to nearest and ties to even. What is too
// large becomes infinity, NaN stays a (quiet) NaN.
func F32ToBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

var nan32 = float32(math.NaN())

// f8e5m2 is a half without its low fraction byte.
var f8e5m2 = table8(func(c uint8) float32 { return f16Value(uint16(c) << 8) })

// f8e4m3 is e4m3fn: bias 7, no infinity, NaN only where all bits but the sign
// are set, so that 0x7e is 448.
var f8e4m3 = table8(func(c uint8) float32 {
	exp, frac := int(c>>3&15), float64(c&7)
	v := math.Ldexp(8+frac, exp-7-3)
	switch {
	case c&0x7f == 0x7f:
		return nan32
	case exp == 0:
		v = math.Ldexp(frac, 1-7-3)
	}
	if c>>7 == 1 {
		v = -v
	}
	return float32(v)
})

// f8e8m0 is 2^(c-127) and has no zero; 255 is NaN.
var f8e8m0 = table8(func(c uint8) float32 {
	if c == 255 {
		return nan32
	}
	return float32(math.Ldexp(1, int(c)-127))
})

// f4e2m1 has one fraction bit; the sign is bit 3. Code 8, minus zero, is plain
// zero as in ggml's integer table.
var f4e2m1 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6}

func table8(value func(uint8) float32) (t [256]float32) {
	for c := range t {
		t[c] = value(uint8(c))
	}
	return t
}
