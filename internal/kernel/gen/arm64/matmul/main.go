// Command matmul writes the products of weight panels with rows of
// activations, for arm64.
//
// A kernel walks a panel once from its first block to its last. Four outputs
// share a vector, one in each lane, which adds its blocks in their order: a
// row's bits do not depend on T. There are too few registers for 32 outputs of
// several rows: their sums are in out, in the first-level cache, and within a
// block the products of eight or more outputs are in registers.
package main

import (
	"github.com/foretoken/foretoken/internal/kernel/panel"

	. "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"
)

const (
	line       = 64 // bytes of a cache line
	maxDotProd = 4  // rows of QBlocks that a kernel takes
	maxWidened = 2  // the same without SDOT
	maxFloat   = 6  // rows of float activations
)

func main() {
	for i := range panel.Kinds {
		k := &panel.Kinds[i]
		if k.Quantised() {
			for t := range maxDotProd {
				dotInt8(k, t+1, true)
			}
			for t := range maxWidened {
				dotInt8(k, t+1, false)
			}
		}
		switch k.ID {
		case panel.F32, panel.F16, panel.BF16:
			for t := range maxFloat {
				dotFloat(k, t+1)
			}
		case panel.F8:
			unpackF8(k)
		default:
			unpack(k)
		}
	}
	tree()
	Generate()
}

const dotSignature = "func(w, a, out, next *byte, groups, aStride, outStride, nextStep uint64)"

// rows returns the addresses of T rows that lie stride bytes apart.
func rows(base string, T int, stride string) []R {
	r := []R{Param(base)}
	if T > 1 {
		s := Param(stride)
		for t := range T - 1 {
			r = append(r, NewR())
			Asm("ADD %v, %v, %v", s, r[t], r[t+1])
		}
	}
	return r
}

// move adds n to every address.
func move(rows []R, n int) {
	for _, r := range rows {
		Add(r, n)
	}
}

// prefetcher asks for lines of the memory that is read next.
type prefetcher struct{ at, step R }

func newPrefetcher() prefetcher { return prefetcher{Param("next"), Param("nextStep")} }

// lines asks for the next n lines.
func (p prefetcher) lines(n int) {
	for i := range n {
		PRFM(p.at, line*i)
	}
	Add(p.at, line*n)
}

// block ends a block for which n lines were asked.
func (p prefetcher) block(n int) {
	Asm("ADD %v, %v", p.step, p.at)
	Add(p.at, -line*n)
}

// tree adds eight parts of 32 values, for a number of rows, as a balanced
// binary tree.
func tree() {
	Function("treeNEON", "func(out, parts *float32, rows, outStride, partStride uint64)",
		"adds eight parts [rows][32] as a balanced binary tree.")
	out, n, stride := Param("out"), Param("rows"), Param("outStride")
	parts := rows("parts", 8, "partStride")
	Repeat("row", n, func() {
		v := NewVs(8)
		Times("vector", panel.Rows/4, func() {
			for s, p := range parts {
				LDRPost(v[s], p, 16)
			}
			for n := len(v) / 2; n > 0; n /= 2 {
				for i := range n {
					FADD(v[i], v[2*i], v[2*i+1])
				}
			}
			STRPost(v[0], out, 16)
		})
		Asm("ADD %v, %v", stride, out)
		Add(out, -4*panel.Rows)
	})
	Return()
}
