package main

import (
	"math"

	. "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"
)

func packF16() {
	Function("packF16NEON", "func(dst []byte, src []float32)", "rounds values to halves.")
	dst, src, n := pointer("dst"), pointer("src"), length("src")
	Loop(n, 8, func() {
		v, w := NewV(), NewV()
		LDPPost(v, w, src, 32)
		FCVTN(v, v)
		FCVTN2(v, w)
		STRPost(v, dst, 16)
	})
	Loop(n, 1, func() {
		v := NewV()
		LDRS(v, src, 0)
		FCVTN(v, v)
		ST1H(v, 0, dst)
		Add(src, 4)
		Add(dst, 2)
	})
	Return()
}

// packQ8 quantises blocks of 32 values: a scale and codes nearest to value ÷
// scale, as it is stored.
func packQ8() {
	Function("packQ8NEON", "func(dst []byte, src []float32)", "quantises blocks of 32 values.")
	dst, src, n := pointer("dst"), pointer("src"), length("src")
	magnitude, integers := NewV(), NewV()
	Broadcast(magnitude, 0x7fffffff)
	Broadcast(integers, math.Float32bits(1.5*(1<<23)))
	c127, reach, one := NewV(), NewV(), NewV()
	Broadcast(c127, math.Float32bits(127))
	Broadcast(reach, math.Float32bits(127.4))
	Broadcast(one, math.Float32bits(1))
	code, less := NewR(), NewR()
	Loop(n, 32, func() {
		x := NewVs(8)
		for i := 0; i < len(x); i += 2 {
			LDPPost(x[i], x[i+1], src, 32)
		}
		// As integers, magnitudes sort as they do as values, and NaN above them.
		peak, stored := NewV(), NewV()
		Scope(func() {
			size := NewV()
			ZERO(peak)
			for _, x := range x {
				AND(size, x, magnitude)
				UMAX4S(peak, peak, size)
			}
			UMAXV(peak, peak)
		})
		Scope(func() {
			v := NewV()
			FDIV(v, peak, c127)
			FCVTN(v, v)
			Asm("VMOV %v.H[0], %v", v, code)
			FCVTL(stored, v)
			// Where halves are subnormal, the scale can have shrunk so far that 127 steps
			// no longer reach the peak.
			reached := NewLabel("reached")
			FMUL(v, stored, reach)
			FCMGT(v, peak, v)
			Asm("VMOV %v.S[0], %v", v, less)
			Asm("CBZW %v, %s", less, reached)
			Add(code, 1)
			Asm("VMOV %v, %v.H[0]", code, v)
			FCVTL(stored, v)
			Label(reached)
		})
		Asm("MOVH %v, (%v)", code, dst)
		scaled := NewLabel("scaled")
		FDIV(stored, one, stored)
		Asm("TST $0x7fff, %v", code)
		Asm("BNE %s", scaled)
		ZERO(stored)
		Label(scaled)
		for _, x := range x {
			FMULElem(x, x, stored, 0)
			FADD(x, x, integers) // rounds; the last byte is the code
		}
		Narrow(x)
		STR(x[0], dst, 2)
		STR(x[4], dst, 18)
		Add(dst, 34)
	})
	Return()
}
