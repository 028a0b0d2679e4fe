package kernel

func indexerFor(c CPU) indexerKernels {
	if c.Tier != NEON {
		return indexerGeneric
	}
	return indexerKernels{
		sumHeads: sumHeadsNEON,
		hadamard: func(x []float32) { hadamardWide(x, hadamard64NEON, 64) },
		peakBits: peakBitsNEON,
		round: func(x []float32, inv, scale float32, f minifloat) {
			roundNEON(x, inv, scale, f.least, f.steps)
		},
		clamp: clampNEON,
	}
}
