package main

import (
	"math"

	. "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"
)

// SplitMix64 (Steele, Lea, Flood 2014): number i is mix(state + (i+1)·splitGamma).
const (
	splitGamma = 0x9e3779b97f4a7c15
	splitMul1  = 0xbf58476d1ce4e5b9
	splitMul2  = 0x94d049bb133111eb
)

// contenders bounds Gumbel noise from above without a logarithm, as the amd64
// kernel does, which explains it. NEON cannot multiply 64 bits: the numbers
// come from general registers.
func contenders() {
	Function("contendersNEON", "func(x []float32, state uint64, floor float32) (set [16]uint64)",
		"sets a bit for each value, in whole words of 64: x - bits(m)·ln2·2⁻²³ >= floor.")
	x, n, state, set := pointer("x"), length("x"), Param("state"), Result("set")
	k, zero, floor := broadcast(math.Ln2/(1<<23)), NewV(), FloatParam("floor")
	ZERO(zero)
	for i := range 4 {
		STP(zero, zero, set, 32*i)
	}
	constant := func(c uint64) R {
		r := NewR()
		Asm("MOVD $0x%x, %v", c, r)
		return r
	}
	gamma, mul1, mul2 := constant(splitGamma), constant(splitMul1), constant(splitMul2)
	compared(set, n, floor, func() V {
		v, m := NewV(), NewV()
		for i := range 4 {
			z := NewR()
			Asm("ADD %v, %v", gamma, state)
			Asm("EOR %v>>30, %v, %v", state, state, z)
			Asm("MUL %v, %v, %v", mul1, z, z)
			Asm("EOR %v>>27, %[1]v, %[1]v", z)
			Asm("MUL %v, %v, %v", mul2, z, z)
			Asm("LSR $33, %v, %[1]v", z)
			Asm("VMOV %v, %v.S[%d]", z, m, i)
		}
		LDRPost(v, x, 16)
		SCVTF(m, m)
		SCVTF(m, m) // of its bits
		FMLS(v, m, k)
		return v
	})
}
