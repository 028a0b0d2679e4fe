package main

import (
	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// whole runs body for each vector of src, whose length is a multiple of one.
func (m *machine) whole(name, doc string, body func(x reg.VecVirtual, dst reg.GPVirtual)) {
	m.text(name, "func(dst []byte, src []float32)", doc)
	dst, src, n := base("dst"), base("src"), length("src")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	Label("loop")
	x := x86.Vec(m.width)
	VMOVUPS(Mem{Base: src}, x)
	body(x, dst)
	ADDQ(U32(uint32(m.bytes())), src)
	ADDQ(U32(uint32(m.bytes()/2)), dst)
	SUBQ(U32(uint32(m.lanes())), n)
	JNZ(LabelRef("loop"))
	Label("done")
	m.end()
}

func (m *machine) packF16() {
	m.whole("packF16", "rounds values to halves.", func(x reg.VecVirtual, dst reg.GPVirtual) {
		const nearestEven = 0
		VCVTPS2PH(U8(nearestEven), x, Mem{Base: dst})
	})
}

// packBF16 adds just less than half of the last place that stays, and one more
// where that place is odd.
func (m *machine) packBF16() {
	m.whole("packBF16", "rounds values to bfloat16.", func(x reg.VecVirtual, dst reg.GPVirtual) {
		odd, rounded := x86.Vec(m.width), x86.Vec(m.width)
		VPSRLD(U8(16), x, odd)
		VANDPS(x86.Broadcast(m.width, x86.Bits(1)), odd, odd)
		VPADDD(x86.Broadcast(m.width, x86.Bits(0x7fff)), x, rounded)
		if m.width == 512 {
			VPADDD(odd, rounded, rounded)
			nan := K()
			VCMPPS(U8(unordered), x, x, nan)
			VPORD_BCST(x86.Bits(1<<22), x, nan, rounded) // quiet
			VPSRLD(U8(16), rounded, rounded)
			VPMOVDW(rounded, Mem{Base: dst})
			return
		}
		VPADDD(odd, rounded, rounded)
		nan, quiet := YMM(), YMM()
		VCMPPS(U8(unordered), x, x, nan)
		VPOR(x86.Bits(1<<22), x, quiet)
		VBLENDVPS(nan, quiet, rounded, rounded)
		VPSRLD(U8(16), rounded, rounded)
		upper := XMM()
		VEXTRACTI128(U8(1), rounded, upper)
		VPACKUSDW(upper, rounded.(reg.Vec).AsX(), upper)
		VMOVUPS(upper, Mem{Base: dst})
	})
}

const unordered = 3 // predicate: one of the two is NaN
const ordered = 7   // predicate: neither is NaN

// roundBF16 rounds to bfloat16, of which float32 is the upper half. A NaN stays
// as it is.
func (m *machine) roundBF16(x []reg.VecVirtual) {
	for _, x := range x {
		rounded, number := x86.Vec(m.width), K()
		VCMPPS(U8(ordered), x, x, number)
		VPSRLD(U8(16), x, rounded)
		VPANDD_BCST(x86.Bits(1), rounded, rounded)
		VPADDD_BCST(x86.Bits(0x7fff), rounded, rounded)
		VPADDD(x, rounded, rounded)
		VPANDD_BCST(x86.Bits(0xffff0000), rounded, number, x)
	}
}

// packQ8 quantises blocks of 32 values: a scale and codes nearest to value ÷
// scale, as it is stored.
func (m *machine) packQ8() {
	m.text("packQ8", "func(dst []byte, src []float32)", "quantises blocks of 32 values.")
	dst, src, n := base("dst"), base("src"), length("src")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	Label("loop")
	x, size := x86.Vecs(m.width, m.vectors()), x86.Vecs(m.width, m.vectors())
	magnitude := x86.Broadcast(m.width, x86.Bits(0x7fffffff))
	for i := range x {
		VMOVUPS(Mem{Base: src, Disp: m.bytes() * i}, x[i])
		VANDPS(magnitude, x[i], size[i])
	}
	// As integers, magnitudes sort as they do as values, and NaN above them.
	peak := m.tree(size, VPMAXUD)
	code, stored, scale := XMM(), XMM(), XMM()
	VDIVSS(x86.Float(127), peak, scale)
	VCVTPS2PH(U8(0), scale, code)
	VCVTPH2PS(code, stored)
	// Where halves are subnormal, the scale can have shrunk so far that 127 steps
	// no longer reach the peak.
	c, reach := GP32(), XMM()
	VMOVD(code, c)
	VMULSS(x86.Float(127.4), stored, reach)
	VUCOMISS(peak, reach)
	JAE(LabelRef("reached")) // and not for NaN
	JP(LabelRef("reached"))
	INCL(c)
	VMOVD(c, code)
	VCVTPH2PS(code, stored)
	Label("reached")
	MOVW(c.As16(), Mem{Base: dst})
	one, inverse := XMM(), XMM()
	VMOVSS(x86.Float(1), one)
	VDIVSS(stored, one, inverse)
	TESTL(U32(0x7fff), c)
	JNZ(LabelRef("scaled"))
	VXORPS(inverse, inverse, inverse)
	Label("scaled")
	by := x86.Vec(m.width)
	VBROADCASTSS(inverse, by)
	integers := x86.Broadcast(m.width, x86.Float(1.5*(1<<23)))
	for i := range x {
		VMULPS(by, x[i], x[i])
		VADDPS(integers, x[i], x[i]) // rounds; the last byte is the code
	}
	if m.width == 512 {
		for i := range x {
			VPMOVDB(x[i], Mem{Base: dst, Disp: 2 + 16*i})
		}
	} else {
		for i := range x {
			VPSLLD(U8(24), x[i], x[i])
			VPSRAD(U8(24), x[i], x[i])
		}
		a, b := YMM(), YMM()
		VPACKSSDW(x[1], x[0], a)
		VPACKSSDW(x[3], x[2], b)
		VPACKSSWB(b, a, a)
		order := YMM() // packing went by halves of the registers
		VMOVUPS(x86.Table("packedOrder", 0|4<<32, 1|5<<32, 2|6<<32, 3|7<<32), order)
		VPERMD(a, order, a)
		VMOVUPS(a, Mem{Base: dst, Disp: 2})
	}
	ADDQ(U32(4*32), src)
	ADDQ(U32(2+32), dst)
	SUBQ(U32(32), n)
	JNZ(LabelRef("loop"))
	Label("done")
	m.end()
}
