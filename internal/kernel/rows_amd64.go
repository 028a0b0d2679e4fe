package kernel

import "unsafe"

func rowsFor(c CPU) rowKernels {
	switch c.Tier {
	case AVX512:
		return rowKernels{
			rmsNorm:     rmsNormAVX512,
			add:         addAVX512,
			scale:       scaleAVX512,
			swiglu:      swigluAVX512,
			geglu:       gegluAVX512,
			rotate:      rotateAVX512,
			rotatePairs: rotatePairsAVX512,
			squares:     squaresAVX512,
			sumStreams:  sumStreamsAVX512,
			mixStreams:  mixStreamsAVX512,
			quantize:    quantizeByFours,
			toBF16:      toBF16AVX512,
			peak:        peakAVX512,
			divide:      divideAVX512,
			expSum:      expSumAVX512,
			atLeast:     atLeastAVX512,
			mask:        maskAVX512,
			contenders:  contendersAVX512,
		}
	case AVX2:
		return rowKernels{
			rmsNorm:     rmsNormAVX2,
			add:         addAVX2,
			scale:       scaleAVX2,
			swiglu:      swigluAVX2,
			geglu:       gegluAVX2,
			rotate:      rotateAVX2,
			rotatePairs: rotatePairsAVX2,
			squares:     squaresAVX2,
			sumStreams:  sumStreamsAVX2,
			mixStreams:  mixStreamsAVX2,
			quantize:    quantizeOneByOne,
			toBF16:      toBF16AVX2,
			peak:        peakAVX2,
			divide:      divideAVX2,
			expSum:      expSumAVX2,
			atLeast:     atLeastAVX2,
			mask:        maskAVX2,
			contenders:  contendersAVX2,
		}
	}
	return genericRows()
}

func quantizeOneByOne(dst []QBlock, x []float32) {
	quantizeAVX2((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), x)
}

func quantizeByFours(dst []QBlock, x []float32) {
	for len(dst) > 0 {
		n := quantizeFoursAVX512((*byte)(unsafe.Pointer(&dst[0])), x)
		dst, x = dst[n:], x[n*qBlock:]
		n = min(4, len(dst))
		quantizeOneByOne(dst[:n], x[:n*qBlock])
		dst, x = dst[n:], x[n*qBlock:]
	}
}
