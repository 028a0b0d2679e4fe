package tensor

// The ggml K formats: 256 values in sub-blocks of 16 or 32, whose scales (and
// minima) are small integers times the half-precision d (and dmin).
//
//	Q2_K  scales [16] (scale | min<<4), qs [64], d, dmin    q·(d·sc) - dmin·m
//	Q3_K  hmask [32], qs [64], scales [12], d               (q - 4)·(d·(sc - 32))
//	Q4_K  d, dmin, scales [12], qs [128]                    q·(d·sc) - dmin·m
//	Q5_K  d, dmin, scales [12], qh [32], qs [128]           q·(d·sc) - dmin·m
//	Q6_K  ql [128], qh [64], scales [16] int8, d            (q - 32)·(d·sc)
//
// With sub-blocks of 16 (2, 3 and 6 bits), the bit fields of a byte belong to
// values 32 apart. The decoders walk runs of 16 such bytes, two in each half
// of a block: run r of half h yields sub-blocks 8h+r, 8h+r+2, 8h+r+4, 8h+r+6.
//
// Steps and minima are exact, 11 significant bits times 6, so a platform may
// fuse their products.

func decodeQ2_K(dst []float32, src []byte) {
	for len(dst) >= 256 && len(src) >= 84 {
		y, b := (*[256]float32)(dst), (*[84]byte)(src)
		dst, src = dst[256:], src[84:]
		d, dmin := half(b[80:]), half(b[82:])
		for run := range 4 {
			h, r := run/2, run%2
			sc, qs := (*[7]byte)(b[8*h+r:]), (*[16]byte)(b[16+16*run:])
			step0, low0 := d*int8s[sc[0]&15], dmin*int8s[sc[0]>>4]
			step1, low1 := d*int8s[sc[2]&15], dmin*int8s[sc[2]>>4]
			step2, low2 := d*int8s[sc[4]&15], dmin*int8s[sc[4]>>4]
			step3, low3 := d*int8s[sc[6]&15], dmin*int8s[sc[6]>>4]
			out := (*[112]float32)(y[128*h+16*r:])
			for j, q := range qs {
				out[j] = float32(int8s[q&3]*step0) - low0
				out[j+32] = float32(int8s[q>>2&3]*step1) - low1
				out[j+64] = float32(int8s[q>>4&3]*step2) - low2
				out[j+96] = float32(int8s[q>>6]*step3) - low3
			}
		}
	}
}

func decodeQ3_K(dst []float32, src []byte) {
	for len(dst) >= 256 && len(src) >= 110 {
		y, b := (*[256]float32)(dst), (*[110]byte)(src)
		dst, src = dst[256:], src[110:]
		d, scales := half(b[108:]), scalesQ3_K((*[12]byte)(b[96:]))
		for run := range 4 {
			h, r := run/2, run%2
			sc, qs, hmask := (*[7]uint8)(scales[8*h+r:]), (*[16]byte)(b[32+16*run:]), (*[16]byte)(b[16*r:])
			step0, step1 := d*int8s[sc[0]-32], d*int8s[sc[2]-32]
			step2, step3 := d*int8s[sc[4]-32], d*int8s[sc[6]-32]
			out := (*[112]float32)(y[128*h+16*r:])
			for j, q := range qs { // the mask holds bit 2 of eight values 32 apart
				m := hmask[j] >> (4 * h & 7)
				out[j] = int8s[(q&3|m<<2&4)-4] * step0
				out[j+32] = int8s[(q>>2&3|m<<1&4)-4] * step1
				out[j+64] = int8s[(q>>4&3|m&4)-4] * step2
				out[j+96] = int8s[(q>>6|m>>1&4)-4] * step3
			}
		}
	}
}

// scalesQ3_K unpacks sixteen 6-bit scales: scale s has its low four bits in a
// nibble of byte s%8 and its high two bits in byte 8+s%4.
func scalesQ3_K(b *[12]byte) (scales [16]uint8) {
	for s := range 16 {
		low, high := b[s%8]>>(s/8*4)&15, b[8+s%4]>>(s/4*2)&3
		scales[s] = low | high<<4
	}
	return scales
}

