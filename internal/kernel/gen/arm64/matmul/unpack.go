package main

import (
	"github.com/foretoken/foretoken/internal/kernel/panel"

	. "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"
)

const (
	column   = 4 * panel.Rows // bytes of a decoded column
	unpacked = column * panel.Block
)

const unpackSignature = "func(dst *float32, src *byte, groups uint64)"

// unpack decodes groups of a panel to [columns][32 rows] of float32, with the
// operations of the file's decoder.
func unpack(k *panel.Kind) {
	Function("unpack"+k.Name+"NEON", unpackSignature, "decodes groups of a panel of "+k.Name+".")
	dst, n := Param("dst"), Param("groups")
	c := newCodes(k, "src")
	var offset V
	if k.Offset != 0 && !signed(k) {
		offset = NewV()
		MOVI(offset, uint8(k.Offset))
	}
	eight := func(sub int) {
		scale := c.scale(sub)
		var low pair
		if k.Min {
			low = c.min(sub)
		}
		x := NewV()
		c.each(sub, func(g int, v pair) {
			for h, v := range v {
				if k.Offset != 0 && !signed(k) {
					SUB16B(v, v, offset)
				}
				for j := range 4 {
					if j < 3 {
						Shift4S(x, v, 8*(3-j))
						SSHR4S(x, x, 24)
					} else {
						SSHR4S(x, v, 24)
					}
					SCVTF(x, x)
					FMUL(x, x, scale[h])
					switch {
					case k.Min && k.Scale.TwoLevel():
						FSUB(x, x, low[h])
					case k.Min:
						FADD(x, x, low[h])
					}
					STR(x, dst, column*(4*g+j)+16*h)
				}
			}
		})
	}
	c.blocks(n, func() {}, func() {
		for sub := range k.Subs() {
			Scope(func() { eight(sub) })
		}
		Add(dst, 32)
	}, func() { Add(dst, unpacked-column) })
	Return()
}

// unpackF8 decodes e4m3. Its exponent and mantissa, moved to where float16 has
// them, are 2⁻⁸ times the value, subnormal numbers included. Magnitude 0x7f is
// NaN.
func unpackF8(k *panel.Kind) {
	Function("unpackF8NEON", unpackSignature, "decodes blocks of a panel of F8.")
	dst, src, n := Param("dst"), Param("src"), Param("groups")
	codes := NewR()
	magnitude, clear14, scale256 := NewV(), NewV(), NewV()
	MOVI(magnitude, 0x7f)
	Broadcast(clear14, 0xbfffbfff)
	Broadcast(scale256, (127+8)<<23)
	Repeat("block", n, func() {
		Asm("ADD $%d, %v, %v", 4*panel.Rows, src, codes)
		Times("rows", panel.Rows/8, func() {
			scale, v, nan := newPair(), newPair(), newPair()
			LDPPost(scale[0], scale[1], src, 32)
			Times("columns", panel.Block, func() {
				LDRD(v[0], codes, 0)
				AND(nan[0], v[0], magnitude)
				CMEQ16B(nan[0], nan[0], magnitude)
				SXTLB(nan[0], nan[0])
				SXTL2H(nan[1], nan[0])
				SXTLH(nan[0], nan[0])
				SXTLB(v[0], v[0])
				Shift8H(v[0], v[0], 7)
				AND(v[0], v[0], clear14)
				FCVTL2(v[1], v[0])
				FCVTL(v[0], v[0])
				for h := range v {
					FMUL(v[h], v[h], scale256)
					ORR(v[h], v[h], nan[h])
					FMUL(v[h], v[h], scale[h])
				}
				STP(v[0], v[1], dst, 0)
				Add(codes, panel.Rows)
				Add(dst, column)
			})
			Add(codes, 8-panel.Rows*panel.Block)
			Add(dst, 32-unpacked)
		})
		Add(src, k.GroupBytes()-column)
		Add(dst, unpacked-column)
	})
	Return()
}
