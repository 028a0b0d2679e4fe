package kernel

func entriesFor(c CPU) entryKernels {
	if c.Tier != NEON {
		return entriesGeneric
	}
	halves, words := atLeast(16, packKeys16NEON, kvF16), atLeast(16, packKeys32NEON, kvF32)
	return entryKernels{
		keys:   [kvKinds]packEntries{words, halves, halves, packKeysQ8NEON},
		values: [kvKinds]packEntries{packValues32NEON, packValues16NEON, packValues16NEON, packValuesQ8NEON},
	}
}
