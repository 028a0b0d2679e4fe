package tensor

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// block concatenates the parts of a block; fill repeats a byte.
func block(parts ...[]byte) []byte { return slices.Concat(parts...) }
func fill(c byte, n int) []byte    { return slices.Repeat([]byte{c}, n) }
func set(b []byte, at ...byte) []byte { // pairs of index, value
	for i := 0; i < len(at); i += 2 {
		b[at[i]] = at[i+1]
	}
	return b
}

var (
	one       = []byte{0x00, 0x3c} // half-precision constants
	two       = []byte{0x00, 0x40}
	pointFive = []byte{0x00, 0x38}
)

// Each block decodes to background except at the listed positions.
func TestDecodeBlocks(t *testing.T) {
	type at map[int]float32
	tests := []struct {
		name       string
		d          DType
		block      []byte
		background float32
		want       at
	}{
		{"q4_0: byte j holds j and j+16", Q4_0, block(two, set(fill(0x88, 16), 3, 0xf0)), 0, at{3: -16, 19: 14}},
		{"q4_1 adds the minimum", Q4_1, block(pointFive, two, set(fill(0, 16), 15, 0x2f)), 2, at{15: 9.5, 31: 3}},
		{"q5_0: bit 4 of value j is bit j", Q5_0, block(one, []byte{1, 0, 2, 0}, fill(0, 16)), -16, at{0: 0, 17: 0}},
		{"q5_1", Q5_1, block(one, two, []byte{0, 0, 0, 0x80}, set(fill(0, 16), 15, 0x31)), 2, at{15: 3, 31: 21}},
		{"q8_0", Q8_0, block(pointFive, set(fill(0, 32), 0, 0x80, 31, 127)), 0, at{0: -64, 31: 63.5}},

		// Byte 0 of the quants: two bits each of values 0, 32, 64, 96.
		{
			"q2_k: fields of a byte are 32 values apart", Q2_K,
			block(fill(0x01, 16), set(fill(0, 64), 0, 0b11_10_01_00), one, one), 0,
			at{32: 1, 64: 2, 96: 3},
		},
		{
			"q2_k: scale and minimum of sub-block 3 (values 48 to 63) and 9", Q2_K,
			block(set(fill(0, 16), 3, 0x25, 9, 0x10), set(fill(0, 64), 16, 0b00_00_11_00, 48, 1), two, one), 0,
			merge(run(48, 16, -2), at{48: 28}, run(144, 16, -1)),
		},
		{
			"q3_k: a clear high bit subtracts 4", Q3_K,
			block(set(fill(0, 32), 0, 1), set(fill(0, 64), 0, 0b11), scale3(33), one), -4,
			at{0: 3},
		},
		{
			"q3_k: high bit 4+k belongs to the second half", Q3_K,
			block(set(fill(0xff, 32), 31, 0b0111_1111), fill(0, 64), scale3(31), one), 0,
			at{255: 4},
		},
		{
			"q4_k: nibbles are 32 values apart", Q4_K,
			block(one, one, scaleMin(2, 1), set(fill(0, 128), 32, 0x53)), -1,
			at{64: 5, 96: 9},
		},
		{
			"q5_k: bits 2s and 2s+1 of the high byte", Q5_K,
			block(one, pointFive, scaleMin(1, 63), set(fill(0, 32), 5, 0b1000_0001), fill(0x11, 128)), -30.5,
			at{5: -14.5, 229: -14.5},
		},
		{
			"q6_k: four values share a high byte", Q6_K,
			block(set(fill(0, 128), 0, 0x21, 32, 0x43), set(fill(0, 64), 0, 0b11_10_01_00), fill(1, 16), one), -32,
			at{0: 1 - 32, 32: 3 + 16 - 32, 64: 2 + 32 - 32, 96: 4 + 48 - 32},
		},
		{
			"q6_k: signed scales of 16 values", Q6_K,
			block(fill(0, 128), fill(0, 64), set(fill(0, 16), 15, 0xff), one), 0, merge(run(240, 16, 32)),
		},

		{"iq4_nl", IQ4_NL, block(two, set(fill(0x88, 16), 1, 0xf0)), 2, at{1: -254, 17: 226}},
		{
			"iq4_xs: scale 7 takes its high bits from the top of scales_h", IQ4_XS,
			block(one, []byte{0xaa, 0x6a}, []byte{0, 0, 0, 0x10}, fill(0x88, 128)), 0, run(224, 32, 17-32),
		},
		{"mxfp4", MXFP4, block([]byte{128}, set(fill(0, 16), 2, 0xf1)), 0, at{2: 1, 18: -12}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := slices.Repeat([]float32{tt.background}, tt.d.BlockLen())
			for i, v := range tt.want {
				want[i] = v
			}
			// Two blocks: the second must not see the first.
			got := make([]float32, 2*len(want))
			Decode(tt.d, got, block(fill(0, tt.d.BlockBytes()), tt.block))
			if diff := cmp.Diff(want, got[len(want):]); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
		})
	}
}

