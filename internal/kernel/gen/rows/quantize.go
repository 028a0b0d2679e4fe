package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
)

// A QBlock fills a cache line: in its 128-bit quarters are
// {Scale, Neg all, first, last}, {Sum all, first, last, 0} and Q twice.
const (
	qblockBytes = 64
	qblock      = 32 // values
)

// Blocks are quantised where the greatest |x| is between 2⁻¹⁰⁰ and the
// greatest finite number, as bits.
const (
	tiny     = 0x0d800000
	infinity = 0x7f800000
)

// byteOffset makes bytes unsigned, so that VPSADBW sums them.
const byteOffset = 128

// What byteOffset adds to {0, sum of all, of the first half, of the last}.
var sumBias = []uint64{qblock * byteOffset << 32, qblock/2*byteOffset<<32 | qblock/2*byteOffset}

// Shuffles of 128 bits within one vector: swap its halves, swap the words of
// each half.
const (
	swapHalves = 0b01_00_11_10
	swapWords  = 0b10_11_00_01
)

// quantize writes blocks one by one.
func quantize() {
	text("quantize", 256, "func(dst *byte, x []float32)", "quantises x, 32 values to each QBlock at dst.")
	x, n := pointer("x"), length("x")
	dst := Load(Param("dst"), GP64())
	SHRQ(U8(5), n) // blocks
	c127 := x86.Broadcast(256, x86.Float(127))
	absolute := x86.Broadcast(256, x86.Bits(0x7fffffff))
	offset := x86.Broadcast(256, x86.Bits(byteOffset*0x01010101))
	bias, order, zero := XMM(), YMM(), YMM()
	VMOVDQU(x86.Table("sumBias", sumBias...), bias)
	// Packing works within 128 bits, which leaves groups of four bytes so.
	VMOVDQU(x86.Table("packedOrder", 4<<32|0, 5<<32|1, 6<<32|2, 7<<32|3), order)
	VPXOR(zero, zero, zero)

	Label("block")
	TESTQ(n, n)
	JZ(LabelRef("blocksDone"))
	v, abs := x86.Vecs(256, 4), x86.Vecs(256, 4)
	for i, v := range v {
		VMOVUPS(Mem{Base: x, Disp: 32 * i}, v)
	}
	for i, v := range v {
		VANDPS(absolute, v, abs[i])
	}
	// As integers, infinities and then NaNs are the greatest.
	VPMAXSD(abs[1], abs[0], abs[0])
	VPMAXSD(abs[3], abs[2], abs[2])
	VPMAXSD(abs[2], abs[0], abs[0])
	amax, t := abs[0].AsX(), XMM()
	VEXTRACTI128(U8(1), abs[0], t)
	VPMAXSD(t, amax, amax)
	for _, swap := range []uint8{swapHalves, swapWords} {
		VPSHUFD(U8(swap), amax, t)
		VPMAXSD(t, amax, amax)
	}
	bits := GP32()
	VMOVD(amax, bits)
	SUBL(U32(tiny), bits)
	CMPL(bits, U32(infinity-tiny))
	JAE(LabelRef("special"))

	scale, inv := XMM(), YMM()
	VDIVPS(c127.AsX(), amax, scale)
	VDIVPS(amax, c127.AsX(), amax)
	VBROADCASTSS(amax, inv)
	// |x|·inv is at most 127·(1+2⁻²³), which rounds to 127: nothing is clamped.
	for _, v := range v {
		VMULPS(inv, v, v)
		VCVTPS2DQ(v, v)
	}
	q, sum := v[0], YMM()
	VPACKSSDW(v[1], v[0], v[0])
	VPACKSSDW(v[3], v[2], v[2])
	VPACKSSWB(v[2], v[0], q)
	VPERMD(q, order, q)
	VMOVDQU(q, Mem{Base: dst, Disp: qblockBytes / 2})

	VPXOR(offset, q, q)
	VPSADBW(zero, q, sum) // of eight values each
	VPSHUFD(U8(swapHalves), sum, q)
	VPADDD(q, sum, sum)
	first, last, all := sum.AsX(), XMM(), XMM()
	VEXTRACTI128(U8(1), sum, last)
	neg, sums := header(scale, first, last, all, bias)
	VBLENDPS(U8(1), scale, neg, neg)
	VMOVUPS(neg, Mem{Base: dst})
	VMOVUPS(sums, Mem{Base: dst, Disp: 16})

	Label("nextBlock")
	ADDQ(U32(4*qblock), x)
	ADDQ(U32(qblockBytes), dst)
	DECQ(n)
	JMP(LabelRef("block"))

	Label("special") // all zero, but for Scale and Sum of a block with a NaN or an infinity
	for i := range 2 {
		VMOVUPS(zero, Mem{Base: dst, Disp: 32 * i})
	}
	VMOVD(amax, bits)
	CMPL(bits, U32(infinity))
	JB(LabelRef("nextBlock"))
	MOVL(U32(0x7fc00000), bits)
	for _, at := range []int{0, 16, 20, 24} {
		MOVL(bits, Mem{Base: dst, Disp: at})
	}
	JMP(LabelRef("nextBlock"))
	Label("blocksDone")
	end()
}

// header forms the first two quarters of blocks, but for Scale, one in each 128
// bits, from their scale and the offset sums of Q's halves, 64-bit values
// twice.
func header(scale, first, last, all reg.Register, bias Op) (neg, sums reg.Register) {
	VPADDD(first, last, all)
	VPUNPCKLDQ(last, first, first)
	VPSLLQ(U8(32), all, all)
	VPUNPCKLQDQ(first, all, all) // 0, all, first, last

	neg, sums = last, first
	VPSUBD(bias, all, sums)
	VPSUBD(all, bias, neg)
	VCVTDQ2PS(sums, sums)
	VMULPS(scale, sums, sums)
	VPSRLDQ(U8(4), sums, sums)
	return neg, sums
}

