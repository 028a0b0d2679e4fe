package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/foretoken/foretoken/internal/tensor"
)

// bits are those of a block as its kernels read it.
func (b *QBlock) bits() [16]uint32 { return *(*[16]uint32)(unsafe.Pointer(b)) }

func TestQuantize(t *testing.T) {
	nan := math.Float32frombits(0x7fc00000)
	inf := float32(math.Inf(1))
	put := func(v ...float32) (x [qBlock]float32) { copy(x[:], v); return x }
	nothing := QBlock{Scale: nan, Sum: [3]float32{nan, nan, nan}}
	for _, test := range []struct {
		name string
		x    [qBlock]float32
		want QBlock
	}{
		{"zeros", put(0, float32(math.Copysign(0, -1))), QBlock{}},
		{"denormals", put(1e-40, -1e-45), QBlock{}},
		{"just below 2⁻¹⁰⁰", put(math.Nextafter32(0x1p-100, 0)), QBlock{}},
		{"2⁻¹⁰⁰", put(-0x1p-100), QBlock{Scale: 0x1p-100 / 127, Neg: [3]int32{127, 127, 0}, Sum: [3]float32{-0x1p-100, -0x1p-100, 0}, Q: [32]int8{-127}}},
		{
			"ties to even", put(127, 0.5, 1.5, 2.5, -0.5, -1.5, -3.5),
			QBlock{Scale: 1, Neg: [3]int32{-125, -125, 0}, Sum: [3]float32{125, 125, 0}, Q: [32]int8{127, 0, 2, 2, 0, -2, -4}},
		},
		{
			"both halves",
			[qBlock]float32{0: 254, 15: 2, 16: -4, 31: -254},
			QBlock{Scale: 2, Neg: [3]int32{1, -128, 129}, Sum: [3]float32{-2, 256, -258}, Q: [32]int8{0: 127, 15: 1, 16: -2, 31: -127}},
		},
		{"greatest", put(math.MaxFloat32, -math.MaxFloat32), QBlock{Scale: math.MaxFloat32 / 127, Q: [32]int8{127, -127}}},
		{"infinity", put(1, -inf), nothing},
		{"nan", [qBlock]float32{3: 1, 31: -nan}, nothing},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachTier(t, func(t *testing.T) {
				var got [1]QBlock
				active.rows.quantize(got[:], test.x[:])
				if diff := cmp.Diff(test.want.bits(), got[0].bits()); diff != "" {
					t.Errorf("got %+v, want %+v\n%s", got[0], test.want, diff)
				}
			})
		})
	}
}

// The same bits on every tier, whatever the values and wherever a block lies.
func TestQuantizeTiersAgree(t *testing.T) {
	eachTier(t, rapidCheck(func(t *rapid.T) {
		r := drawRand(t)
		n := rapid.IntRange(0, 9).Draw(t, "blocks")
		x, checkX := guarded[float32](n*qBlock, 7)
		dst, check := guarded(n, QBlock{Scale: 3, Q: [qBlock]int8{5: 1}})
		exponent := rapid.SampledFrom([]int{0, 0, -99, -101, -130, 100}).Draw(t, "exponent")
		fill(r, x, false)
		for i, v := range x {
			x[i] = float32(math.Ldexp(float64(v), exponent))
		}
		if n > 0 && rapid.Bool().Draw(t, "wild") { // in one block: the others stay as they are
			fill(r, x[r.IntN(n)*qBlock:][:qBlock], true)
		}
		active.rows.quantize(dst, x)
		for i := range dst {
			var want QBlock
			quantizeBlock(&want, (*[qBlock]float32)(x[i*qBlock:]))
			if want.bits() != dst[i].bits() {
				t.Fatalf("block %d of %d: got %+v, want %+v, of %v", i, n, dst[i], want, x[i*qBlock:][:qBlock])
			}
		}
		for _, err := range []error{checkX(), check()} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}))
}

// The scale of every mantissa is the rounded quotient, and nothing exceeds 127.
func TestQuantizeEveryMantissa(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		const step = 61 // and all of them with 1
		x, dst := make([]float32, 64*qBlock), make([]QBlock, 64)
		for m := uint32(0); m < 1<<23; m += 64 * step {
			for b := range dst {
				x[b*qBlock+b%qBlock] = math.Float32frombits(0x3f800000 + (m+uint32(b)*step)&(1<<23-1))
			}
			active.rows.quantize(dst, x)
			for b := range dst {
				amax := x[b*qBlock+b%qBlock]
				if want := amax / 127; dst[b].Scale != want || dst[b].Q[b%qBlock] != 127 {
					t.Fatalf("amax %v: scale %v and %d, want %v and 127", amax, dst[b].Scale, dst[b].Q[b%qBlock], want)
				}
			}
		}
	})
}

func TestToBF16(t *testing.T) {
	ties := []uint32{0x3f808000, 0x3f818000, 0x3f808001, 0x00008000, 0x00018000, 0x7f7f8000, 0x7f800001, 0xffffffff, 0x7fbfffff, 0xff800000}
	eachTier(t, rapidCheck(func(t *rapid.T) {
		r := drawRand(t)
		n := rapid.IntRange(0, 100).Draw(t, "n")
		x, checkX := guarded[float32](n, 7)
		dst, check := guarded[uint16](n, 7)
		fill(r, x, true)
		for i := range x {
			if r.IntN(4) == 0 {
				x[i] = math.Float32frombits(ties[r.IntN(len(ties))])
			}
		}
		active.rows.toBF16(dst, x)
		for i, v := range x {
			if want := tensor.F32ToBF16(v); dst[i] != want {
				t.Fatalf("value %d of %d, %v (%#x): got %#x, want %#x", i, n, v, math.Float32bits(v), dst[i], want)
			}
		}
		for _, err := range []error{checkX(), check()} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}))
}

// Rows through a pool are cut into tasks at any block.
func TestQuantizeInParallel(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	x := fill(rand.New(rand.NewPCG(1, 2)), make([]float32, 3*rowGrain+5*qBlock), false)
	got, want := make([]QBlock, len(x)/qBlock), make([]QBlock, len(x)/qBlock)
	halves := make([]uint16, len(x))
	quantizeGeneric(want, x)
	eachTier(t, func(t *testing.T) {
		clear(got)
		clear(halves)
		p.Quantize(got, x)
		p.ToBF16(halves, x)
		for i := range want {
			if got[i].bits() != want[i].bits() {
				t.Fatalf("block %d differs", i)
			}
		}
		for i, v := range x {
			if halves[i] != tensor.F32ToBF16(v) {
				t.Fatalf("value %d is %#x", i, halves[i])
			}
		}
	})
}
