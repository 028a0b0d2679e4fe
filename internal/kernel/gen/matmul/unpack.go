package main

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/kernel/panel"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// unpack decodes blocks of a panel to floats [columns][32 rows], for products
// with float activations. It computes what the plain decoder computes.
func unpack(k *panel.Kind) {
	function(fmt.Sprintf("unpack%sAVX512", k.Name), "func(dst *float32, src *byte, groups uint64)",
		fmt.Sprintf("decodes groups of a %s panel", k.Name))
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("groups"), GP64())
	column := func(col, h int) Mem { return Mem{Base: dst, Disp: 2*line*col + line*h} }
	if k.Quantised() {
		unpackCodes(k, dst, src, n, column)
	} else {
		unpackF8(k, dst, src, n, column)
	}
	VZEROUPPER()
	RET()
}

const unpackedBytes = 4 * panel.Rows * panel.Block

func unpackCodes(k *panel.Kind, dst, src, n Register, column func(col, h int) Mem) {
	c := newCodes(k, src)
	low8 := broadcast32(0xff)
	offset := broadcast32(uint32(k.Offset))
	c.blocks(n, func() {
		for sub := range k.Subs() {
			groups := 8 / k.Subs()
			for h := range 2 {
				scale := c.scale(sub, h)
				var low VecVirtual
				if k.Min {
					low = c.min(sub, h)
				}
				for g := sub * groups; g < (sub+1)*groups; g++ {
					v := c.operand(g, h)
					for j := range 4 {
						x := ZMM()
						VPSRLD(U8(8*j), v, x)
						VPANDD(low8, x, x)
						if k.Offset != 0 {
							VPSUBD(offset, x, x)
						}
						VCVTDQ2PS(x, x)
						VMULPS(scale, x, x)
						switch {
						case k.Min && k.Scale.TwoLevel():
							VSUBPS(low, x, x)
						case k.Min:
							VADDPS(low, x, x)
						}
						VMOVUPS(x, column(4*g+j, h))
					}
				}
			}
		}
		ADDQ(U32(unpackedBytes), dst)
	})
}

// unpackF8 decodes e4m3: sign, exponent and mantissa moved to where float32 has
// them are 2^-120 times the value, subnormal numbers included. Magnitude 0x7f
// is NaN.
func unpackF8(k *panel.Kind, dst, src, n Register, column func(col, h int) Mem) {
	magnitude, sign := broadcast32(0x7f), broadcast32(0x80000000)
	nan, scale120 := broadcast32(0x7fc00000), broadcast32(247<<23)
	Label("loop")
	for h := range 2 {
		scale := ZMM()
		VMOVUPS(Mem{Base: src, Disp: line * h}, scale)
		for col := range panel.Block {
			c, x := ZMM(), ZMM()
			isNaN := K()
			VPMOVZXBD(Mem{Base: src, Disp: 4*panel.Rows + panel.Rows*col + 16*h}, c)
			VPANDD(magnitude, c, x)
			VPCMPEQD(magnitude, x, isNaN)
			VPSLLD(U8(20), x, x)
			VMULPS(scale120, x, x)
			VMOVDQA32(nan, isNaN, x)
			VPSLLD(U8(24), c, c)
			VPTERNLOGD(U8(0xf8), sign, c, x)
			VMULPS(scale, x, x)
			VMOVUPS(x, column(col, h))
		}
	}
	ADDQ(U32(uint32(k.GroupBytes())), src)
	ADDQ(U32(unpackedBytes), dst)
	DECQ(n)
	JNZ(LabelRef("loop"))
}
