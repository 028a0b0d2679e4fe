package tensor

import "encoding/binary"

// Formats whose four-bit quants index a table.
//
//	IQ4_NL  32 values: d f16, qs [16]                                    table[q]·d
//	IQ4_XS  256 values: d f16, scales_h u16, scales_l [4], qs [128]      table[q]·(d·(sc - 32)), sc for 32 values
//	MXFP4   32 values: e8m0, qs [16]                                     e2m1[q]·2^(e-127)

// iq4nl is ggml's non-linear spacing, finer around zero where most weights lie.
var iq4nl = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// decodeNibbles writes table[q]·d for 16 bytes of quants, in the legacy order.
func decodeNibbles(y *[32]float32, qs *[16]byte, table *[16]float32, d float32) {
	for j, q := range qs {
		y[j] = table[q&15] * d
		y[j+16] = table[q>>4] * d
	}
}

func decodeIQ4_NL(dst []float32, src []byte) {
	for len(dst) >= 32 && len(src) >= 18 {
		y, b := (*[32]float32)(dst), (*[18]byte)(src)
		dst, src = dst[32:], src[18:]
		decodeNibbles(y, (*[16]byte)(b[2:]), &iq4nl, half(b[:]))
	}
}

func decodeIQ4_XS(dst []float32, src []byte) {
	for len(dst) >= 256 && len(src) >= 136 {
		y, b := (*[256]float32)(dst), (*[136]byte)(src)
		dst, src = dst[256:], src[136:]
		d, high, low := half(b[:]), binary.LittleEndian.Uint16(b[2:]), (*[4]byte)(b[4:])
		for s := range 8 {
			scale := int32(low[s/2]>>(s%2*4)&15) | int32(high>>(2*s)&3<<4)
			decodeNibbles((*[32]float32)(y[32*s:]), (*[16]byte)(b[8+16*s:]), &iq4nl, d*float32(scale-32))
		}
	}
}

// The scale code 255 is NaN as in F8E8M0, and so is the whole block.
func decodeMXFP4(dst []float32, src []byte) {
	for len(dst) >= 32 && len(src) >= 17 {
		y, b := (*[32]float32)(dst), (*[17]byte)(src)
		dst, src = dst[32:], src[17:]
		decodeNibbles(y, (*[16]byte)(b[1:]), &f4e2m1, f8e8m0[b[0]])
	}
}
