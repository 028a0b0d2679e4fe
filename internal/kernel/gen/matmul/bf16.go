package main

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
	"github.com/foretoken/foretoken/internal/kernel/panel"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// dotBF16 multiplies a panel of bfloat16 weights with T rows of bfloat16
// activations, two columns an instruction. Registers are assigned by
// hand: see x86.DotBF16.
func dotBF16(T int) {
	function(fmt.Sprintf("dotBF16T%dAVX512", T), dotSignature,
		fmt.Sprintf("multiplies a panel of bfloat16 with %d rows of bfloat16", T))
	w := Load(Param("w"), GP64())
	n := Load(Param("groups"), GP64())
	a := newRows(Load(Param("a"), GP64()), T, "aStride")
	pf := newPrefetcher(&panel.Kinds[panel.BF16], T)
	acc := x86.Z[:2*T]
	w0, w1, b := x86.Z[2*maxFloat], x86.Z[2*maxFloat+1], x86.Z[2*maxFloat+2]
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
			x86.DotBF16(acc[t], w0, b)
			x86.DotBF16(acc[T+t], w1, b)
		}
	}
	ADDQ(U32(uint32(panel.Kinds[panel.BF16].GroupBytes())), w)
	ADDQ(U32(2*panel.Block), a.base)
	pf.advance()
	DECQ(n)
	JNZ(LabelRef("loop"))
	store(acc, T)
}
