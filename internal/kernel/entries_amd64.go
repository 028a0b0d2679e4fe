package kernel

func entriesFor(c CPU) entryKernels {
	switch c.Tier {
	case AVX512:
		halves, words := atLeast(32, packKeys16AVX512, kvF16), atLeast(64, packKeys32AVX512, kvF32)
		k := entryKernels{
			keys:   [kvKinds]packEntries{words, halves, halves, packKeysQ8AVX512},
			values: [kvKinds]packEntries{packValues32AVX512, packValues16AVX512, packValues16AVX512, packValuesQ8AVX512},
		}
		if c.BF16 {
			k.keys[kvPairs], k.values[kvPairs] = words, packValuesPairsAVX512
		}
		return k
	case AVX2:
		halves, words := atLeast(16, packKeys16AVX2, kvF16), atLeast(32, packKeys32AVX2, kvF32)
		return entryKernels{
			keys:   [kvKinds]packEntries{words, halves, halves, packKeysQ8AVX2},
			values: [kvKinds]packEntries{packValues32AVX2, packValues16AVX2, packValues16AVX2, packValuesQ8AVX2},
		}
	}
	return entriesGeneric
}
