package main

import (
	"math"

	. "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"
)

// softmax turns the scores of a block into weights.
func softmax() {
	Function("softmaxNEON", "func(s []float32, lanes []uint32, high, sum []float32, scale float32)",
		"turns scores into weights where a lane is set, and finds their maximum and sum.")
	s, lanes, n := pointer("s"), pointer("lanes"), length("lanes")
	high, sum, scale := pointer("high"), pointer("sum"), FloatParam("scale")
	exp, nothing, first := NewExp(), NewV(), NewV()
	Broadcast(nothing, 0xff800000) // -Inf
	LoadData(first, FirstBits())
	Loop(n, 1, func() {
		x, top := NewVs(columns/4), NewV()
		Scope(func() {
			seen, keep := NewV(), NewV()
			LDRS(seen, lanes, 0)
			DUP(seen, seen, 0)
			Add(lanes, 4)
			for i, x := range x {
				LDR(x, s, 16*i)
				FMUL(x, x, scale)
				Shift4S(keep, first, 4*i)
				CMTST4S(keep, seen, keep)
				BIF(x, nothing, keep)
			}
		})
		// The maximum, no less than -MaxFloat32, passing NaN over.
		Broadcast(top, math.Float32bits(-math.MaxFloat32))
		for _, x := range x {
			FMAXNM(top, top, x)
		}
		FMAXNMV(top, top)
		ST1(top, 0, high)
		Add(high, 4)
		DUP(top, top, 0)
		for _, x := range x {
			FSUB(x, x, top)
		}
		exp.Apply(x[:4]...)
		exp.Apply(x[4:]...)
		for i := 0; i < len(x); i += 2 {
			STPPost(x[i], x[i+1], s, 32)
		}
		// The sum as a tree: halves, quarters, and so on.
		for n := len(x) / 2; n > 0; n /= 2 {
			for i := range n {
				FADD(x[i], x[i], x[i+n])
			}
		}
		EXT(x[1], x[0], x[0], 8)
		FADD(x[0], x[0], x[1])
		FADDP(x[0], x[0])
		ST1(x[0], 0, sum)
		Add(sum, 4)
	})
	Return()
}
