package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
)

// SplitMix64 (Steele, Lea, Flood 2014): number i is mix(state + (i+1)·splitGamma).
const (
	splitGamma = 0x9e3779b97f4a7c15
	splitMul1  = 0xbf58476d1ce4e5b9
	splitMul2  = 0x94d049bb133111eb
)

// contenders bounds Gumbel noise from above without a logarithm. With v the
// number r of the stream as a fraction of 2⁶⁴, the noise is below -ln(v), v is
// at least m·2⁻³¹ with m the 31 high bits of r, and log2(m) is at least
// bits(m)·2⁻²³ - 127, where bits are those of m as a float32: a logarithm is
// concave between powers of two. The last step of mix does not reach the bits
// of m.
func contenders(width int) {
	text("contenders", width, "func(x []float32, state uint64, floor float32) (set [16]uint64)",
		"sets a bit for each value, in whole words of 64: x - bits(m)·ln2·2⁻²³ >= floor.")
	first, err := Return("set").Index(0).Resolve()
	if err != nil {
		panic(err)
	}
	word, zero := GP64(), x86.Vec(width)
	LEAQ(first.Addr, word)
	VXORPS(zero, zero, zero)
	for at := 0; at < 16*8; at += width / 8 {
		VMOVUPS(zero, Mem{Base: word, Disp: at})
	}
	var from [2]reg.VecVirtual // states of the numbers of a vector of x, as two of 64 bits
	order := map[int][]uint64{
		512: {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		// VSHUFPS, which picks the high words, works within 128 bits.
		256: {1, 2, 5, 6, 3, 4, 7, 8},
	}[width]
	multiples := make([]uint64, len(order))
	for i, m := range order {
		multiples[i] = m * splitGamma
	}
	table := x86.Table("gammas"+x86.Suffix(width), multiples...)
	state, step := x86.Vec(width), x86.Vec(width)
	VPBROADCASTQ(address("state"), state)
	for i := range from {
		from[i] = x86.Vec(width)
		VMOVUPS(table.Offset(i*width/8), from[i])
		VPADDQ(state, from[i], from[i])
	}
	gammas := uint64(splitGamma)
	gammas *= uint64(width / 32)
	VPBROADCASTQ(x86.Table("gammaStep"+x86.Suffix(width), gammas), step)
	mul1, mul2 := newMul64(width, splitMul1), newMul64(width, splitMul2)
	k := x86.Broadcast(width, x86.Float(math.Ln2/(1<<23)))
	floor := x86.Vec(width)
	VBROADCASTSS(address("floor"), floor)
	var high reg.VecVirtual
	if width == 512 {
		high = ZMM()
		VMOVDQU32(x86.Table("highWords", 3<<32|1, 7<<32|5, 11<<32|9, 15<<32|13, 19<<32|17, 23<<32|21, 27<<32|25, 31<<32|29), high)
	}

	x, n := pointer("x"), length("x")
	SHRQ(U8(6), n)
	words(x, word, n, func() {
		compared(width, greaterOrEqual, floor, func(i int) reg.VecVirtual {
			z := x86.Vecs(width, 2)
			for j, z := range z {
				xorShift(width, 30, from[j], z)
				VPADDQ(step, from[j], from[j])
			}
			for _, z := range z {
				mul1.by(z)
				xorShift(width, 27, z, z)
			}
			for _, z := range z {
				mul2.by(z)
			}
			m := z[0]
			if width == 512 {
				m = ZMM()
				VMOVDQA32(high, m)
				VPERMI2D(z[1], z[0], m)
			} else {
				VSHUFPS(U8(0b11_01_11_01), z[1], z[0], m)
			}
			VPSRLD(U8(1), m, m)
			VCVTDQ2PS(m, m)
			VCVTDQ2PS(m, m) // of its bits
			v := x86.Vec(width)
			VMOVUPS(Mem{Base: x, Disp: i * width / 8}, v)
			VFNMADD231PS(k, m, v)
			return v
		}, Mem{Base: word})
	})
}

// xorShift sets z = from ^ from>>n.
func xorShift(width int, n uint8, from, z reg.VecVirtual) {
	t := x86.Vec(width)
	VPSRLQ(U8(n), from, t)
	if width == 512 {
		VPXORQ(t, from, z)
	} else {
		VPXOR(t, from, z)
	}
}

// A mul64 multiplies by a constant, modulo 2⁶⁴.
type mul64 struct {
	width    int
	c, upper reg.VecVirtual // upper: c >> 32, for AVX2
}

func newMul64(width int, c uint64) mul64 {
	m := mul64{width: width, c: x86.Vec(width)}
	VPBROADCASTQ(x86.Table(fmt.Sprintf("const%016x", c), c), m.c)
	if width == 256 {
		m.upper = YMM()
		VPSRLQ(U8(32), m.c, m.upper)
	}
	return m
}

func (m mul64) by(z reg.VecVirtual) {
	if m.width == 512 {
		VPMULLQ(m.c, z, z)
		return
	}
	a, b := YMM(), YMM()
	VPMULUDQ(m.upper, z, a)
	VPSRLQ(U8(32), z, b)
	VPMULUDQ(m.c, b, b)
	VPADDQ(a, b, b)
	VPSLLQ(U8(32), b, b)
	VPMULUDQ(m.c, z, z)
	VPADDQ(b, z, z)
}
