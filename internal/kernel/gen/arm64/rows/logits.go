package main

import . "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"

const minusInf = 0xff800000

// peak returns the greatest value. FMAX and FMAXV are NaN where an operand is.
func peak() {
	Function("peakNEON", "func(x []float32) float32", "returns the greatest value of x, NaN if one is, -Inf if there is none.")
	x, n := pointer("x"), length("x")
	most, v := NewVs(4), NewVs(4)
	for _, m := range most {
		Broadcast(m, minusInf)
	}
	Loop(n, 16, func() {
		LDPPost(v[0], v[1], x, 32)
		LDPPost(v[2], v[3], x, 32)
		for i, v := range v {
			FMAX(most[i], most[i], v)
		}
	})
	Loop(n, 4, func() {
		LDRPost(v[0], x, 16)
		FMAX(most[0], most[0], v[0])
	})
	Broadcast(v[0], minusInf)
	LoadPart(v[0], x, n)
	FMAX(most[0], most[0], v[0])
	FMAX(most[0], most[0], most[1])
	FMAX(most[2], most[2], most[3])
	FMAX(most[0], most[0], most[2])
	FMAXV(most[0], most[0])
	ReturnFloat32(most[0])
}

// expSum adds in float64.
func expSum() {
	Function("expSumNEON", "func(x []float32, shift float32) float64", "returns the sum of exp(x - shift).")
	x, n := pointer("x"), length("x")
	shift, exp := FloatParam("shift"), NewExp()
	sums := NewVs(4)
	for _, s := range sums {
		ZERO(s)
	}
	add := func(v []V) {
		Scope(func() {
			for _, v := range v {
				FSUB(v, v, shift)
			}
			exp.Apply(v...)
			wide := NewVs(2)
			for i, v := range v {
				FCVTLD(wide[0], v)
				FCVTL2D(wide[1], v)
				FADD2D(sums[2*i], sums[2*i], wide[0])
				FADD2D(sums[2*i+1], sums[2*i+1], wide[1])
			}
		})
	}
	v := NewVs(2)
	Loop(n, 8, func() {
		LDPPost(v[0], v[1], x, 32)
		add(v)
	})
	Loop(n, 4, func() {
		LDRPost(v[0], x, 16)
		add(v[:1])
	})
	Broadcast(v[0], minusInf)
	LoadPart(v[0], x, n)
	add(v[:1])
	FADD2D(sums[0], sums[0], sums[1])
	FADD2D(sums[2], sums[2], sums[3])
	FADD2D(sums[0], sums[0], sums[2])
	FADDP2D(sums[0], sums[0])
	ReturnFloat64(sums[0])
}

// compared sets the bits of the values for which left >= floor, 16 of them at
// a time: n is a multiple of 64. left returns the next four.
func compared(set, n R, floor V, left func() V) {
	weights := NewV()
	LoadData(weights, Data("bitWeights", []byte{1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128}))
	Loop(n, 16, func() {
		is := NewVs(4)
		for _, is := range is {
			Scope(func() { FCMGE(is, left(), floor) })
		}
		UZP1H(is[0], is[0], is[1])
		UZP1H(is[2], is[2], is[3])
		UZP1B(is[0], is[0], is[2])
		AND(is[0], is[0], weights)
		for range 3 {
			ADDP16B(is[0], is[0], is[0])
		}
		ST1H(is[0], 0, set)
		Add(set, 2)
	})
	Return()
}

func atLeast() {
	Function("atLeastNEON", "func(set []uint64, x []float32, floor float32)", "sets a bit for each value, in whole words of 64: x >= floor.")
	x := pointer("x")
	compared(pointer("set"), length("x"), FloatParam("floor"), func() V {
		v := NewV()
		LDRPost(v, x, 16)
		return v
	})
}

func mask() {
	Function("maskNEON", "func(x []float32, allowed []uint64)", "sets x to -Inf where a bit is not set, in whole words of 64.")
	x, allowed, n := pointer("x"), pointer("allowed"), length("x")
	nothing, first := NewV(), NewV()
	Broadcast(nothing, minusInf)
	LoadData(first, FirstBits())
	Loop(n, 32, func() {
		bits, v, keep := NewV(), NewVs(2), NewV()
		LDRS(bits, allowed, 0)
		DUP(bits, bits, 0)
		Add(allowed, 4)
		for i := 0; i < 8; i += 2 {
			LDP(v[0], v[1], x, 0)
			for j, v := range v {
				Shift4S(keep, first, 4*(i+j))
				CMTST4S(keep, bits, keep)
				BIF(v, nothing, keep)
			}
			STPPost(v[0], v[1], x, 32)
		}
	})
	Return()
}
