package tensor

import (
	"encoding/binary"
)

// The legacy ggml formats: 32 values share a half-precision scale d and, in
// the _1 formats, a minimum m. Byte j of the quants holds value j in its low
// and value j+16 in its high nibble.
//
//	Q4_0  d f16, qs [16]                        (q - 8)·d
//	Q4_1  d f16, m f16, qs [16]                  q·d + m
//	Q5_0  d f16, qh u32, qs [16]                (q - 16)·d, bit 4 of value j is bit j of qh
//	Q5_1  d f16, m f16, qh u32, qs [16]          q·d + m
//	Q8_0  d f16, qs [32] int8                    q·d

// Quants as floats: a load is cheaper than an integer conversion.
var (
	int8s   = table8(func(c uint8) float32 { return float32(int8(c)) })
	quant4  = [16]float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	quant4s = [16]float32{-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7}
)

// half reads a half-precision number.
func half(b []byte) float32 { return f16[binary.LittleEndian.Uint16(b)] }

func decodeQ4_0(dst []float32, src []byte) {
	for len(dst) >= 32 && len(src) >= 18 {
		y, b := (*[32]float32)(dst), (*[18]byte)(src)
		dst, src = dst[32:], src[18:]
		decodeNibbles(y, (*[16]byte)(b[2:]), &quant4s, half(b[:]))
	}
}

func decodeQ4_1(dst []float32, src []byte) {
	for len(dst) >= 32 && len(src) >= 20 {
		y, b := (*[32]float32)(dst), (*[20]byte)(src)
		dst, src = dst[32:], src[20:]
		d, m, qs := half(b[:]), half(b[2:]), (*[16]byte)(b[4:])
		for j, q := range qs {
			y[j] = float32(quant4[q&15]*d) + m
			y[j+16] = float32(quant4[q>>4]*d) + m
		}
	}
}

func decodeQ5_0(dst []float32, src []byte) {
	for len(dst) >= 32 && len(src) >= 22 {
		y, b := (*[32]float32)(dst), (*[22]byte)(src)
		dst, src = dst[32:], src[22:]
		d, qh, qs := half(b[:]), binary.LittleEndian.Uint32(b[2:]), (*[16]byte)(b[6:])
		for j, q := range qs {
			y[j] = int8s[(q&15|byte(qh<<4&16))-16] * d
			y[j+16] = int8s[(q>>4|byte(qh>>12&16))-16] * d
			qh >>= 1
		}
	}
}

func decodeQ5_1(dst []float32, src []byte) {
	for len(dst) >= 32 && len(src) >= 24 {
		y, b := (*[32]float32)(dst), (*[24]byte)(src)
		dst, src = dst[32:], src[24:]
		d, m := half(b[:]), half(b[2:])
		qh, qs := binary.LittleEndian.Uint32(b[4:]), (*[16]byte)(b[8:])
		for j, q := range qs {
			y[j] = float32(int8s[q&15|byte(qh<<4&16)]*d) + m
			y[j+16] = float32(int8s[q>>4|byte(qh>>12&16)]*d) + m
			qh >>= 1
		}
	}
}

func decodeQ8_0(dst []float32, src []byte) {
	for len(dst) >= 32 && len(src) >= 34 {
		y, b := (*[32]float32)(dst), (*[34]byte)(src)
		dst, src = dst[32:], src[34:]
		d, qs := half(b[:]), (*[32]byte)(b[2:])
		for j := 0; j < 32; j += 2 {
			y[j] = int8s[qs[j]] * d
			y[j+1] = int8s[qs[j+1]] * d
		}
	}
}
