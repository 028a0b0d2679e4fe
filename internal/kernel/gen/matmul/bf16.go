package main

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/kernel/panel"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// dotBF16 multiplies a panel of bfloat16 weights with T rows of bfloat16
// activations, two columns an instruction. The assembler does not know
// VDPBF16PS, so registers are assigned by hand and its bytes written out.
func dotBF16(T int) {
	function(fmt.Sprintf("dotBF16T%dAVX512", T), dotSignature,
		fmt.Sprintf("multiplies a panel of bfloat16 with %d rows of bfloat16", T))
	w := Load(Param("w"), GP64())
	n := Load(Param("groups"), GP64())
	a := newRows(Load(Param("a"), GP64()), T, "aStride")
	pf := newPrefetcher(&panel.Kinds[panel.BF16], T)
	acc := zmm[:2*T]
	w0, w1, b := zmm[2*maxFloat], zmm[2*maxFloat+1], zmm[2*maxFloat+2]
	for _, v := range acc {
		VPXORD(v, v, v)
	}
	Label("loop")
	for pair := range panel.Block / 2 {
		VMOVDQU64(Mem{Base: w, Disp: 2 * line * pair}, w0)
		VMOVDQU64(Mem{Base: w, Disp: 2*line*pair + line}, w1)
		pf.line(2 * pair)
		pf.line(2*pair + 1)
		for t := range T {
			VPBROADCASTD(a.at(t, 4*pair), b)
			vdpbf16ps(acc[t], w0, b)
			vdpbf16ps(acc[T+t], w1, b)
		}
	}
	ADDQ(U32(uint32(panel.Kinds[panel.BF16].GroupBytes())), w)
	ADDQ(U32(2*panel.Block), a.base)
	pf.advance()
	DECQ(n)
	JNZ(LabelRef("loop"))
	store(acc, T)
}

var zmm = [...]VecPhysical{
	Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15,
	Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27, Z28, Z29, Z30, Z31,
}

// vdpbf16ps writes EVEX.512.F3.0F38.W0 52 /r: acc += x·y over pairs.
func vdpbf16ps(acc, x, y VecPhysical) {
	d, v, m := byte(acc.ID().Index()), byte(x.ID().Index()), byte(y.ID().Index())
	inverted := func(r byte, bit, at int) byte { return (^r >> bit & 1) << at }
	bytes := []byte{
		0x62,
		inverted(d, 3, 7) | inverted(m, 4, 6) | inverted(m, 3, 5) | inverted(d, 4, 4) | 0x02,
		(^v&15)<<3 | 0x04 | 0x02,
		0x40 | inverted(v, 4, 3),
		0x52,
		0xc0 | d&7<<3 | m&7,
	}
	for _, b := range bytes {
		Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []Op{U8(b)}})
	}
}
