package kernel

import "github.com/foretoken/foretoken/internal/kernel/panel"

// panelsAVX2 has no products of bfloat16: AVX2 has no instruction for them.
func panelsAVX2() panelKernels {
	return panelKernels{int8: int8AVX2, float: floatAVX2, unpack: unpackAVX2, tree: treeAVX2}
}

var int8AVX2 = [][]dotFunc{
	panel.Q8:    {dotQ8T1AVX2, dotQ8T2AVX2, dotQ8T3AVX2, dotQ8T4AVX2, dotQ8T5AVX2},
	panel.Q4:    {dotQ4T1AVX2, dotQ4T2AVX2, dotQ4T3AVX2, dotQ4T4AVX2, dotQ4T5AVX2},
	panel.Q4M:   {dotQ4MT1AVX2, dotQ4MT2AVX2, dotQ4MT3AVX2, dotQ4MT4AVX2, dotQ4MT5AVX2},
	panel.Q5:    {dotQ5T1AVX2, dotQ5T2AVX2, dotQ5T3AVX2, dotQ5T4AVX2, dotQ5T5AVX2},
	panel.Q5M:   {dotQ5MT1AVX2, dotQ5MT2AVX2, dotQ5MT3AVX2, dotQ5MT4AVX2, dotQ5MT5AVX2},
	panel.Q2K:   {dotQ2KT1AVX2, dotQ2KT2AVX2, dotQ2KT3AVX2, dotQ2KT4AVX2, dotQ2KT5AVX2},
	panel.Q3K:   {dotQ3KT1AVX2, dotQ3KT2AVX2, dotQ3KT3AVX2, dotQ3KT4AVX2, dotQ3KT5AVX2},
	panel.Q4K:   {dotQ4KT1AVX2, dotQ4KT2AVX2, dotQ4KT3AVX2, dotQ4KT4AVX2, dotQ4KT5AVX2},
	panel.Q5K:   {dotQ5KT1AVX2, dotQ5KT2AVX2, dotQ5KT3AVX2, dotQ5KT4AVX2, dotQ5KT5AVX2},
	panel.Q6K:   {dotQ6KT1AVX2, dotQ6KT2AVX2, dotQ6KT3AVX2, dotQ6KT4AVX2, dotQ6KT5AVX2},
	panel.IQ4NL: {dotIQ4NLT1AVX2, dotIQ4NLT2AVX2, dotIQ4NLT3AVX2, dotIQ4NLT4AVX2, dotIQ4NLT5AVX2},
	panel.IQ4XS: {dotIQ4XST1AVX2, dotIQ4XST2AVX2, dotIQ4XST3AVX2, dotIQ4XST4AVX2, dotIQ4XST5AVX2},
	panel.MX4:   {dotMX4T1AVX2, dotMX4T2AVX2, dotMX4T3AVX2, dotMX4T4AVX2, dotMX4T5AVX2},
}

var floatAVX2 = [panel.NumKinds][]dotFunc{
	panel.F32:  {floatF32T1AVX2, floatF32T2AVX2, floatF32T3AVX2, floatF32T4AVX2, floatF32T5AVX2, floatF32T6AVX2},
	panel.F16:  {floatF16T1AVX2, floatF16T2AVX2, floatF16T3AVX2, floatF16T4AVX2, floatF16T5AVX2, floatF16T6AVX2},
	panel.BF16: {floatBF16T1AVX2, floatBF16T2AVX2, floatBF16T3AVX2, floatBF16T4AVX2, floatBF16T5AVX2, floatBF16T6AVX2},
}

var unpackAVX2 = [panel.NumKinds]unpackFunc{
	panel.Q8:    unpackQ8AVX2,
	panel.Q4:    unpackQ4AVX2,
	panel.Q4M:   unpackQ4MAVX2,
	panel.Q5:    unpackQ5AVX2,
	panel.Q5M:   unpackQ5MAVX2,
	panel.Q2K:   unpackQ2KAVX2,
	panel.Q3K:   unpackQ3KAVX2,
	panel.Q4K:   unpackQ4KAVX2,
	panel.Q5K:   unpackQ5KAVX2,
	panel.Q6K:   unpackQ6KAVX2,
	panel.IQ4NL: unpackIQ4NLAVX2,
	panel.IQ4XS: unpackIQ4XSAVX2,
	panel.MX4:   unpackMX4AVX2,
	panel.F8:    unpackF8AVX2,
}
