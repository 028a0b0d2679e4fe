package panel

import (
	"encoding/binary"

	"github.com/foretoken/foretoken/internal/tensor"
)

// group is a storage block of one row, taken apart: 32 values, or 256 with
// scales of two levels.
type group struct {
	codes  [Super * Block]uint8
	d, min uint16                   // as stored: the scale and minimum, or those of the second level
	scales [Super * Block / 16]byte // [blocks][subs]
	mins   [Super * Block / 16]byte
}

// split takes one storage block of d apart: of the formats that packWords does
// not take as they are. They are described in package tensor.
func (g *group) split(d tensor.DType, b []byte) {
	u16 := binary.LittleEndian.Uint16
	switch d {
	case tensor.Q4_1:
		g.d, g.min = u16(b), u16(b[2:])
		nibbles(g.codes[:32], b[4:20])
	case tensor.Q5_0:
		g.d = u16(b)
		nibbles(g.codes[:32], b[6:22])
		fifth(g.codes[:32], binary.LittleEndian.Uint32(b[2:]))
	case tensor.Q5_1:
		g.d, g.min = u16(b), u16(b[2:])
		nibbles(g.codes[:32], b[8:24])
		fifth(g.codes[:32], binary.LittleEndian.Uint32(b[4:]))
	case tensor.MXFP4:
		g.d = e8m0Half(b[0])
		nibbles(g.codes[:32], b[1:17])
	case tensor.Q2_K:
		g.splitQ2_K(b)
	case tensor.Q3_K:
		g.splitQ3_K(b)
	case tensor.Q4_K:
		g.d, g.min = u16(b), u16(b[2:])
		g.scalesK4(b[4:16])
		for s := range 4 {
			low, high := (*[32]uint8)(g.codes[64*s:]), (*[32]uint8)(g.codes[64*s+32:])
			for j, q := range (*[32]byte)(b[16+32*s:]) {
				low[j], high[j] = q&15, q>>4
			}
		}
	case tensor.Q5_K:
		g.d, g.min = u16(b), u16(b[2:])
		g.scalesK4(b[4:16])
		qh := (*[32]byte)(b[16:])
		for s := range 4 {
			low, high := (*[32]uint8)(g.codes[64*s:]), (*[32]uint8)(g.codes[64*s+32:])
			for j, q := range (*[32]byte)(b[48+32*s:]) {
				h := qh[j] >> (2 * s)
				low[j], high[j] = q&15|h<<4&16, q>>4|h<<3&16
			}
		}
	case tensor.Q6_K:
		g.d = u16(b[208:])
		copy(g.scales[:], b[192:208])
		for h := range 2 {
			ql, qh, out := (*[64]byte)(b[64*h:]), (*[32]byte)(b[128+32*h:]), (*[128]uint8)(g.codes[128*h:])
			for j, m := range qh {
				out[j] = ql[j]&15 | m<<4&48
				out[j+32] = ql[j+32]&15 | m<<2&48
				out[j+64] = ql[j]>>4 | m&48
				out[j+96] = ql[j+32]>>4 | m>>2&48
			}
		}
	case tensor.IQ4_XS:
		g.d = u16(b)
		high := u16(b[2:])
		for s := range Super {
			low := b[4+s/2] >> (s % 2 * 4) & 15
			g.scales[s] = low | uint8(high>>(2*s)&3<<4) - 32
			nibbles(g.codes[32*s:32*s+32], b[8+16*s:24+16*s])
		}
	}
}

// nibbles: byte j holds value j in its low and value j+16 in its high half.
func nibbles(codes []uint8, b []byte) {
	low, high := (*[16]uint8)(codes), (*[16]uint8)(codes[16:])
	for j, q := range (*[16]byte)(b) {
		low[j], high[j] = q&15, q>>4
	}
}

// fifth adds bit 4 of each value.
func fifth(codes []uint8, bits uint32) {
	for j := range codes {
		codes[j] |= uint8(bits>>j&1) << 4
	}
}

// e8m0Half is half the power of two that code stands for, as a bfloat16.
func e8m0Half(code uint8) uint16 {
	switch code {
	case 255:
		return 0x7fc0 // NaN
	case 0:
		return 0x0020 // 2^-128
	case 1:
		return 0x0040 // 2^-127
	}
	return uint16(code-1) << 7
}

func (g *group) splitQ2_K(b []byte) {
	g.d, g.min = binary.LittleEndian.Uint16(b[80:]), binary.LittleEndian.Uint16(b[82:])
	for i, s := range b[:16] {
		g.scales[i], g.mins[i] = s&15, s>>4
	}
	for h := range 2 {
		out := (*[128]uint8)(g.codes[128*h:])
		for j, q := range (*[32]byte)(b[16+32*h:]) {
			out[j], out[j+32], out[j+64], out[j+96] = q&3, q>>2&3, q>>4&3, q>>6
		}
	}
}

func (g *group) splitQ3_K(b []byte) {
	g.d = binary.LittleEndian.Uint16(b[108:])
	for s := range 16 {
		low, high := b[96+s%8]>>(s/8*4)&15, b[104+s%4]>>(s/4*2)&3
		g.scales[s] = low | high<<4 - 32
	}
	mask := (*[32]byte)(b)
	for h := range 2 {
		out := (*[128]uint8)(g.codes[128*h:])
		for j, q := range (*[32]byte)(b[32+32*h:]) {
			m := mask[j] >> (4 * h)
			out[j], out[j+32], out[j+64], out[j+96] = q&3|m<<2&4, q>>2&3|m<<1&4, q>>4&3|m&4, q>>6|m>>1&4
		}
	}
}

// scalesK4 unpacks the eight 6-bit scales and minima of Q4_K and Q5_K.
func (g *group) scalesK4(b []byte) {
	for s := range 4 {
		g.scales[s], g.mins[s] = b[s]&63, b[s+4]&63
		g.scales[s+4], g.mins[s+4] = b[s+8]&15|b[s]>>6<<4, b[s+8]>>4|b[s+4]>>6<<4
	}
}
