package main

import . "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"

// streams is the number of streams of hyper-connections: x [streams, n]. As
// many factors fill a vector.
const streams = 4

// streamPointers loads the addresses of the streams of x, of n values each.
func streamPointers(n R) []R {
	x := []R{pointer("x")}
	for i := range streams - 1 {
		next := NewR()
		Asm("ADD %v<<2, %v, %v", n, x[i], next)
		x = append(x, next)
	}
	return x
}

func sumStreams() {
	Function("sumStreamsNEON", "func(y, x, w []float32)", "writes Σ w[j]·x[j] over the four streams x [4, len(y)].")
	n, w := length("y"), NewV()
	LDR(w, pointer("w"), 0)
	Elements(2, n, pointer("y"), streamPointers(n), func(v [][]V) {
		for i, sum := range v[0] {
			FMULElem(sum, sum, w, 0)
			for j := 1; j < streams; j++ {
				FMLAElem(sum, v[j][i], w, j)
			}
		}
	})
	Return()
}

func mixStreams() {
	Function("mixStreamsNEON", "func(x, y, post, comb []float32)",
		"replaces the four streams x [4, len(y)]: x[k] by post[k]·y + Σ comb[j][k]·x[j].")
	n, y := length("y"), pointer("y")
	x, post, comb := streamPointers(n), NewV(), NewVs(streams)
	LDR(post, pointer("post"), 0)
	from := pointer("comb")
	for j, v := range comb {
		LDR(v, from, 16*j)
	}
	step := func(load, store func(v V, base R)) {
		in, of := NewV(), NewVs(streams)
		load(in, y)
		for j, v := range of {
			load(v, x[j])
		}
		for k := range streams {
			sum := NewV()
			FMULElem(sum, in, post, k)
			for j, v := range of {
				FMLAElem(sum, v, comb[j], k)
			}
			store(sum, x[k])
		}
	}
	Loop(n, 4, func() {
		step(func(v V, base R) { LDR(v, base, 0) }, func(v V, base R) { STRPost(v, base, 16) })
		Add(y, 16)
	})
	done := NewLabel("done")
	Asm("CBZ %v, %s", n, done)
	step(func(v V, base R) { ZERO(v); LoadPart(v, base, n) }, func(v V, base R) { StorePart(v, base, n) })
	Label(done)
	Return()
}
