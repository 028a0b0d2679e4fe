package main

import (
	"math/bits"

	. "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"
)

// scores multiplies query vectors with the keys of a block: rows of a panel
// are dimensions, its columns positions.
func scores(k kind) {
	Function("scores"+k.name+"NEON", "func(s, q []float32, keys []byte, keyDim int, next *byte)",
		"writes the scores of query vectors q with the keys of a block.")
	f := scoresFunc{kind: k, s: pointer("s"), q: pointer("q"), stride: Param("keyDim"), column: NewR(), next: prefetcher{Param("next")}}
	n := length("s")
	Asm("LSR $5, %v, %v", n, n)
	Asm("LSL $2, %v, %[1]v", f.stride)
	eachTile(n, func(rows int) {
		Asm("MOVD $0, %v", f.column)
		passes(rows, columns/4, func(vectors int) { f.pass(rows, vectors) })
		// Keys are in the first-level cache now; so is what would be prefetched.
		Asm("MOVD keys_base+%d(FP), %v", Offset("keys_base"), f.next.at)
		Add(f.s, 4*columns*(rows-1)) // a pass has moved on by its columns
		for range rows {
			Asm("ADD %v, %v", f.stride, f.q)
		}
	})
	Return()
}

type scoresFunc struct {
	kind
	s, q, stride R
	column       R // the first one of the pass at hand
	next         prefetcher
}

// pass computes some vectors of rows of scores.
func (f *scoresFunc) pass(rows, vectors int) {
	acc := newSums(rows, vectors)
	keys, dims, q := pointer("keys"), Param("keyDim"), make([]R, rows)
	for r := range q {
		q[r] = NewR()
		if r == 0 {
			Asm("MOVD %v, %v", f.q, q[0])
		} else {
			Asm("ADD %v, %v, %v", f.stride, q[r-1], q[r])
		}
	}
	x := factors{
		four: func(x []V) {
			for r, x := range x {
				LDRPost(x, q[r], 16)
			}
		},
		one: func(x []V) {
			for r, x := range x {
				LDRS(x, q[r], 0)
				Add(q[r], 4)
			}
		},
	}
	at := func(row, number int) int { return 4*columns*row + 16*number }
	acc.clear()
	if f.kind != q8 {
		Asm("ADD %v<<%d, %v", f.column, bits.TrailingZeros(uint(f.size)), keys)
		acc.add(f.kind, keys, dims, columns, x, f.next)
		acc.pairs(func(row, number int, v, w V) { STP(v, w, f.s, at(row, number)) })
		f.move(vectors)
		return
	}

	// Sums of a panel's codes are scaled and added to those of the panels before.
	acc.pairs(func(row, number int, v, w V) { STP(v, w, f.s, at(row, number)) })
	Loop(dims, columns, func() {
		scales, codes, count := NewR(), NewR(), NewR()
		Asm("ADD %v<<1, %v, %v", f.column, keys, scales)
		Asm("ADD %v, %v, %v", f.column, keys, codes)
		Add(codes, q8Scales)
		Add(keys, q8Panel)
		acc.clear()
		Asm("MOVD $%d, %v", columns, count)
		acc.add(f.kind, codes, count, columns, x, f.next)
		scale, s := [2]V{NewV(), NewV()}, [2]V{NewV(), NewV()}
		acc.pairs(func(row, number int, v, w V) {
			f16.load(scale, scales, 2*4*number)
			LDP(s[0], s[1], f.s, at(row, number))
			FMLA(s[0], v, scale[0])
			FMLA(s[1], w, scale[1])
			STP(s[0], s[1], f.s, at(row, number))
		})
	})
	f.move(vectors)
}

// move moves on to the next columns.
func (f *scoresFunc) move(vectors int) {
	Add(f.column, 4*vectors)
	Add(f.s, 16*vectors)
}
