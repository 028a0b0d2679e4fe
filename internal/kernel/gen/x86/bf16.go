package x86

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Z is the vectors of 512 bits, for kernels that assign them by hand.
var Z = [...]reg.VecPhysical{
	reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
	reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
	reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
	reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
}

// DotBF16 adds to the float32 lanes of acc the products of pairs of bfloat16:
// VDPBF16PS, which neither avo nor the assembler knows. It is written as bytes,
// EVEX.512.F3.0F38.W0 52 /r, so registers are assigned by hand. Subnormal
// numbers, read or written, are zero to it.
func DotBF16(acc, x, y reg.VecPhysical) {
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
		Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []operand.Op{operand.U8(b)}})
	}
}
