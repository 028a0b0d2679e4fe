package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
)

// peakBits compares magnitudes as integers.
func peakBits(width int) {
	text("peakBits", width, "func(x []float32) uint32", "returns the greatest magnitude of x as bits.")
	x, n := pointer("x"), length("x")
	lanes := width / 32
	magnitude := x86.Broadcast(width, x86.Bits(math.MaxInt32))
	most := x86.Vecs(width, 2)
	for _, m := range most {
		zero(m)
	}
	take := func(v, most reg.VecVirtual) {
		and(width, magnitude, v, v)
		VPMAXUD(v, most, most)
	}
	v := x86.Vecs(width, 2)

	Label("pairs")
	CMPQ(n, U32(uint32(2*lanes)))
	JB(LabelRef("single"))
	for i, v := range v {
		VMOVUPS(Mem{Base: x, Disp: width / 8 * i}, v)
		take(v, most[i])
	}
	ADDQ(U32(uint32(2*width/8)), x)
	SUBQ(U32(uint32(2*lanes)), n)
	JMP(LabelRef("pairs"))

	Label("single")
	CMPQ(n, U32(uint32(lanes)))
	JB(LabelRef("tail"))
	VMOVUPS(Mem{Base: x}, v[0])
	take(v[0], most[0])
	ADDQ(U32(uint32(width/8)), x)
	SUBQ(U32(uint32(lanes)), n)

	Label("tail")
	x86.NewTail(width, n).Load(Mem{Base: x}, v[0])
	take(v[0], most[0])
	VPMAXUD(most[1], most[0], most[0])

	y, m, other := most[0].AsY(), most[0].AsX(), YMM()
	if width == 512 {
		VEXTRACTI64X4(U8(1), most[0], other)
		VPMAXUD(other, y, y)
	}
	VEXTRACTI128(U8(1), y, other.AsX())
	VPMAXUD(other.AsX(), m, m)
	for _, order := range []uint8{0b01_00_11_10, 0b10_11_00_01} {
		VPSHUFD(U8(order), m, other.AsX())
		VPMAXUD(other.AsX(), m, m)
	}
	peak := GP32()
	VMOVD(m, peak)
	Store(peak, ReturnIndex(0))
	end()
}

// round adds 1.5·2²³ steps of the format and subtracts them, which leaves
// whole steps.
func round(width int) {
	text("round", width, "func(x []float32, inv, scale float32, least, steps uint32)",
		"rounds x·inv to steps that follow the exponent, no less than least, and multiplies by scale.")
	inv, scale := broadcast(width, "inv"), broadcast(width, "scale")
	least, steps := broadcast(width, "least"), broadcast(width, "steps")
	exponent, sign := x86.Broadcast(width, x86.Bits(0xff<<23)), x86.Broadcast(width, x86.Bits(1<<31))
	x := pointer("x")
	x86.Elements(width, 4, length("x"), x, []reg.GPVirtual{x}, func(v [][]reg.VecVirtual) {
		for _, x := range v[0] {
			shift := x86.Vec(width)
			VMULPS(inv, x, x)
			and(width, exponent, x, shift)
			VPMAXUD(least, shift, shift)
			VPADDD(steps, shift, shift)
			rounded := x86.Vec(width)
			VADDPS(shift, x, rounded)
			VSUBPS(shift, rounded, rounded)
			VANDPS(sign, x, x) // -0 stays
			VORPS(x, rounded, x)
			VMULPS(scale, x, x)
		}
	})
	end()
}

func clamp(width int) {
	text("clamp", width, "func(x []float32, low, high float32)", "bounds x; a NaN stays.")
	low, high := broadcast(width, "low"), broadcast(width, "high")
	x := pointer("x")
	x86.Elements(width, 4, length("x"), x, []reg.GPVirtual{x}, func(v [][]reg.VecVirtual) {
		for _, x := range v[0] {
			// Both return the first operand here, x, if it is NaN.
			VMAXPS(x, low, x)
			VMINPS(x, high, x)
		}
	})
	end()
}
