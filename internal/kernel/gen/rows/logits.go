package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
)

// Predicates of VCMPPS.
const (
	unordered      = 3
	greaterOrEqual = 13
)

// peak watches for NaN apart from the maximum, two vectors with one comparison.
func peak(width int) {
	text("peak", width, "func(x []float32) float32", "returns the greatest value of x, NaN if one is.")
	x, n := pointer("x"), length("x")
	lanes := width / 32
	const unroll = 4
	most := x86.Vecs(width, unroll)
	nan := newNaNs(width)
	for _, m := range most {
		VBROADCASTSS(x86.Float(float32(math.Inf(-1))), m)
	}

	Label("vectors")
	CMPQ(n, U32(uint32(unroll*lanes)))
	JB(LabelRef("single"))
	v := x86.Vecs(width, unroll)
	for i, v := range v {
		VMOVUPS(Mem{Base: x, Disp: i * width / 8}, v)
		VMAXPS(v, most[i], most[i])
	}
	for i := 0; i < unroll; i += 2 {
		nan.watch(v[i], v[i+1])
	}
	ADDQ(U32(uint32(unroll*width/8)), x)
	SUBQ(U32(uint32(unroll*lanes)), n)
	JMP(LabelRef("vectors"))

	Label("single")
	CMPQ(n, U32(uint32(lanes)))
	JB(LabelRef("tail"))
	VMOVUPS(Mem{Base: x}, v[0])
	VMAXPS(v[0], most[0], most[0])
	nan.watch(v[0], v[0])
	ADDQ(U32(uint32(width/8)), x)
	SUBQ(U32(uint32(lanes)), n)
	JMP(LabelRef("single"))

	Label("tail")
	VBROADCASTSS(x86.Float(float32(math.Inf(-1))), v[0])
	x86.NewTail(width, n).LoadOver(Mem{Base: x}, v[0])
	VMAXPS(v[0], most[0], most[0])
	nan.watch(v[0], v[0])

	for half := unroll / 2; half > 0; half /= 2 {
		for i := range half {
			VMAXPS(most[half+i], most[i], most[i])
		}
	}
	y, m, high := most[0].AsY(), most[0].AsX(), YMM()
	if width == 512 {
		VEXTRACTF64X4(U8(1), most[0], high)
		VMAXPS(high, y, y)
	}
	VEXTRACTF128(U8(1), y, high.AsX())
	VMAXPS(high.AsX(), m, m)
	for _, swap := range []uint8{swapHalves, swapWords} {
		VPERMILPS(U8(swap), m, high.AsX())
		VMAXPS(high.AsX(), m, m)
	}
	nan.orElse(m)
	Store(m, ReturnIndex(0))
	end()
}

// nans collects whether vectors held a NaN.
type nans struct {
	k reg.OpmaskVirtual
	v reg.VecVirtual
}

func newNaNs(width int) nans {
	if width == 512 {
		n := nans{k: K()}
		KXORW(n.k, n.k, n.k)
		return n
	}
	n := nans{v: YMM()}
	VXORPS(n.v, n.v, n.v)
	return n
}

func (n nans) watch(a, b reg.VecVirtual) {
	if n.k != nil {
		k := K()
		VCMPPS(U8(unordered), a, b, k)
		KORW(k, n.k, n.k)
	} else {
		v := YMM()
		VCMPPS(U8(unordered), a, b, v)
		VORPS(v, n.v, n.v)
	}
}

// orElse makes m NaN if there was one.
func (n nans) orElse(m reg.Register) {
	seen := GP32()
	if n.k != nil {
		KMOVW(n.k, seen)
	} else {
		VMOVMSKPS(n.v, seen)
	}
	TESTL(seen, seen)
	JZ(LabelRef("noNaN"))
	VBROADCASTSS(x86.Bits(0x7fc00000), m)
	Label("noNaN")
}

