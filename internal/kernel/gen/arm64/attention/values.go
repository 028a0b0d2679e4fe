package main

import (
	"math/bits"

	. "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"
)

// values adds the weighted values of a block to outputs: rows of a panel are
// positions, its columns dimensions.
func values(k kind) {
	Function("values"+k.name+"NEON", "func(out, w, spare []float32, values []byte, valueDim, from, to int, next *byte)",
		"adds to out the values of positions [from, to) of a block, weighted with w.")
	f := &valuesFunc{kind: k, w: pointer("w"), out: NewR(), stride: Param("valueDim"), next: prefetcher{Param("next")}}
	outs, n := pointer("out"), length("w")
	Asm("LSR $5, %v, %v", n, n)
	Asm("LSL $2, %v, %[1]v", f.stride)
	eachTile(n, func(rows int) {
		Asm("MOVD %v, %v", outs, f.out)
		f.rows(rows)
		// Values are in the first-level cache now; so is what would be prefetched.
		Asm("MOVD values_base+%d(FP), %v", Offset("values_base"), f.next.at)
		Add(f.w, 4*columns*rows)
		for range rows {
			Asm("ADD %v, %v", f.stride, outs)
		}
	})
	Return()
}

type valuesFunc struct {
	kind
	w, stride R
	out       R // of the first row and the panel at hand
	next      prefetcher
}

// rows takes a tile through all panels, of which the last may be narrow.
func (f *valuesFunc) rows(rows int) {
	panel, dims := pointer("values"), Param("valueDim")
	Loop(dims, columns, func() {
		f.panel(rows, columns, panel)
		Add(panel, f.kind.panel())
	})
	if f.kind != q8 {
		done := NewLabel("done")
		Asm("CBZ %v, %s", dims, done)
		Scope(func() { f.panel(rows, columns/2, panel) })
		Label(done)
	}
}

// panel adds a panel that is wide columns wide, and moves on to the outputs of
// the next.
func (f *valuesFunc) panel(rows, wide int, panel R) {
	weights, at := f.w, NewR()
	Asm("MOVD %v, %v", panel, at)
	if f.kind == q8 {
		weights = f.scaled(rows, panel)
		Add(at, q8Scales)
	}
	passes(rows, wide/4, func(vectors int) {
		acc := newSums(rows, vectors)
		f.each(acc, LDP)
		lane, left, row, w := Param("from"), Param("to"), NewR(), NewR()
		Asm("SUB %v, %v", lane, left)
		Asm("ADD %v<<%d, %v, %v", lane, bits.TrailingZeros(uint(wide*f.size)), at, row)
		Asm("ADD %v<<2, %v, %v", lane, weights, w)
		acc.add(f.kind, row, left, wide, factors{
			four: func(x []V) {
				for r, x := range x {
					LDR(x, w, 4*columns*r)
				}
				Add(w, 16)
			},
			one: func(x []V) {
				for r, x := range x {
					LDRS(x, w, 4*columns*r)
				}
				Add(w, 4)
			},
		}, f.next)
		f.each(acc, STP)
		Add(at, 4*vectors*f.size)
		Add(f.out, 16*vectors)
	})
}

// each moves the outputs of a tile.
func (f *valuesFunc) each(acc sums, move func(v, w V, base R, offset int)) {
	Scope(func() {
		at := NewR()
		for r, row := range acc {
			if r == 0 {
				Asm("MOVD %v, %v", f.out, at)
			} else {
				Asm("ADD %v, %v", f.stride, at)
			}
			for i := 0; i < len(row); i += 2 {
				move(row[i], row[i+1], at, 16*i)
			}
		}
	})
}

// scaled multiplies weights with the scales of a panel's positions.
func (f *valuesFunc) scaled(rows int, panel R) R {
	spare := pointer("spare")
	Scope(func() {
		scale, w := [2]V{NewV(), NewV()}, [2]V{NewV(), NewV()}
		for lane := 0; lane < columns; lane += 8 {
			f16.load(scale, panel, 2*lane)
			for r := range rows {
				at := 4 * (columns*r + lane)
				LDP(w[0], w[1], f.w, at)
				FMUL(w[0], w[0], scale[0])
				FMUL(w[1], w[1], scale[1])
				STP(w[0], w[1], spare, at)
			}
		}
	})
	return spare
}
