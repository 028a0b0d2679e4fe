package kernel

import "github.com/foretoken/foretoken/internal/tensor"

func attentionFor(c CPU) attentionKernels {
	switch c.Tier {
	case AVX512:
		k := attentionKernels{
			scores:    [kvKinds]func(s, q []float32, keys []byte, keyDim int, next *byte){scoresF32AVX512, scoresF16AVX512, scoresBF16AVX512, scoresQ8AVX512},
			softmax:   softmaxAVX512,
			values:    [kvKinds]func(out, w, spare []float32, values []byte, valueDim, from, to int, next *byte){valuesF32AVX512, valuesF16AVX512, valuesBF16AVX512, valuesQ8AVX512},
			merge:     mergeBlockAVX512,
			normalise: normaliseAVX512,
			pack:      [kvKinds]func(dst []byte, src []float32){packF32, packF16With512, packBF16With512, packQ8AVX512},
		}
		if c.BF16 {
			k.scores[kvPairs], k.values[kvPairs] = scoresPairsAVX512, valuesPairsAVX512
			k.softmaxBF16, k.pack[kvPairs] = softmaxBF16AVX512, packBF16With512
		}
		return k
	case AVX2:
		return attentionKernels{
			scores:    [kvKinds]func(s, q []float32, keys []byte, keyDim int, next *byte){scoresF32AVX2, scoresF16AVX2, scoresBF16AVX2, scoresQ8AVX2},
			softmax:   softmaxAVX2,
			values:    [kvKinds]func(out, w, spare []float32, values []byte, valueDim, from, to int, next *byte){valuesF32AVX2, valuesF16AVX2, valuesBF16AVX2, valuesQ8AVX2},
			merge:     mergeBlockAVX2,
			normalise: normaliseAVX2,
			pack:      [kvKinds]func(dst []byte, src []float32){packF32, packF16With256, packBF16With256, packQ8AVX2},
		}
	}
	return attentionGeneric
}

// The kernels that pack halves take whole vectors; plain Go packs the rest.

func packF16With512(dst []byte, src []float32) { packWhole(tensor.F16, packF16AVX512, 16, dst, src) }

func packBF16With512(dst []byte, src []float32) { packWhole(tensor.BF16, packBF16AVX512, 16, dst, src) }
func packF16With256(dst []byte, src []float32)  { packWhole(tensor.F16, packF16AVX2, 8, dst, src) }
func packBF16With256(dst []byte, src []float32) { packWhole(tensor.BF16, packBF16AVX2, 8, dst, src) }

func packWhole(d tensor.DType, kernel func(dst []byte, src []float32), lanes int, dst []byte, src []float32) {
	n := len(src) / lanes * lanes
	kernel(dst[:2*n], src[:n])
	encode(d, dst[2*n:], src[n:])
}
