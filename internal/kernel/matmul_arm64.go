package kernel

import "github.com/foretoken/foretoken/internal/kernel/panel"

func panelsFor(c CPU) panelKernels {
	if c.Tier != NEON {
		return genericPanels()
	}
	k := panelKernels{int8: int8NEON, float: floatNEON, unpack: unpackNEON, tree: treeNEON}
	if c.DotProd {
		k.int8 = int8DotProd
	}
	return k
}

// int8DotProd uses SDOT, which multiplies four columns at once.
var int8DotProd = [][]dotFunc{
	panel.Q8:    {dotQ8T1DotProd, dotQ8T2DotProd, dotQ8T3DotProd, dotQ8T4DotProd},
	panel.Q4:    {dotQ4T1DotProd, dotQ4T2DotProd, dotQ4T3DotProd, dotQ4T4DotProd},
	panel.Q4M:   {dotQ4MT1DotProd, dotQ4MT2DotProd, dotQ4MT3DotProd, dotQ4MT4DotProd},
	panel.Q5:    {dotQ5T1DotProd, dotQ5T2DotProd, dotQ5T3DotProd, dotQ5T4DotProd},
	panel.Q5M:   {dotQ5MT1DotProd, dotQ5MT2DotProd, dotQ5MT3DotProd, dotQ5MT4DotProd},
	panel.Q2K:   {dotQ2KT1DotProd, dotQ2KT2DotProd, dotQ2KT3DotProd, dotQ2KT4DotProd},
	panel.Q3K:   {dotQ3KT1DotProd, dotQ3KT2DotProd, dotQ3KT3DotProd, dotQ3KT4DotProd},
	panel.Q4K:   {dotQ4KT1DotProd, dotQ4KT2DotProd, dotQ4KT3DotProd, dotQ4KT4DotProd},
	panel.Q5K:   {dotQ5KT1DotProd, dotQ5KT2DotProd, dotQ5KT3DotProd, dotQ5KT4DotProd},
	panel.Q6K:   {dotQ6KT1DotProd, dotQ6KT2DotProd, dotQ6KT3DotProd, dotQ6KT4DotProd},
	panel.IQ4NL: {dotIQ4NLT1DotProd, dotIQ4NLT2DotProd, dotIQ4NLT3DotProd, dotIQ4NLT4DotProd},
	panel.IQ4XS: {dotIQ4XST1DotProd, dotIQ4XST2DotProd, dotIQ4XST3DotProd, dotIQ4XST4DotProd},
	panel.MX4:   {dotMX4T1DotProd, dotMX4T2DotProd, dotMX4T3DotProd, dotMX4T4DotProd},
}

var int8NEON = [][]dotFunc{
	panel.Q8:    {dotQ8T1NEON, dotQ8T2NEON},
	panel.Q4:    {dotQ4T1NEON, dotQ4T2NEON},
	panel.Q4M:   {dotQ4MT1NEON, dotQ4MT2NEON},
	panel.Q5:    {dotQ5T1NEON, dotQ5T2NEON},
	panel.Q5M:   {dotQ5MT1NEON, dotQ5MT2NEON},
	panel.Q2K:   {dotQ2KT1NEON, dotQ2KT2NEON},
	panel.Q3K:   {dotQ3KT1NEON, dotQ3KT2NEON},
	panel.Q4K:   {dotQ4KT1NEON, dotQ4KT2NEON},
	panel.Q5K:   {dotQ5KT1NEON, dotQ5KT2NEON},
	panel.Q6K:   {dotQ6KT1NEON, dotQ6KT2NEON},
	panel.IQ4NL: {dotIQ4NLT1NEON, dotIQ4NLT2NEON},
	panel.IQ4XS: {dotIQ4XST1NEON, dotIQ4XST2NEON},
	panel.MX4:   {dotMX4T1NEON, dotMX4T2NEON},
}

var floatNEON = [panel.NumKinds][]dotFunc{
	panel.F32:  {floatF32T1NEON, floatF32T2NEON, floatF32T3NEON, floatF32T4NEON, floatF32T5NEON, floatF32T6NEON},
	panel.F16:  {floatF16T1NEON, floatF16T2NEON, floatF16T3NEON, floatF16T4NEON, floatF16T5NEON, floatF16T6NEON},
	panel.BF16: {floatBF16T1NEON, floatBF16T2NEON, floatBF16T3NEON, floatBF16T4NEON, floatBF16T5NEON, floatBF16T6NEON},
}

var unpackNEON = [panel.NumKinds]unpackFunc{
	panel.Q8:    unpackQ8NEON,
	panel.Q4:    unpackQ4NEON,
	panel.Q4M:   unpackQ4MNEON,
	panel.Q5:    unpackQ5NEON,
	panel.Q5M:   unpackQ5MNEON,
	panel.Q2K:   unpackQ2KNEON,
	panel.Q3K:   unpackQ3KNEON,
	panel.Q4K:   unpackQ4KNEON,
	panel.Q5K:   unpackQ5KNEON,
	panel.Q6K:   unpackQ6KNEON,
	panel.IQ4NL: unpackIQ4NLNEON,
	panel.IQ4XS: unpackIQ4XSNEON,
	panel.MX4:   unpackMX4NEON,
	panel.F8:    unpackF8NEON,
}
