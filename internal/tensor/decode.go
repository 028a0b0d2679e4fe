package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
)

// decoders turn stored blocks into float32. Each is called with a whole number
// of blocks and with dst and src of matching lengths. Products are formed in
// ggml's order and every one that feeds an addition is rounded by a
// conversion, so that no platform fuses them and all decode to the same bits.
var decoders = [...]func(dst []float32, src []byte){
	F64:    decodeF64,
	F32:    decodeF32,
	F16:    decodeF16,
	BF16:   decodeBF16,
	F8E5M2: func(dst []float32, src []byte) { decode8(dst, src, &f8e5m2) },
	F8E4M3: func(dst []float32, src []byte) { decode8(dst, src, &f8e4m3) },
	F8E8M0: func(dst []float32, src []byte) { decode8(dst, src, &f8e8m0) },
	F4E2M1: decodeF4E2M1,
	I64:    decodeI64,
	I32:    decodeI32,
	I16:    decodeI16,
	I8:     decodeI8,
	U64:    decodeU64,
	U32:    decodeU32,
	U16:    decodeU16,
	U8:     decodeU8,
	Bool:   decodeBool,
	Q4_0:   decodeQ4_0,
	Q4_1:   decodeQ4_1,
	Q5_0:   decodeQ5_0,
	Q5_1:   decodeQ5_1,
	Q8_0:   decodeQ8_0,
	Q2_K:   decodeQ2_K,
	Q3_K:   decodeQ3_K,
	Q4_K:   decodeQ4_K,
	Q5_K:   decodeQ5_K,
	Q6_K:   decodeQ6_K,
	IQ4_NL: decodeIQ4_NL,
	IQ4_XS: decodeIQ4_XS,
	MXFP4:  decodeMXFP4,
}

// Decode writes the values stored in src to dst, exactly: no value of any
// type but F64 and the wide integers needs more bits than float32 has, block
// formats round where their definition rounds. NaN codes become NaN. len(dst)
// must be a multiple of d.BlockLen and src must hold exactly that many values;
// anything else is a bug of the caller and panics.
func Decode(d DType, dst []float32, src []byte) {
	if d == Invalid || int(d) >= len(decoders) {
		panic(fmt.Sprintf("tensor: decode of %v", d))
	}
	if len(dst)%d.BlockLen() != 0 || len(src) != d.RowBytes(len(dst)) {
		panic(fmt.Sprintf("tensor: decode of %d values of %v from %d bytes", len(dst), d, len(src)))
	}
	decoders[d](dst, src)
}

func decodeF64(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
	}
}

func decodeF32(dst []float32, src []byte) {
	for len(dst) >= 4 && len(src) >= 16 {
		y, b := (*[4]float32)(dst), (*[16]byte)(src)
		y[0] = math.Float32frombits(binary.LittleEndian.Uint32(b[0:]))
		y[1] = math.Float32frombits(binary.LittleEndian.Uint32(b[4:]))
		y[2] = math.Float32frombits(binary.LittleEndian.Uint32(b[8:]))
		y[3] = math.Float32frombits(binary.LittleEndian.Uint32(b[12:]))
		dst, src = dst[4:], src[16:]
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func decodeF16(dst []float32, src []byte) {
	for len(dst) >= 4 && len(src) >= 8 {
		y, v := (*[4]float32)(dst), binary.LittleEndian.Uint64(src)
		y[0] = f16[uint16(v)]
		y[1] = f16[uint16(v>>16)]
		y[2] = f16[uint16(v>>32)]
		y[3] = f16[uint16(v>>48)]
		dst, src = dst[4:], src[8:]
	}
	for i := range dst {
		dst[i] = f16[binary.LittleEndian.Uint16(src[2*i:])]
	}
}

func decodeBF16(dst []float32, src []byte) {
	const high = 0xffff << 16
	for len(dst) >= 4 && len(src) >= 8 {
		y, v := (*[4]float32)(dst), binary.LittleEndian.Uint64(src)
		y[0] = math.Float32frombits(uint32(v) << 16)
		y[1] = math.Float32frombits(uint32(v) & high)
		y[2] = math.Float32frombits(uint32(v>>16) & high)
		y[3] = math.Float32frombits(uint32(v>>32) & high)
		dst, src = dst[4:], src[8:]
	}
	for i := range dst {
		dst[i] = BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

// decode8 looks up one-byte codes.
func decode8(dst []float32, src []byte, table *[256]float32) {
	src = src[:len(dst)]
	for i, c := range src {
		dst[i] = table[c]
	}
}

func decodeF4E2M1(dst []float32, src []byte) {
	for len(dst) >= 16 && len(src) >= 8 {
		y, b := (*[16]float32)(dst), (*[8]byte)(src)
		dst, src = dst[16:], src[8:]
		for j, c := range b {
			y[2*j] = f4e2m1[c&15]
			y[2*j+1] = f4e2m1[c>>4]
		}
	}
	for j, c := range src {
		dst[2*j] = f4e2m1[c&15]
		dst[2*j+1] = f4e2m1[c>>4]
	}
}

func decodeI64(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int64(binary.LittleEndian.Uint64(src[8*i:])))
	}
}

func decodeI32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int32(binary.LittleEndian.Uint32(src[4*i:])))
	}
}

func decodeI16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int16(binary.LittleEndian.Uint16(src[2*i:])))
	}
}

func decodeI8(dst []float32, src []byte) {
	for i, c := range src {
		dst[i] = float32(int8(c))
	}
}

func decodeU64(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(binary.LittleEndian.Uint64(src[8*i:]))
	}
}

func decodeU32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func decodeU16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

func decodeU8(dst []float32, src []byte) {
	for i, c := range src {
		dst[i] = float32(c)
	}
}

func decodeBool(dst []float32, src []byte) {
	for i, c := range src {
		dst[i] = 0
		if c != 0 {
			dst[i] = 1
		}
	}
}
