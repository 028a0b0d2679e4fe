package kernel

import "math"

// indexerKernels are the kernels of indexers, of the formats to which caches are
// rounded, and of clamped activations.
type indexerKernels struct {
	// sumHeads writes out[l] = Σ_h relu(s[h][l])·w[h] for s [len(w), KVBlock]: head
	// h belongs to sum h%headSums, and the sums are added as a tree. relu(NaN) is
	// NaN.
	sumHeads func(out *[KVBlock]float32, s, w []float32)

	// hadamard multiplies x, a power of two, by the Hadamard matrix of its length
	// (entries ±1): the butterflies of stride 1, then 2, 4 and so on. Sums of two
	// have the same bits on every tier.
	hadamard func(x []float32)

	// peakBits returns the greatest |x| as bits, in whose order an infinity is
	// above all numbers and a NaN above that.
	peakBits func(x []float32) uint32

	// round replaces x by scale · f(x·inv), f being the nearest value of a small
	// format. inv is the inverse of scale, a power of two. Exact on every tier.
	round func(x []float32, inv, scale float32, f minifloat)

	// clamp bounds x; a NaN stays.
	clamp func(x []float32, low, high float32)
}

var indexerGeneric = indexerKernels{
	sumHeads: sumHeadsGeneric,
	hadamard: hadamardGeneric,
	peakBits: peakBitsGeneric,
	round:    roundGeneric,
	clamp:    clampGeneric,
}

// headSums is how many sums of heads there are: as many chains of additions as
// hide their latency.
const headSums = 4

func sumHeadsGeneric(out *[KVBlock]float32, s, w []float32) {
	var sums [headSums][KVBlock]float32
	for h, a := range w {
		sum := &sums[h%headSums]
		for l, x := range s[h*KVBlock:][:KVBlock] {
			if x < 0 {
				x = 0
			}
			sum[l] += float32(x * a)
		}
	}
	for l := range out {
		out[l] = (sums[0][l] + sums[2][l]) + (sums[1][l] + sums[3][l])
	}
}

func hadamardGeneric(x []float32) { butterflies(x, 1) }

// butterflies runs those of strides from first on.
func butterflies(x []float32, first int) {
	for stride := first; stride < len(x); stride *= 2 {
		for at := 0; at < len(x); at += 2 * stride {
			a, b := x[at:at+stride], x[at+stride:at+2*stride]
			for i, v := range a {
				a[i], b[i] = v+b[i], v-b[i]
			}
		}
	}
}

func peakBitsGeneric(x []float32) (peak uint32) {
	for _, v := range x {
		peak = max(peak, math.Float32bits(v)&^(1<<31))
	}
	return peak
}

func roundGeneric(x []float32, inv, scale float32, f minifloat) {
	for i, v := range x {
		v = float32(v * inv)
		bits := math.Float32bits(v)
		// Added to 1.5·2²³ steps, of which it is a small number, a value is rounded to
		// whole ones, ties to even.
		steps := math.Float32frombits(max(bits&infBits, f.least) + f.steps)
		v = v + steps - steps
		x[i] = scale * math.Float32frombits(math.Float32bits(v)|bits&(1<<31)) // -0 stays
	}
}

func clampGeneric(x []float32, low, high float32) {
	for i, v := range x {
		x[i] = min(max(v, low), high)
	}
}
