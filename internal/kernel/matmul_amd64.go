package kernel

import "github.com/foretoken/foretoken/internal/kernel/panel"

func panelsFor(c CPU) panelKernels {
	switch c.Tier {
	case Generic:
		return genericPanels()
	case AVX2:
		return panelsAVX2()
	}
	k := panelKernels{int8: int8AVX512, float: floatAVX512, unpack: unpackAVX512, tree: treeAVX512}
	if c.BF16 {
		k.bf16 = bf16AVX512
	}
	return k
}

var int8AVX512 = [][]dotFunc{
	panel.Q8:    {dotQ8T1AVX512, dotQ8T2AVX512, dotQ8T3AVX512, dotQ8T4AVX512, dotQ8T5AVX512},
	panel.Q4:    {dotQ4T1AVX512, dotQ4T2AVX512, dotQ4T3AVX512, dotQ4T4AVX512, dotQ4T5AVX512},
	panel.Q4M:   {dotQ4MT1AVX512, dotQ4MT2AVX512, dotQ4MT3AVX512, dotQ4MT4AVX512, dotQ4MT5AVX512},
	panel.Q5:    {dotQ5T1AVX512, dotQ5T2AVX512, dotQ5T3AVX512, dotQ5T4AVX512, dotQ5T5AVX512},
	panel.Q5M:   {dotQ5MT1AVX512, dotQ5MT2AVX512, dotQ5MT3AVX512, dotQ5MT4AVX512, dotQ5MT5AVX512},
	panel.Q2K:   {dotQ2KT1AVX512, dotQ2KT2AVX512, dotQ2KT3AVX512, dotQ2KT4AVX512, dotQ2KT5AVX512},
	panel.Q3K:   {dotQ3KT1AVX512, dotQ3KT2AVX512, dotQ3KT3AVX512, dotQ3KT4AVX512, dotQ3KT5AVX512},
	panel.Q4K:   {dotQ4KT1AVX512, dotQ4KT2AVX512, dotQ4KT3AVX512, dotQ4KT4AVX512, dotQ4KT5AVX512},
	panel.Q5K:   {dotQ5KT1AVX512, dotQ5KT2AVX512, dotQ5KT3AVX512, dotQ5KT4AVX512, dotQ5KT5AVX512},
	panel.Q6K:   {dotQ6KT1AVX512, dotQ6KT2AVX512, dotQ6KT3AVX512, dotQ6KT4AVX512, dotQ6KT5AVX512},
	panel.IQ4NL: {dotIQ4NLT1AVX512, dotIQ4NLT2AVX512, dotIQ4NLT3AVX512, dotIQ4NLT4AVX512, dotIQ4NLT5AVX512},
	panel.IQ4XS: {dotIQ4XST1AVX512, dotIQ4XST2AVX512, dotIQ4XST3AVX512, dotIQ4XST4AVX512, dotIQ4XST5AVX512},
	panel.MX4:   {dotMX4T1AVX512, dotMX4T2AVX512, dotMX4T3AVX512, dotMX4T4AVX512, dotMX4T5AVX512},
}

var bf16AVX512 = []dotFunc{dotBF16T1AVX512, dotBF16T2AVX512, dotBF16T3AVX512, dotBF16T4AVX512, dotBF16T5AVX512, dotBF16T6AVX512}

var floatAVX512 = [panel.NumKinds][]dotFunc{
	panel.F32:  {floatF32T1AVX512, floatF32T2AVX512, floatF32T3AVX512, floatF32T4AVX512, floatF32T5AVX512, floatF32T6AVX512},
	panel.F16:  {floatF16T1AVX512, floatF16T2AVX512, floatF16T3AVX512, floatF16T4AVX512, floatF16T5AVX512, floatF16T6AVX512},
	panel.BF16: {floatBF16T1AVX512, floatBF16T2AVX512, floatBF16T3AVX512, floatBF16T4AVX512, floatBF16T5AVX512, floatBF16T6AVX512},
}

var unpackAVX512 = [panel.NumKinds]unpackFunc{
	panel.Q8:    unpackQ8AVX512,
	panel.Q4:    unpackQ4AVX512,
	panel.Q4M:   unpackQ4MAVX512,
	panel.Q5:    unpackQ5AVX512,
	panel.Q5M:   unpackQ5MAVX512,
	panel.Q2K:   unpackQ2KAVX512,
	panel.Q3K:   unpackQ3KAVX512,
	panel.Q4K:   unpackQ4KAVX512,
	panel.Q5K:   unpackQ5KAVX512,
	panel.Q6K:   unpackQ6KAVX512,
	panel.IQ4NL: unpackIQ4NLAVX512,
	panel.IQ4XS: unpackIQ4XSAVX512,
	panel.MX4:   unpackMX4AVX512,
	panel.F8:    unpackF8AVX512,
}
