package kernel

func attentionFor(c CPU) attentionKernels {
	if c.Tier != NEON {
		return attentionGeneric
	}
	return attentionKernels{
		scores:    [kvKinds]func(s, q []float32, keys []byte, keyDim int, next *byte){scoresF32NEON, scoresF16NEON, scoresBF16NEON, scoresQ8NEON},
		softmax:   softmaxNEON,
		values:    [kvKinds]func(out, w, spare []float32, values []byte, valueDim, from, to int, next *byte){valuesF32NEON, valuesF16NEON, valuesBF16NEON, valuesQ8NEON},
		merge:     mergeBlockNEON,
		normalise: normaliseNEON,
		pack:      [kvKinds]func(dst []byte, src []float32){packF32, packF16NEON, packBF16NEON, packQ8NEON},
	}
}

func packBF16NEON(dst []byte, src []float32) { toBF16NEON(values[uint16](dst), src) }
