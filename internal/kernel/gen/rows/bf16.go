package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
)

// toBF16 rounds in integers: VCVTNEPS2BF16 would take denormals as zero.
func toBF16(width int) {
	text("toBF16", width, "func(dst []uint16, x []float32)", "rounds x to bfloat16, ties to even.")
	x, dst, n := pointer("x"), pointer("dst"), length("x")
	lanes := width / 32
	one := x86.Broadcast(width, x86.Bits(1))
	half := x86.Broadcast(width, x86.Bits(0x7fff))
	quiet := x86.Broadcast(width, x86.Bits(0x40))

	// round leaves results in the low halves of v.
	round := func(v reg.VecVirtual) {
		high, even := x86.Vec(width), x86.Vec(width)
		VPSRLD(U8(16), v, high)
		VANDPS(one, high, even)
		VPADDD(v, even, even)
		VPADDD(half, even, even)
		VPSRLD(U8(16), even, even)
		VORPS(quiet, high, high)
		if width == 512 {
			nan := K()
			VCMPPS(U8(unordered), v, v, nan)
			VMOVDQA32(high, nan, even)
			VMOVDQA32(even, v)
		} else {
			nan := YMM()
			VCMPPS(U8(unordered), v, v, nan)
			VBLENDVPS(nan, high, even, v)
		}
	}
	// words is the low halves of v.
	words := func(v reg.VecVirtual) reg.Register {
		if width == 512 {
			VPMOVDW(v, v.AsY())
			return v.AsY()
		}
		VPACKUSDW(v, v, v)
		VPERMQ(U8(0b10_00), v, v)
		return v.AsX()
	}

	Label("vector")
	CMPQ(n, U32(uint32(lanes)))
	JB(LabelRef("tail"))
	v := x86.Vec(width)
	VMOVUPS(Mem{Base: x}, v)
	round(v)
	VMOVDQU(words(v), Mem{Base: dst})
	ADDQ(U32(uint32(width/8)), x)
	ADDQ(U32(uint32(width/16)), dst)
	SUBQ(U32(uint32(lanes)), n)
	JMP(LabelRef("vector"))

	Label("tail")
	TESTQ(n, n)
	JZ(LabelRef("end"))
	tail := x86.NewTail(width, n)
	tail.Load(Mem{Base: x}, v)
	round(v)
	if width == 512 {
		VPMOVDW(v, tail.K, Mem{Base: dst})
	} else {
		w := words(v)
		Label("word")
		VPEXTRW(U8(0), w, Mem{Base: dst})
		VPSRLDQ(U8(2), w, w)
		ADDQ(U32(2), dst)
		DECQ(n)
		JNZ(LabelRef("word"))
	}
	Label("end")
	end()
}
