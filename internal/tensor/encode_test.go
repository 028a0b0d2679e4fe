package tensor

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var encodable = []DType{F32, F16, BF16, Q8_0, Q4_0, Q4_1}

// roundTrip encodes and decodes x.
func roundTrip(t interface{ Fatal(...any) }, d DType, x []float32) []float32 {
	b, y := make([]byte, d.RowBytes(len(x))), make([]float32, len(x))
	if err := Encode(d, b, x); err != nil {
		t.Fatal(err)
	}
	Decode(d, y, b)
	return y
}

// What a format can hold comes back unchanged.
func TestEncodeExact(t *testing.T) {
	ramp := func(from, step float32) []float32 {
		x := make([]float32, 32)
		for i := range x {
			x[i] = from + step*float32(i%16)
		}
		return x
	}
	rows := map[string]struct {
		x  []float32
		in []DType
	}{
		"zeros":          {make([]float32, 32), encodable},
		"constant":       {ramp(-3, 0), encodable},
		"-8 to 7":        {ramp(-8, 1), []DType{F32, F16, BF16, Q4_0, Q4_1}},
		"-7 to 8":        {ramp(8, -1), []DType{F32, F16, BF16, Q4_0, Q4_1}},
		"0 to 15":        {ramp(0, 1), []DType{F32, F16, BF16, Q4_1}},
		"100 to 101.875": {ramp(100, 0.125), []DType{F32, F16, Q4_1}},
		"127 and 0":      {append(make([]float32, 31), 127), []DType{F32, F16, BF16, Q8_0}},
		"one subnormal":  {append(make([]float32, 31), 0x1p-24), []DType{F32, F16, BF16, Q8_0}},
	}
	for name, row := range rows {
		for _, d := range row.in {
			got := roundTrip(t, d, row.x)
			for i := range got {
				want := row.x[i]
				tolerance := 0.0
				if name == "constant" && d == Q8_0 { // 3/127 is no half
					tolerance = 3 * 0x1p-11
				}
				if math.Abs(float64(got[i]-want)) > tolerance {
					t.Errorf("%s as %v: value %d is %v, want %v", name, d, i, got[i], want)
					break
				}
			}
		}
	}
}

// The root mean square error of a block is at most half a step, and at most a
// little more for Q4_0, whose codes reach 7 steps to one side and 8 to the other.
func TestEncodeError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := math.Exp2(float64(rapid.IntRange(-20, 12).Draw(t, "exponent")))
		x := make([]float32, 32)
		var peak, low, high float64
		for i := range x {
			x[i] = float32(scale * rapid.Float64Range(-1, 1).Draw(t, "x"))
			v := float64(x[i])
			peak, low, high = max(peak, math.Abs(v)), min(low, v), max(high, v)
		}
		for _, tt := range []struct {
			d     DType
			limit float64
		}{{Q8_0, 0.5 * peak / 127}, {Q4_0, 0.5 * peak / 7}, {Q4_1, 0.5 * (high - low) / 15}} {
			var sum float64
			for i, y := range roundTrip(t, tt.d, x) {
				e := float64(y) - float64(x[i])
				sum += e * e
			}
			// Scale and minimum are halves: 11 bits, or multiples of 2^-24.
			rounding := 8*0x1p-24 + peak*0x1p-11
			if rms := math.Sqrt(sum / 32); rms > tt.limit+rounding {
				t.Fatalf("%v: rms error %v, want at most %v", tt.d, rms, tt.limit+rounding)
			}
		}
	})
}

// The search must beat plain rounding with the extreme at the end of the range.
func TestEncodeSearchPays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, 4096)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	rms := func(y []float32) float64 {
		var sum float64
		for i := range y {
			e := float64(y[i] - x[i])
			sum += e * e
		}
		return math.Sqrt(sum / float64(len(y)))
	}
	plain0, plain1 := make([]float32, len(x)), make([]float32, len(x))
	for i := 0; i < len(x); i += 32 {
		var peak, low, high float64
		for _, v := range x[i : i+32] {
			v := float64(v)
			if math.Abs(v) > math.Abs(peak) {
				peak = v
			}
			low, high = min(low, v), max(high, v)
		}
		for j, v := range x[i : i+32] {
			d := peak / -8
			plain0[i+j] = float32(min(math.Round(float64(v)/d), 7) * d)
			d = (high - low) / 15
			plain1[i+j] = float32(math.Round((float64(v)-low)/d)*d + low)
		}
	}
	if got, plain := rms(roundTrip(t, Q4_0, x)), rms(plain0); got > 0.945*plain {
		t.Errorf("Q4_0: rms error %.4f, plain rounding %.4f", got, plain)
	}
	if got, plain := rms(roundTrip(t, Q4_1, x)), rms(plain1); got > 0.945*plain {
		t.Errorf("Q4_1: rms error %.4f, plain rounding %.4f", got, plain)
	}
}

func TestEncodeErrors(t *testing.T) {
	with := func(v float64) []float32 {
		x := make([]float32, 64)
		x[40] = float32(v)
		return x
	}
	tests := []struct {
		d    DType
		x    []float32
		size int
		want string
	}{
		{Q8_0, with(math.NaN()), 68, "encode to Q8_0: values 32 to 63: largest magnitude NaN: expected finite values"},
		{Q4_0, with(math.Inf(1)), 36, "encode to Q4_0: values 32 to 63: largest magnitude +Inf: expected finite values"},
		{Q4_1, with(math.Inf(-1)), 40, "encode to Q4_1: values 32 to 63: largest magnitude +Inf: expected finite values"},
		{Q8_0, with(1e7), 68, "too large for a half-precision scale"},
		{Q4_0, with(-1e6), 36, "too large for a half-precision scale"},
		{Q4_1, with(-70000), 40, "too large for a half-precision scale"},
		{Q4_0, with(1)[:31], 18, "31 values into 18 bytes, expected blocks of 32 values and 18 bytes"},
		{F16, with(1), 64, "64 values into 64 bytes, expected blocks of 1 values and 2 bytes"},
		{Q4_K, make([]float32, 256), 144, "encode to Q4_K: expected F32, F16, BF16, Q8_0, Q4_0 or Q4_1"},
		{F8E4M3, with(1), 64, "encode to F8_E4M3: expected"},
	}
	for _, tt := range tests {
		err := Encode(tt.d, make([]byte, tt.size), tt.x)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("encode to %v: error %v, want %q", tt.d, err, tt.want)
		}
	}
	// Plain formats keep what is not finite.
	for _, d := range []DType{F32, F16, BF16} {
		if y := roundTrip(t, d, with(math.NaN())); y[40] == y[40] {
			t.Errorf("%v: NaN became %v", d, y[40])
		}
		if y := roundTrip(t, d, with(math.Inf(-1))); !math.IsInf(float64(y[40]), -1) {
			t.Errorf("%v: -Inf became %v", d, y[40])
		}
	}
}
