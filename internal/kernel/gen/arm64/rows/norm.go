package main

import . "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"

// squareSums is how many float64 sums of squares a row has; value i belongs to
// sum i%32. A square of a float32 is exact in float64, so that fusing it with
// the addition changes nothing: every tier gives the same bits.
const squareSums = 32

func rmsNorm() {
	Function("rmsNormNEON", "func(y, x, w []float32, eps float32)", "writes w · x / rms(x) for one row. y may be x.")
	n := length("x")
	inv := NewV()
	Scope(func() {
		// 1/√(sum/n + eps), rounded to float32 at the end.
		sum, x, eps := int(sumSquares()), int(NewV()), FloatParam("eps")
		Asm("SCVTFD %v, F%d", n, x)
		Asm("FDIVD F%d, F%d", x, sum)
		Asm("FCVTSD F%d, F%d", int(eps), x)
		Asm("FADDD F%d, F%d", x, sum)
		Asm("FSQRTD F%d, F%d", sum, sum)
		Asm("FMOVD $1.0, F%d", x)
		Asm("FDIVD F%d, F%d", sum, x)
		Asm("FCVTDS F%d, F%d", x, int(inv))
		DUP(inv, inv, 0)
	})
	Elements(4, n, pointer("y"), []R{pointer("x"), pointer("w")}, func(v [][]V) {
		for i, x := range v[0] {
			FMUL(x, x, inv)
			FMUL(x, x, v[1][i])
		}
	})
	Return()
}

func squares() {
	Function("squaresNEON", "func(x []float32) float64", "returns Σ x².")
	ReturnFloat64(sumSquares())
}

// sumSquares sums the squares of parameter x, in the first lane of its result.
func sumSquares() V {
	x, n, sums := pointer("x"), length("x"), NewVs(squareSums/2)
	for _, s := range sums {
		ZERO(s)
	}
	v, low, high := NewV(), NewV(), NewV()
	add := func(i int) {
		FCVTLD(low, v)
		FCVTL2D(high, v)
		FMLA2D(sums[2*i], low, low)
		FMLA2D(sums[2*i+1], high, high)
	}
	Loop(n, squareSums, func() {
		for i := range squareSums / 4 {
			LDRPost(v, x, 16)
			add(i)
		}
	})
	// What is left: whole vectors, then one with zeros behind.
	end := NewLabel("squared")
	for i := range squareSums / 4 {
		whole := NewLabel("whole")
		Asm("CMP $4, %v", n)
		Asm("BHS %s", whole)
		ZERO(v)
		LoadPart(v, x, n)
		add(i)
		Asm("B %s", end)
		Label(whole)
		LDRPost(v, x, 16)
		add(i)
		Add(n, -4)
	}
	Label(end)
	// The sums are added as a tree: j and j+16, j and j+8, …
	for half := len(sums) / 2; half > 0; half /= 2 {
		for j := range half {
			FADD2D(sums[j], sums[j], sums[j+half])
		}
	}
	FADDP2D(sums[0], sums[0])
	return sums[0]
}