func run(from, n int, v float32) map[int]float32 {
	m := map[int]float32{}
	for i := range n {
		m[from+i] = v
	}
	return m
}

func merge(ms ...map[int]float32) map[int]float32 {
	all := map[int]float32{}
	for _, m := range ms {
		maps.Copy(all, m)
	}
	return all
}

// scale3 packs sixteen equal 6-bit scales of Q3_K.
func scale3(s byte) []byte {
	low, high := s&15, s>>4
	return block(fill(low|low<<4, 8), fill(high*0b01_01_01_01, 4))
}

// scaleMin packs eight equal pairs of a 6-bit scale and minimum of Q4_K.
func scaleMin(s, m byte) []byte {
	return block(fill(s|s>>4<<6, 4), fill(m|m>>4<<6, 4), fill(s&15|m&15<<4, 4))
}

func TestDecodeEveryNibble(t *testing.T) {
	qs := make([]byte, 16)
	for j := range qs {
		qs[j] = byte(j | (15-j)<<4)
	}
	tests := []struct {
		d     DType
		block []byte
		want  [16]float32 // of quants 0 to 15
	}{
		{Q4_0, block(one, qs), [16]float32{-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7}},
		{Q4_1, block(one, one, qs), [16]float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
		{IQ4_NL, block(one, qs), [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}},
		{MXFP4, block([]byte{127}, qs), [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6}},
	}
	for _, tt := range tests {
		var got [32]float32
		Decode(tt.d, got[:], tt.block)
		for q, want := range tt.want {
			if got[q] != want || got[31-q] != want {
				t.Errorf("%v: quant %d is %v and %v, want %v", tt.d, q, got[q], got[31-q], want)
			}
		}
	}
}

// Distinct scales show that each is read from its own bits.
func TestScalesOfKFormats(t *testing.T) {
	var b3 [12]byte
	var want3 [16]uint8
	for s := range 16 {
		v := uint8(63 - 3*s)
		want3[s] = v
		b3[s%8] |= v & 15 << (s / 8 * 4)
		b3[8+s%4] |= v >> 4 << (s / 4 * 2)
	}
	if diff := cmp.Diff(want3, scalesQ3_K(&b3)); diff != "" {
		t.Error(diff)
	}
	// Hand-packed: scales 1, 2, 3, 4, 0x15, 0x26, 0x37, 8; minima 5, 6, 7, 8, 9, 0x1a, 0x2b, 0x3c.
	b4 := [12]byte{0x41, 0x82, 0xc3, 0x04, 0x05, 0x46, 0x87, 0xc8, 0x95, 0xa6, 0xb7, 0xc8}
	want4 := [8][2]uint8{{1, 5}, {2, 6}, {3, 7}, {4, 8}, {0x15, 9}, {0x26, 0x1a}, {0x37, 0x2b}, {8, 0x3c}}
	for s, want := range want4 {
		if sc, m := scaleMinK4(&b4, s); [2]uint8{sc, m} != want {
			t.Errorf("sub-block %d: scale, minimum = %d, %d, want %v", s, sc, m, want)
		}
	}
}

func TestDecodeScalars(t *testing.T) {
	inf := float32(math.Inf(1))
	tests := []struct {
		d    DType
		src  []byte
		want []float32
	}{
		{F64, []byte{0, 0, 0, 0, 0, 0, 0xf8, 0xbf}, []float32{-1.5}},
		{F32, []byte{0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xff}, []float32{1, -inf}},
		{F16, []byte{0, 0x3c, 1, 0, 0xff, 0x7b, 0, 0xfc, 0, 0x80}, []float32{1, 0x1p-24, 65504, -inf, 0}},
		{BF16, []byte{0x80, 0x3f, 0x80, 0x7f, 1, 0, 0, 0xc0, 0x20, 0x41}, []float32{1, inf, 0x1p-133, -2, 10}},
		{F8E5M2, []byte{0x3c, 0x7b, 0x01, 0xfc, 0x44}, []float32{1, 57344, 0x1p-16, -inf, 4}},
		{F8E4M3, []byte{0x38, 0x7e, 0x01, 0x08, 0xfe, 0x80}, []float32{1, 448, 0x1p-9, 0x1p-6, -448, 0}},
		{F8E8M0, []byte{0, 127, 254}, []float32{0x1p-127, 1, 0x1p127}},
		{
			F4E2M1,
			[]byte{0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe},
			[]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6},
		},
		{I64, []byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, []float32{-2}},
		{I32, []byte{0xfe, 0xff, 0xff, 0xff}, []float32{-2}},
		{I16, []byte{0xfe, 0xff}, []float32{-2}},
		{I8, []byte{0xfe}, []float32{-2}},
		{U64, []byte{0, 0, 0, 0, 0, 0, 0, 0x80}, []float32{0x1p63}},
		{U32, []byte{0, 0, 0, 0x80}, []float32{0x1p31}},
		{U16, []byte{0xfe, 0xff}, []float32{65534}},
		{U8, []byte{0xfe}, []float32{254}},
		{Bool, []byte{0, 1}, []float32{0, 1}},
	}
	for _, tt := range tests {
		t.Run(tt.d.String(), func(t *testing.T) {
			got := make([]float32, len(tt.want))
			Decode(tt.d, got, tt.src)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNaNCodes(t *testing.T) {
	tests := []struct {
		d   DType
		src []byte
	}{
		{F16, []byte{0x01, 0x7c}},
		{F16, []byte{0xff, 0xff}},
		{BF16, []byte{0xc0, 0x7f}},
		{F8E5M2, []byte{0x7d}},
		{F8E4M3, []byte{0x7f}},
		{F8E4M3, []byte{0xff}},
		{F8E8M0, []byte{0xff}},
		{MXFP4, block([]byte{0xff}, fill(0x23, 16))},
	}
	for _, tt := range tests {
		got := make([]float32, tt.d.BlockLen())
		Decode(tt.d, got, tt.src)
		for _, v := range got {
			if v == v {
				t.Errorf("%v %x = %v, want NaN", tt.d, tt.src, v)
			}
		}
	}
}

// Every length, so that unrolled loops and their tails agree.
func TestDecodeAnyLength(t *testing.T) {
	for d := F64; d <= MXFP4; d++ {
		src := make([]byte, d.RowBytes(9*d.BlockLen()))
		for i := range src {
			src[i] = byte(i * 7 & 0x3f) // no NaN
		}
		whole := make([]float32, 9*d.BlockLen())
		Decode(d, whole, src)
		for n := 0; n <= len(whole); n += d.BlockLen() {
			part := make([]float32, n)
			Decode(d, part, src[:d.RowBytes(n)])
			if !slices.Equal(part, whole[:n]) {
				t.Errorf("%v: the first %d of %d values differ when decoded alone", d, n, len(whole))
			}
		}
	}
}

func TestDecodeRefusesWrongSizes(t *testing.T) {
	for _, tt := range []struct {
		d        DType
		dst, src int
	}{
		{Invalid, 0, 0}, {F32, 1, 3}, {Q4_0, 31, 18}, {Q4_0, 32, 36}, {F4E2M1, 3, 2}, {DType(200), 1, 1},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("decode of %d values from %d bytes of type %d did not panic", tt.dst, tt.src, tt.d)
				}
			}()
			Decode(tt.d, make([]float32, tt.dst), make([]byte, tt.src))
		}()
	}
}
