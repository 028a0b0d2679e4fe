package main

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/kernel/panel"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const unpackedBytes = 4 * panel.Rows * panel.Block

// unpack decodes blocks of a panel to floats [columns][32 rows], for products
// with float activations. It computes what the plain decoder computes.
func unpack(k *panel.Kind) {
	function(fmt.Sprintf("unpack%sAVX2", k.Name), "func(dst *float32, src *byte, groups uint64)",
		fmt.Sprintf("decodes groups of a %s panel", k.Name))
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("groups"), GP64())
	if k.Quantised() {
		unpackCodes(k, dst, src, n)
	} else {
		unpackF8(k, dst, src, n)
	}
	end()
}

// cell is where a column of a step's rows goes.
func cell(s steps, dst Register, col int) Mem { return s.at(dst, 4, 4*panel.Rows*col, 0) }

func unpackCodes(k *panel.Kind, dst, src, n Register) {
	scale, low, w, x := ymm(), ymm(), ymm(), ymm()
	c := newCodes(k, src, false)
	low8, offset := constant(0xff), constant(uint32(k.Offset))
	c.blocks(n, func() {
		walk(1, func(s steps) {
			c.step = s
			for sub := range k.Subs() {
				c.scale(sub, 0, scale, x)
				if k.Min {
					c.min(sub, 0, low, x)
				}
				groups := 8 / k.Subs()
				for g := sub * groups; g < (sub+1)*groups; g++ {
					c.operand(g, 0, w, x)
					for j := range 4 {
						VPSRLD(U8(8*j), w, x)
						VPAND(low8, x, x)
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
						VMOVUPS(x, cell(s, dst, 4*g+j))
					}
				}
			}
		})
		ADDQ(U32(unpackedBytes), dst)
	})
}

// unpackF8 decodes e4m3: sign, exponent and mantissa moved to where float32 has
// them are 2^-120 times the value, subnormal numbers included. Magnitude 0x7f
// is NaN.
func unpackF8(k *panel.Kind, dst, src, n Register) {
	scale, c, x, isNaN := ymm(), ymm(), ymm(), ymm()
	magnitude, scale120 := constant(0x7f), constant(247<<23)
	Label("loop")
	walk(1, func(s steps) {
		VMOVUPS(s.at(src, 4, 0, 0), scale)
		for col := range panel.Block {
			VPMOVZXBD(s.at(src, 1, 4*panel.Rows+panel.Rows*col, 0), c)
			VPAND(magnitude, c, x)
			VPCMPEQD(magnitude, x, isNaN)
			VPSLLD(U8(20), x, x)
			VMULPS(scale120, x, x)
			VPSRLD(U8(7), c, c)
			VPSLLD(U8(31), c, c)
			VPOR(c, x, x)
			VPOR(isNaN, x, x) // all ones is a NaN too
			VMULPS(scale, x, x)
			VMOVUPS(x, cell(s, dst, col))
		}
	})
	ADDQ(U32(uint32(k.GroupBytes())), src)
	ADDQ(U32(unpackedBytes), dst)
	DECQ(n)
	JNZ(LabelRef("loop"))
}
