package tensor

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Half precision from its definition, in float64.
func f16Reference(h uint16) float64 {
	sign, exp, frac := 1.0, int(h>>10&31), float64(h&0x3ff)
	if h>>15 == 1 {
		sign = -1
	}
	switch {
	case exp == 31 && frac != 0:
		return math.NaN()
	case exp == 31:
		return math.Inf(int(sign))
	case exp == 0:
		return sign * math.Ldexp(frac, -24)
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}

func same(a, b float32) bool {
	return a != a && b != b || math.Float32bits(a) == math.Float32bits(b)
}

func TestEveryHalf(t *testing.T) {
	for c := range 1 << 16 {
		h := uint16(c)
		v := F16ToF32(h)
		if want := float32(f16Reference(h)); !same(v, want) {
			t.Fatalf("half %#04x = %v, want %v", h, v, want)
		}
		back := F32ToF16(v)
		if v != v {
			h |= 0x200 // NaN comes back quiet
		}
		if back != h {
			t.Fatalf("half %#04x came back as %#04x", h, back)
		}
	}
}

func TestEveryBF16(t *testing.T) {
	for c := range 1 << 16 {
		h := uint16(c)
		v := BF16ToF32(h)
		if v != v {
			h |= 0x40
		}
		if back := F32ToBF16(v); back != h {
			t.Fatalf("bfloat16 %#04x came back as %#04x", h, back)
		}
	}
}

func TestRounding(t *testing.T) {
	tests := []struct {
		x         float32
		f16, bf16 uint16
	}{
		{0, 0, 0},
		{float32(math.Copysign(0, -1)), 0x8000, 0x8000},
		{1 + 0x1p-11, 0x3c00, 0x3f80},                      // tie, to even
		{1 + 0x3p-11, 0x3c02, 0x3f80},                      // tie, to even
		{1 + 0x1p-11 + 0x1p-23, 0x3c01, 0x3f80},            // just above a tie
		{1 + 0x1p-8, 0x3c04, 0x3f80},                       // bfloat16 tie, to even
		{1 + 0x3p-8, 0x3c0c, 0x3f82},                       // bfloat16 tie, to even
		{65519.996, 0x7bff, 0x4780},                        // largest below the tie
		{65520, 0x7c00, 0x4780},                            // tie with 2^16: infinity
		{0x1p-25, 0, 0x3300},                               // tie with zero
		{0x1p-25 + 0x1p-48, 1, 0x3300},                     // above it
		{0x3p-25, 2, 0x33c0},                               // subnormal tie, to even
		{0x1p-14 - 0x1p-38, 0x0400, 0x3880},                // rounds up to the smallest normal
		{math.MaxFloat32, 0x7c00, 0x7f80},                  // both overflow
		{-math.MaxFloat32, 0xfc00, 0xff80},                 //
		{math.SmallestNonzeroFloat32, 0, 0},                //
		{float32(math.Inf(-1)), 0xfc00, 0xff80},            //
		{math.Float32frombits(0x7f800001), 0x7e00, 0x7fc0}, // NaN must not become infinity
	}
	for _, tt := range tests {
		if got := F32ToF16(tt.x); got != tt.f16 {
			t.Errorf("F32ToF16(%v) = %#04x, want %#04x", tt.x, got, tt.f16)
		}
		if got := F32ToBF16(tt.x); got != tt.bf16 {
			t.Errorf("F32ToBF16(%v) = %#04x, want %#04x", tt.x, got, tt.bf16)
		}
	}
}

// No other code is nearer; in a tie the even one is taken.
func TestRoundingIsNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := math.Float32frombits(rapid.Uint32Range(0, 0x477fefff).Draw(t, "bits"))
		for _, format := range []struct {
			name  string
			code  uint16
			value func(uint16) float32
		}{{"F16", F32ToF16(x), F16ToF32}, {"BF16", F32ToBF16(x), BF16ToF32}} {
			distance := func(c uint16) float64 { return math.Abs(float64(format.value(c)) - float64(x)) }
			d := distance(format.code)
			for _, other := range []uint16{format.code - 1, format.code + 1} {
				if other == 0xffff || math.IsInf(distance(other), 0) {
					continue
				}
				if o := distance(other); o < d || o == d && format.code&1 == 1 {
					t.Fatalf("%s(%v) = %#04x, but %#04x is as near or nearer", format.name, x, format.code, other)
				}
			}
		}
	})
}

// The eight-bit formats as value = (1 + frac/2^m)·2^(exp-bias), counted upwards:
// neighbouring codes differ by one last place of their binade.
func TestF8Tables(t *testing.T) {
	walk := func(name string, table *[256]float32, fracBits, bias, top int) {
		v := 0.0
		for c := range top + 1 {
			if got := float64(table[c]); got != v {
				t.Fatalf("%s %#02x = %v, want %v", name, c, got, v)
			}
			if got := table[c|0x80]; !same(got, float32(-v)) && v != 0 {
				t.Fatalf("%s %#02x = %v, want %v", name, c|0x80, got, -v)
			}
			v += math.Ldexp(1, max(c>>fracBits, 1)-bias-fracBits)
		}
		if table[0x80] != 0 || !math.Signbit(float64(table[0x80])) {
			t.Errorf("%s 0x80 = %v, want -0", name, table[0x80])
		}
	}
	walk("e4m3", &f8e4m3, 3, 7, 0x7e)
	walk("e5m2", &f8e5m2, 2, 15, 0x7b)
	for c := range 255 {
		if got, want := f8e8m0[c], float32(math.Pow(2, float64(c-127))); got != want {
			t.Errorf("e8m0 %d = %v, want %v", c, got, want)
		}
	}
}
