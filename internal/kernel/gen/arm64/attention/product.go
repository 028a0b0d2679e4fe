package main

import (
	. "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"
)

// Scores and values are the same product: a tile of rows times a panel, a row
// of which is read, converted and multiplied with one value of each row of the
// tile. An element of the result is one chain of fused multiply-adds in a lane
// of its own, so tiles of all sizes give the same bits.

// most is how many rows a tile has, and accumulators how many vectors of sums
// leave room for six vectors of factors and two of the panel.
const (
	most         = 6
	accumulators = 24
)

// eachTile cuts n rows into tiles and runs body, which is written once for
// each size.
func eachTile(n R, body func(rows int)) {
	end, below := NewLabel("end"), make([]string, most)
	Loop(n, most, func() { body(most) })
	for rows := most - 1; rows > 0; rows-- {
		below[rows] = NewLabel("not")
		Asm("CMP $%d, %v", rows, n)
		Asm("BNE %s", below[rows])
		Scope(func() { body(rows) })
		Asm("B %s", end)
		Label(below[rows])
	}
	Label(end)
}

// passes runs pass over all vectors of a panel, or once for each half of them
// if their sums would not fit in registers.
func passes(rows, vectors int, pass func(vectors int)) {
	if rows*vectors <= accumulators {
		Scope(func() { pass(vectors) })
	} else {
		Times("half", 2, func() { pass(vectors / 2) })
	}
}

// sums are those of a tile: vectors of each row.
type sums [][]V

func newSums(rows, vectors int) sums {
	s := make(sums, rows)
	for r := range s {
		s[r] = NewVs(vectors)
	}
	return s
}

func (s sums) clear() {
	for _, row := range s {
		for _, v := range row {
			ZERO(v)
		}
	}
}

// pairs runs do for every two vectors, that of the given number first.
func (s sums) pairs(do func(row, number int, v, w V)) {
	for r, row := range s {
		for i := 0; i < len(row); i += 2 {
			do(r, i, row[i], row[i+1])
		}
	}
}

// factors are the values that rows of a panel are multiplied with, one of each
// row of the tile: four loads those of the next four rows of the panel, one
// those of the next.
type factors struct{ four, one func(x []V) }

// add adds the products with count rows of a panel, wide columns each, of which
// those at hand begin at row. next is asked for as many lines as are read.
func (s sums) add(k kind, row, count R, wide int, x factors, next prefetcher) {
	step := func(rows int, load func(x []V)) {
		next.lines(4 * len(s[0]) * k.size * rows)
		factors := NewVs(len(s))
		load(factors)
		v := [2]V{NewV(), NewV()}
		for i := range rows {
			for j := 0; j < len(s[0]); j += 2 {
				k.load(v, row, k.size*(wide*i+4*j))
				for r := range s {
					FMLAElem(s[r][j], v[0], factors[r], i)
					FMLAElem(s[r][j+1], v[1], factors[r], i)
				}
			}
		}
		Add(row, wide*k.size*rows)
	}
	Loop(count, 4, func() { step(4, x.four) })
	Loop(count, 1, func() { step(1, x.one) })
}

// prefetcher asks for lines of the memory that is read next.
type prefetcher struct{ at R }

func (p prefetcher) lines(bytes int) {
	for i := 0; i < bytes/64; i++ {
		PRFM(p.at, 64*i)
	}
	Add(p.at, bytes/64*64)
}
