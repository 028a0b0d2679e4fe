package kernel

import "math"

// A minifloat is a format of few bits, as rounding to it takes it.
type minifloat struct {
	least uint32 // 2 to the exponent of the least normal value, as bits
	steps uint32 // added to the bits of 2ᵉ it makes 1.5·2²³ units in the last place of values from 2ᵉ on
	top   uint32 // the greatest value, as bits
	floor uint32 // what the peak of a block counts as at least, as bits
}

const infBits = 0xff << 23 // of an infinity

// newMinifloat describes a format whose normal values begin at 2 to the least
// exponent and have a fraction of some bits, up to top. The peak of a block
// counts as floor at least.
func newMinifloat(least, fraction int, top, floor float32) minifloat {
	return minifloat{
		least: uint32(exponentBias+least) << 23,
		steps: uint32(23-fraction)<<23 | 1<<22,
		top:   math.Float32bits(top),
		floor: math.Float32bits(floor),
	}
}

const exponentBias = 127 // of a float32's exponent

var (
	e4m3 = newMinifloat(-6, 3, 448, 1e-4)
	e2m1 = newMinifloat(0, 1, 6, 6*0x1p-126) // 0, ½, 1, 1½, 2, 3, 4, 6
)

// RoundE4M3 rounds x as fp8 with one scale for each n values would: to s·v with
// v in e4m3 (nearest, ties to even) and s the least power of two with which
// the greatest |x| of the n, or 1e-4 if that is more, is at most 448·s. This is
// DeepSeek's activation quantisation with scales in ue8m0. If one of the n is
// NaN or infinite, all become NaN.
func (p *Pool) RoundE4M3(x []float32, n int) { p.round(x, n, e4m3) }

// RoundE2M1 rounds x as RoundE4M3 does, to fp4: v in e2m1, and the greatest |x|
// of the n, or 6·2⁻¹²⁶ if that is more, at most 6·s.
func (p *Pool) RoundE2M1(x []float32, n int) { p.round(x, n, e2m1) }

func (p *Pool) round(x []float32, n int, f minifloat) {
	if len(x) == 0 {
		return
	}
	p.indexer.round = roundJob{x, n, f}
	p.splitRows(len(x)/n, n, &p.indexer.round)
}

type roundJob struct {
	x      []float32
	n      int
	format minifloat
}

func (j *roundJob) do(_, from, to int) {
	for at := from * j.n; at < to*j.n; at += j.n {
		j.format.round(j.x[at : at+j.n])
	}
}

// round rounds a block.
func (f minifloat) round(x []float32) {
	peak := active.indexer.peakBits(x)
	if peak >= infBits {
		for i := range x {
			x[i] = float32(math.NaN())
		}
		return
	}
	// The exponent of peak less that of top, and one more if its fraction is above
	// that of top: then the sum carries.
	const fraction = 1<<23 - 1
	scale := (max(peak, f.floor)+fraction-f.top&fraction)&infBits - f.top&infBits + exponentBias<<23
	inv := 2*exponentBias<<23 - scale
	active.indexer.round(x, math.Float32frombits(inv), math.Float32frombits(scale), f)
}