// quantizeFours writes four blocks at a time while there are as many and none
// is special, and returns how many it wrote. From a block's values to its
// header leads a chain of a hundred cycles, which is longer than a processor
// looks ahead: the maxima of the next four blocks are found beside it.
func quantizeFours() {
	const width = 512
	text("quantizeFours", width, "func(dst *byte, x []float32) (blocks int)", "quantises x by four blocks, up to those that have special values.")
	x, left, done := pointer("x"), length("x"), GP64()
	dst := Load(Param("dst"), GP64())
	SHRQ(U8(5), left) // blocks
	XORQ(done, done)
	c127 := x86.Broadcast(width, x86.Float(127))
	absolute := x86.Broadcast(width, x86.Bits(0x7fffffff))
	offset := x86.Broadcast(width, x86.Bits(byteOffset*0x01010101))
	least, span := x86.Broadcast(width, x86.Bits(tiny)), x86.Broadcast(width, x86.Bits(infinity-tiny))
	zero, bias, order := ZMM(), ZMM(), ZMM()
	VPXORD(zero, zero, zero)
	VBROADCASTI32X4(x86.Table("sumBias", sumBias...), bias)
	// Packing works within 128 bits, which leaves groups of four bytes so.
	VMOVDQU32(x86.Table("packedOrders", 4<<32|0, 12<<32|8, 5<<32|1, 13<<32|9, 6<<32|2, 14<<32|10, 7<<32|3, 15<<32|11), order)
	scales, bits := K(), GP32()
	MOVL(U32(0x1111), bits)
	KMOVW(bits, scales)

	amax, special := ZMM(), K()
	// maxima sets the 128 bits i of amax to the greatest |x| of block i.
	maxima := func(at int) {
		m := x86.Vecs(width, 4)
		for i, m := range m {
			t := ZMM()
			VPANDD(Mem{Base: x, Disp: at + 128*i}, absolute, m)
			VPANDD(Mem{Base: x, Disp: at + 128*i + 64}, absolute, t)
			VPMAXSD(t, m, m)
		}
		fold := func(a, b, to reg.VecVirtual, low, high uint8) {
			t := ZMM()
			VSHUFI32X4(U8(low), b, a, t)
			VSHUFI32X4(U8(high), b, a, to)
			VPMAXSD(t, to, to)
		}
		fold(m[0], m[1], m[0], 0b01_00_01_00, 0b11_10_11_10)
		fold(m[2], m[3], m[2], 0b01_00_01_00, 0b11_10_11_10)
		fold(m[0], m[2], amax, 0b10_00_10_00, 0b11_01_11_01)
		t := ZMM()
		for _, swap := range []uint8{swapHalves, swapWords} {
			VPSHUFD(U8(swap), amax, t)
			VPMAXSD(t, amax, amax)
		}
		VPSUBD(least, amax, t)
		const notLess = 5
		VPCMPUD(U8(notLess), span, t, special)
	}

	CMPQ(left, U8(4))
	JB(LabelRef("rest"))
	maxima(0)
	Label("four")
	KORTESTW(special, special)
	JNZ(LabelRef("rest"))
	scale, inv := ZMM(), ZMM()
	VDIVPS(amax, c127, inv)
	VDIVPS(c127, amax, scale)
	SUBQ(U8(4), left)
	CMPQ(left, U8(4))
	JB(LabelRef("last"))
	maxima(4 * 4 * qblock)
	Label("last")

	q, sum := x86.Vecs(width, 2), x86.Vecs(width, 2) // of two blocks each
	for i, q := range q {
		v := x86.Vecs(width, 4)
		for j := range 2 {
			t, block := ZMM(), 2*i+j
			VSHUFF32X4(U8(block*0b01_01_01_01), inv, inv, t)
			for half, v := range v[2*j : 2*j+2] {
				VMULPS(Mem{Base: x, Disp: 128*block + 64*half}, t, v)
				VCVTPS2DQ(v, v)
			}
			VPACKSSDW(v[2*j+1], v[2*j], v[2*j])
		}
		VPACKSSWB(v[2], v[0], q)
		VPERMD(q, order, q)
		t := ZMM()
		VPXORD(offset, q, t)
		VPSADBW(zero, t, sum[i])
		VPSHUFD(U8(swapHalves), sum[i], t)
		VPADDD(t, sum[i], sum[i])
	}
	first, last, all := ZMM(), ZMM(), ZMM()
	VSHUFI32X4(U8(0b10_00_10_00), sum[1], sum[0], first)
	VSHUFI32X4(U8(0b11_01_11_01), sum[1], sum[0], last)
	neg, sums := header(scale, first, last, all, bias)
	VMOVAPS(scale, scales, neg)
	for i, half := range []uint8{0b01_00_01_00, 0b11_10_11_10} {
		h, line := ZMM(), ZMM()
		VSHUFI32X4(U8(half), sums, neg, h) // two Neg, two Sum
		VSHUFI32X4(U8(0b01_00_10_00), q[i], h, line)
		VSHUFI32X4(U8(0b11_10_11_01), q[i], h, h)
		VMOVUPS(line, Mem{Base: dst, Disp: 2 * i * qblockBytes})
		VMOVUPS(h, Mem{Base: dst, Disp: (2*i + 1) * qblockBytes})
	}
	ADDQ(U32(4*4*qblock), x)
	ADDQ(U32(4*qblockBytes), dst)
	ADDQ(U8(4), done)
	CMPQ(left, U8(4))
	JAE(LabelRef("four"))
	Label("rest")
	Store(done, Return("blocks"))
	end()
}