// expSum adds in float64.
func expSum(width int) {
	text("expSum", width, "func(x []float32, shift float32) float64", "returns the sum of exp(x - shift).")
	x, n := pointer("x"), length("x")
	lanes := width / 32
	shift := x86.Vec(width)
	VBROADCASTSS(address("shift"), shift)
	exp := x86.NewExp(width)
	sums := x86.Vecs(width, 2)
	for _, s := range sums {
		VXORPS(s, s, s)
	}
	add := func(v []reg.VecVirtual) {
		for _, v := range v {
			VSUBPS(shift, v, v)
		}
		exp.Apply(v...)
		for _, v := range v {
			low, high := x86.Vec(width), x86.Vec(width)
			if width == 512 {
				VCVTPS2PD(v.AsY(), low)
				VEXTRACTF64X4(U8(1), v, v.AsY())
				VCVTPS2PD(v.AsY(), high)
			} else {
				VCVTPS2PD(v.AsX(), low)
				VEXTRACTF128(U8(1), v, v.AsX())
				VCVTPS2PD(v.AsX(), high)
			}
			VADDPD(low, sums[0], sums[0])
			VADDPD(high, sums[1], sums[1])
		}
	}

	unroll := width / 128
	Label("vectors")
	CMPQ(n, U32(uint32(unroll*lanes)))
	JB(LabelRef("single"))
	v := x86.Vecs(width, unroll)
	for i, v := range v {
		VMOVUPS(Mem{Base: x, Disp: i * width / 8}, v)
	}
	add(v)
	ADDQ(U32(uint32(unroll*width/8)), x)
	SUBQ(U32(uint32(unroll*lanes)), n)
	JMP(LabelRef("vectors"))

	Label("single")
	v = x86.Vecs(width, 1)
	CMPQ(n, U32(uint32(lanes)))
	JB(LabelRef("tail"))
	VMOVUPS(Mem{Base: x}, v[0])
	add(v)
	ADDQ(U32(uint32(width/8)), x)
	SUBQ(U32(uint32(lanes)), n)
	JMP(LabelRef("single"))

	Label("tail")
	TESTQ(n, n)
	JZ(LabelRef("sum"))
	VBROADCASTSS(x86.Float(float32(math.Inf(-1))), v[0])
	x86.NewTail(width, n).LoadOver(Mem{Base: x}, v[0])
	add(v)
	Label("sum")
	VADDPD(sums[1], sums[0], sums[0])
	Store(sumFloat64(width, sums[0]), ReturnIndex(0))
	end()
}

// sumFloat64 returns the sum of the lanes of v, which it overwrites.
func sumFloat64(width int, v reg.VecVirtual) reg.Register {
	high := YMM()
	if width == 512 {
		VEXTRACTF64X4(U8(1), v, high)
		VADDPD(high, v.AsY(), v.AsY())
	}
	VEXTRACTF128(U8(1), v.AsY(), high.AsX())
	VADDPD(high.AsX(), v.AsX(), v.AsX())
	VPERMILPD(U8(1), v.AsX(), high.AsX())
	VADDSD(high.AsX(), v.AsX(), v.AsX())
	return v.AsX()
}

// words loops over the words of a set and the 64 values of x for each.
func words(x, word, n reg.GPVirtual, body func()) {
	Label("word")
	TESTQ(n, n)
	JZ(LabelRef("end"))
	body()
	ADDQ(U32(256), x)
	ADDQ(U8(8), word)
	DECQ(n)
	JMP(LabelRef("word"))
	Label("end")
	end()
}

// compared stores a word of bits from comparisons (predicate, with right) of
// the vectors that left returns.
func compared(width int, predicate uint8, right reg.VecVirtual, left func(i int) reg.VecVirtual, to Mem) {
	bits := GP64()
	for i := range 64 * 32 / width {
		part := GP64()
		if width == 512 {
			k := K()
			VCMPPS(U8(predicate), right, left(i), k)
			KMOVW(k, part.As32())
		} else {
			v := YMM()
			VCMPPS(U8(predicate), right, left(i), v)
			VMOVMSKPS(v, part.As32())
		}
		if i == 0 {
			MOVQ(part, bits)
		} else {
			SHLQ(U8(i*width/32), part)
			ORQ(part, bits)
		}
	}
	MOVQ(bits, to)
}

func atLeast(width int) {
	text("atLeast", width, "func(set []uint64, x []float32, floor float32)", "sets a bit for each value, in whole words of 64: x >= floor.")
	floor := x86.Vec(width)
	VBROADCASTSS(address("floor"), floor)
	x, word := pointer("x"), pointer("set")
	words(x, word, length("set"), func() {
		compared(width, greaterOrEqual, floor, func(i int) reg.VecVirtual {
			v := x86.Vec(width)
			VMOVUPS(Mem{Base: x, Disp: i * width / 8}, v)
			return v
		}, Mem{Base: word})
	})
}

func mask(width int) {
	text("mask", width, "func(x []float32, allowed []uint64)", "sets x to -Inf where a bit is not set, in whole words of 64.")
	nothing := x86.Broadcast(width, x86.Float(float32(math.Inf(-1))))
	var lane reg.VecVirtual
	if width == 256 {
		lane = YMM()
		VMOVDQU(x86.Table("laneBits", 2<<32|1, 8<<32|4, 32<<32|16, 128<<32|64), lane)
	}
	x, word := pointer("x"), pointer("allowed")
	words(x, word, length("allowed"), func() {
		if width == 512 {
			bits := GP64()
			MOVQ(Mem{Base: word}, bits)
			NOTQ(bits)
			for i := range 4 {
				k := K()
				KMOVW(bits.As32(), k)
				VMOVUPS(nothing, k, Mem{Base: x, Disp: 64 * i})
				SHRQ(U8(16), bits)
			}
			return
		}
		for i := range 8 {
			v, keep := YMM(), YMM()
			VPBROADCASTB(Mem{Base: word, Disp: i}, keep)
			VPAND(lane, keep, keep)
			VPCMPEQD(lane, keep, keep)
			VBLENDVPS(keep, Mem{Base: x, Disp: 32 * i}, nothing, v)
			VMOVUPS(v, Mem{Base: x, Disp: 32 * i})
		}
	})
}
