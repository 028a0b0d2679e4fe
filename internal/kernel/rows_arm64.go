package kernel

import "unsafe"

func rowsFor(c CPU) rowKernels {
	if c.Tier != NEON {
		return genericRows()
	}
	return rowKernels{
		rmsNorm:     rmsNormNEON,
		add:         addNEON,
		scale:       scaleNEON,
		swiglu:      swigluNEON,
		geglu:       gegluNEON,
		rotate:      rotateNEON,
		rotatePairs: rotatePairsNEON,
		squares:     squaresNEON,
		sumStreams:  sumStreamsNEON,
		mixStreams:  mixStreamsNEON,
		quantize: func(dst []QBlock, x []float32) {
			quantizeNEON((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), x)
		},
		toBF16:     toBF16NEON,
		peak:       peakNEON,
		divide:     divideNEON,
		expSum:     expSumNEON,
		atLeast:    atLeastNEON,
		mask:       maskNEON,
		contenders: contendersNEON,
	}
}
