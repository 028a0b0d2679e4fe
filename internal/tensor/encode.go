package tensor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Encode stores src as d in dst: F32, F16, BF16 (to nearest, ties to even;
// what is too large becomes infinity), Q8_0, Q4_0 or Q4_1. len(src) must be a
// multiple of d.BlockLen and len(dst) be d.RowBytes(len(src)). Errors: another
// type, wrong lengths, and for quantised types a value that is not finite or a
// block that is too large for its half-precision scale.
func Encode(d DType, dst []byte, src []float32) error {
	switch d {
	case F32, F16, BF16, Q8_0, Q4_0, Q4_1:
	default:
		return fmt.Errorf("encode to %v: expected F32, F16, BF16, Q8_0, Q4_0 or Q4_1", d)
	}
	n := d.BlockLen()
	if len(src)%n != 0 || len(dst) != d.RowBytes(len(src)) {
		return fmt.Errorf("encode to %v: %d values into %d bytes, expected blocks of %d values and %d bytes", d, len(src), len(dst), n, d.BlockBytes())
	}
	switch d {
	case F32:
		for i, x := range src {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
		}
		return nil
	case F16:
		for i, x := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], F32ToF16(x))
		}
		return nil
	case BF16:
		for i, x := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], F32ToBF16(x))
		}
		return nil
	}
	for i := 0; i < len(src); i += n {
		x := (*[32]float32)(src[i:])
		b := dst[d.RowBytes(i):d.RowBytes(i+n)]
		if err := encodeBlock(d, b, x); err != nil {
			return fmt.Errorf("encode to %v: values %d to %d: %w", d, i, i+n-1, err)
		}
	}
	return nil
}

func encodeBlock(d DType, b []byte, x *[32]float32) error {
	var mag uint32 // bits of the largest magnitude; they sort like the values
	for _, v := range x {
		mag = max(mag, math.Float32bits(v)&0x7fffffff)
	}
	peak := math.Float32frombits(mag)
	if mag >= 0x7f800000 {
		return fmt.Errorf("largest magnitude %v: expected finite values", peak)
	}
	switch d {
	case Q8_0:
		return encodeQ8_0((*[34]byte)(b), x, peak)
	case Q4_0:
		return encodeQ4_0((*[18]byte)(b), x, peak)
	default:
		return encodeQ4_1((*[20]byte)(b), x)
	}
}

var errRange = errors.New("too large for a half-precision scale")

// Quants are chosen for the scale as it is stored, not for the unrounded one:
// nearest to the value that will be read back.

func encodeQ8_0(b *[34]byte, x *[32]float32, peak float32) error {
	code := F32ToF16(peak / 127)
	// Where halves are subnormal, rounding can shrink the scale so far that
	// 127 steps no longer reach the peak.
	if f16[code]*127.4 < peak {
		code++
	}
	if code >= 0x7c00 {
		return errRange
	}
	binary.LittleEndian.PutUint16(b[:], code)
	var inverse float32
	if d := f16[code]; d > 0 {
		inverse = 1 / d
	}
	for i, v := range x {
		// Adding 1.5·2^23 rounds to an integer, whose low byte is q as int8.
		b[2+i] = byte(math.Float32bits(float32(v*inverse) + 0x1.8p23))
	}
	return nil
}

// encodeQ4_0 tries the scale that maps the extreme value to -8, as ggml does,
// and a few around it, and refits the best by least squares.
func encodeQ4_0(b *[18]byte, x *[32]float32, peak float32) error {
	if !slices.Contains(x[:], peak) {
		peak = -peak // the sign of the extreme value
	}
	best := fit4{err: math.Inf(1)}
	if !best.try(x, float64(peak)/-8, 0, 8) {
		return errRange
	}
	for _, reach := range [...]float64{-7, -7.4, -7.7, -8.3, -8.6, 7, 7.4} {
		best.try(x, float64(peak)/reach, 0, 8)
	}
	d, _ := best.leastSquares(x, false)
	best.try(x, d, 0, 8)

	binary.LittleEndian.PutUint16(b[:], best.d)
	packNibbles((*[16]byte)(b[2:]), &best.q)
	return nil
}

// encodeQ4_1 tries the scale and minimum that span the values, a few narrower
// spans, and refits the best by least squares.
func encodeQ4_1(b *[20]byte, x *[32]float32) error {
	low, high := x[0], x[0]
	for _, v := range x {
		low, high = min(low, v), max(high, v)
	}
	span := float64(high) - float64(low)
	best := fit4{err: math.Inf(1)}
	if !best.try(x, span/15, float64(low), 0) {
		return errRange
	}
	for _, cut := range [...]float64{0.02, 0.04, 0.06} {
		best.try(x, span*(1-2*cut)/15, float64(low)+float64(cut*span), 0)
	}
	d, m := best.leastSquares(x, true)
	best.try(x, d, m, 0)

	binary.LittleEndian.PutUint16(b[:], best.d)
	binary.LittleEndian.PutUint16(b[2:], best.m)
	packNibbles((*[16]byte)(b[4:]), &best.q)
	return nil
}

// fit4 is the best quantisation of a block found so far: x ≈ (q - zero)·d + m.
type fit4 struct {
	d, m uint16 // half-precision codes
	zero float64
	q    [32]uint8
	err  float64 // sum of squares
}

// try quantises x with scale d and minimum m as they would be stored, and
// keeps the result if it is better. It reports false if d or m has no finite
// half-precision code.
func (f *fit4) try(x *[32]float32, d, m, zero float64) bool {
	c := fit4{d: F32ToF16(float32(d)), m: F32ToF16(float32(m)), zero: zero}
	if c.d&0x7c00 == 0x7c00 || c.m&0x7c00 == 0x7c00 {
		return false
	}
	sd, sm := float64(f16[c.d]), float64(f16[c.m])
	inverse := 0.0
	if sd != 0 {
		inverse = 1 / sd
	}
	for i, v := range x {
		q := math.Floor(float64((float64(v)-sm)*inverse) + zero + 0.5)
		q = min(max(q, 0), 15)
		c.q[i] = uint8(q)
		e := float64(v) - float64((q-zero)*sd) - sm
		c.err += float64(e * e)
	}
	if c.err < f.err {
		*f = c
	}
	return true
}

// leastSquares returns the scale, and with offset the minimum, that fit x best
// for the quants found.
func (f *fit4) leastSquares(x *[32]float32, offset bool) (d, m float64) {
	var n, sq, sqq, sx, sqx float64
	for i, v := range x {
		q, v := float64(f.q[i])-f.zero, float64(v)
		n++
		sq += q
		sqq += float64(q * q)
		sx += v
		sqx += float64(q * v)
	}
	if !offset {
		if sqq == 0 {
			return 0, 0
		}
		return sqx / sqq, 0
	}
	det := float64(n*sqq) - float64(sq*sq) // of integers, exact
	if det == 0 {
		return 0, sx / n
	}
	return (float64(n*sqx) - float64(sq*sx)) / det, (float64(sqq*sx) - float64(sq*sqx)) / det
}

// packNibbles stores quant j in the low and quant j+16 in the high nibble.
func packNibbles(b *[16]byte, q *[32]uint8) {
	for j := range b {
		b[j] = q[j] | q[j+16]<<4
	}
}
