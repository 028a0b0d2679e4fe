package main

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/kernel/panel"

	. "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"
)

// dotFloat adds to out the products of a panel of floats with T rows of float32,
// each block summed by itself first: all outputs at once for up to three rows,
// half of them at a time for more.
func dotFloat(k *panel.Kind, T int) {
	Function(fmt.Sprintf("float%sT%dNEON", k.Name, T), dotSignature,
		fmt.Sprintf("adds the products of a panel of %s and %d rows of float32 to out.", k.Name, T))
	w, n, pf := Param("w"), Param("groups"), newPrefetcher()
	a := rows("a", T, "aStride")
	out := rows("out", T, "outStride")
	vectors, parts := panel.Rows/4, 1
	if T > 3 {
		vectors, parts = vectors/2, 2
	}
	const steps = panel.Block / 4
	lines := k.GroupBytes() / line / parts / steps
	sums := make([][]V, T)
	for t := range sums {
		sums[t] = NewVs(vectors)
	}
	part := func() {
		for _, row := range sums {
			for _, s := range row {
				ZERO(s)
			}
		}
		Times("columns", steps, func() {
			pf.lines(lines)
			x := NewVs(T)
			for t := range x {
				LDRPost(x[t], a[t], 16)
			}
			fourColumns(k, w, vectors, func(col, vector int, weights V) {
				for t := range T {
					FMLAElem(sums[t][vector], weights, x[t], col)
				}
			})
			Add(w, k.GroupBytes()/steps)
		})
		y := newPair()
		for t, r := range out {
			for i := 0; i < vectors; i += 2 {
				LDP(y[0], y[1], r, 16*i)
				FADD(y[0], y[0], sums[t][i])
				FADD(y[1], y[1], sums[t][i+1])
				STP(y[0], y[1], r, 16*i)
			}
		}
	}
	Repeat("block", n, func() {
		if parts == 1 {
			part()
		} else {
			half := k.GroupBytes() / panel.Block / 2 // bytes of a column
			if k.ID == panel.BF16 {
				half *= 2 // of two columns
			}
			Times("half", parts, func() {
				part()
				Add(w, half-k.GroupBytes())
				move(a, -4*panel.Block)
				move(out, 16*vectors)
			})
			Add(w, k.GroupBytes()-parts*half)
			move(a, 4*panel.Block)
			move(out, -4*panel.Rows)
		}
		pf.block(lines * parts * steps)
	})
	Return()
}

// fourColumns reads four columns of the first rows of a panel at w and calls f
// with each vector of a column, as float32.
func fourColumns(k *panel.Kind, w R, vectors int, f func(col, vector int, weights V)) {
	Scope(func() {
		v := newPair()
		switch k.ID {
		case panel.F32:
			for col := range 4 {
				for i := 0; i < vectors; i += 2 {
					LDP(v[0], v[1], w, 4*panel.Rows*col+16*i)
					f(col, i, v[0])
					f(col, i+1, v[1])
				}
			}
		case panel.F16:
			for col := range 4 {
				for i := 0; i < vectors; i += 2 {
					LDR(v[0], w, 2*panel.Rows*col+8*i)
					FCVTL2(v[1], v[0])
					FCVTL(v[0], v[0])
					f(col, i, v[0])
					f(col, i+1, v[1])
				}
			}
		case panel.BF16: // two columns in a word
			for col := 0; col < 4; col += 2 {
				for i := range vectors {
					LDR(v[1], w, 2*panel.Rows*col+16*i)
					Shift4S(v[0], v[1], 16)
					f(col, i, v[0])
					Shift4S(v[1], v[1], -16)
					Shift4S(v[1], v[1], 16)
					f(col+1, i, v[1])
				}
			}
		}
	})
}