// scaleMinK4 unpacks 6-bit scale and minimum s (of eight) of Q4_K and Q5_K:
// the first four fill the low six bits of bytes 0–3 and 4–7, the others take
// nibbles of bytes 8–11 and the two bits left free above.
func scaleMinK4(b *[12]byte, s int) (scale, low uint8) {
	if s < 4 {
		return b[s] & 63, b[s+4] & 63
	}
	return b[s+4]&15 | b[s-4]>>6<<4, b[s+4]>>4 | b[s]>>6<<4
}

func decodeQ4_K(dst []float32, src []byte) {
	for len(dst) >= 256 && len(src) >= 144 {
		y, b := (*[256]float32)(dst), (*[144]byte)(src)
		dst, src = dst[256:], src[144:]
		d, dmin, scales := half(b[:]), half(b[2:]), (*[12]byte)(b[4:])
		for s := range 4 { // low nibbles are sub-block 2s, high ones 2s+1
			sc0, m0 := scaleMinK4(scales, 2*s)
			sc1, m1 := scaleMinK4(scales, 2*s+1)
			step0, low0 := d*float32(sc0), dmin*float32(m0)
			step1, low1 := d*float32(sc1), dmin*float32(m1)
			qs, out := (*[32]byte)(b[16+32*s:]), (*[64]float32)(y[64*s:])
			for j, q := range qs {
				out[j] = float32(quant4[q&15]*step0) - low0
				out[j+32] = float32(quant4[q>>4]*step1) - low1
			}
		}
	}
}

func decodeQ5_K(dst []float32, src []byte) {
	for len(dst) >= 256 && len(src) >= 176 {
		y, b := (*[256]float32)(dst), (*[176]byte)(src)
		dst, src = dst[256:], src[176:]
		d, dmin, scales := half(b[:]), half(b[2:]), (*[12]byte)(b[4:])
		qh := (*[32]byte)(b[16:])
		for s := range 4 {
			sc0, m0 := scaleMinK4(scales, 2*s)
			sc1, m1 := scaleMinK4(scales, 2*s+1)
			step0, low0 := d*float32(sc0), dmin*float32(m0)
			step1, low1 := d*float32(sc1), dmin*float32(m1)
			qs, out := (*[32]byte)(b[48+32*s:]), (*[64]float32)(y[64*s:])
			for j, q := range qs {
				h := qh[j] >> (2 * s & 7)
				out[j] = float32(int8s[q&15|h<<4&16]*step0) - low0
				out[j+32] = float32(int8s[q>>4|h<<3&16]*step1) - low1
			}
		}
	}
}

func decodeQ6_K(dst []float32, src []byte) {
	for len(dst) >= 256 && len(src) >= 210 {
		y, b := (*[256]float32)(dst), (*[210]byte)(src)
		dst, src = dst[256:], src[210:]
		d := half(b[208:])
		for run := range 4 {
			h, r := run/2, run%2
			ql, qh := (*[48]byte)(b[64*h+16*r:]), (*[16]byte)(b[128+16*run:])
			sc := (*[7]byte)(b[192+8*h+r:])
			step0, step1, step2, step3 := d*int8s[sc[0]], d*int8s[sc[2]], d*int8s[sc[4]], d*int8s[sc[6]]
			out := (*[112]float32)(y[128*h+16*r:])
			for j, m := range qh {
				q, p := ql[j], ql[j+32]
				out[j] = int8s[(q&15|m<<4&48)-32] * step0
				out[j+32] = int8s[(p&15|m<<2&48)-32] * step1
				out[j+64] = int8s[(q>>4|m&48)-32] * step2
				out[j+96] = int8s[(p>>4|m>>2&48)-32] * step3
			}
		}
	}
}
