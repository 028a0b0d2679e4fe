package kernel

func indexerFor(c CPU) indexerKernels {
	switch c.Tier {
	case AVX512:
		return indexerKernels{
			sumHeads: sumHeadsAVX512,
			hadamard: func(x []float32) { hadamardWide(x, hadamardEightsAVX512, 128) },
			peakBits: peakBitsAVX512,
			round: func(x []float32, inv, scale float32, f minifloat) {
				roundAVX512(x, inv, scale, f.least, f.steps)
			},
			clamp: clampAVX512,
		}
	case AVX2:
		return indexerKernels{
			sumHeads: sumHeadsAVX2,
			hadamard: func(x []float32) { hadamardWide(x, hadamardEightsAVX2, 64) },
			peakBits: peakBitsAVX2,
			round: func(x []float32, inv, scale float32, f minifloat) {
				roundAVX2(x, inv, scale, f.least, f.steps)
			},
			clamp: clampAVX2,
		}
	}
	return indexerGeneric
}
