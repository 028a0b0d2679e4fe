package main

import (
	"fmt"
	"math/bits"

	"github.com/foretoken/foretoken/internal/kernel/panel"

	. "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"
)

// Offsets in a QBlock. Scale and Neg make a vector, Sum and zero another.
const (
	scaleAt = 0
	sumAt   = 16
	codesAt = 32
	qblock  = 64
)

// dotInt8 multiplies a panel of quantised weights with T rows of QBlocks.
// Integer sums of a sub-block are exact; they are scaled by weight scale ×
// activation scale and added with a fused multiply-add.
func dotInt8(k *panel.Kind, T int, dotProd bool) {
	name, with := "NEON", ""
	if dotProd {
		name, with = "DotProd", ", with SDOT"
	}
	Function(fmt.Sprintf("dot%sT%d%s", k.Name, T, name), dotSignature,
		fmt.Sprintf("multiplies a panel of %s with %d rows of QBlocks%s.", k.Name, T, with))
	n, pf := Param("groups"), newPrefetcher()
	a := newActivations(k, T)
	out := rows("out", T, "outStride")
	clearRows(out)
	c := newCodes(k, "w")

	lines := (k.GroupBytes()/k.Group() + line - 1) / line
	const steps = panel.Rows / 8
	lines = (lines + steps - 1) / steps
	c.blocks(n, a.load, func() {
		pf.lines(lines)
		for sub := range k.Subs() {
			Scope(func() {
				var sums []pair
				if dotProd {
					sums = a.dot(c, sub)
				} else {
					sums = a.widened(c, sub)
				}
				a.add(c, sub, sums, out)
			})
		}
	}, func() {
		move(a.rows, qblock)
		move(out, -4*panel.Rows)
		pf.block(lines * steps)
	})
	Return()
}

func clearRows(out []R) {
	Scope(func() {
		zero := NewV()
		ZERO(zero)
		for _, r := range out {
			for i := range panel.Rows / 8 {
				STP(zero, zero, r, 32*i)
			}
		}
	})
}

// activations are the QBlocks of T rows at hand.
type activations struct {
	k    *panel.Kind
	rows []R
	head []V // Scale, Neg; or with minima Sum, Scale
	q    []pair
}

func newActivations(k *panel.Kind, T int) *activations {
	a := &activations{k: k, rows: rows("a", T, "aStride"), head: NewVs(T)}
	for range T {
		a.q = append(a.q, newPair())
	}
	return a
}

func (a *activations) load() {
	for t, r := range a.rows {
		LDP(a.q[t][0], a.q[t][1], r, codesAt)
		if a.k.Min {
			LDR(a.head[t], r, sumAt)
			LD1(a.head[t], 3, r)
		} else {
			LDR(a.head[t], r, scaleAt)
		}
	}
}

// scaleLane is the word of head that has the scale.
func (a *activations) scaleLane() int {
	if a.k.Min {
		return 3
	}
	return 0
}

// field is the index in a QBlock's Neg and Sum: all, first half, second half.
func (a *activations) field(sub int) int {
	if a.k.Subs() == 1 {
		return 0
	}
	return 1 + sub
}

// seed starts an integer sum at -Offset·Σ of the activations, unless codes are
// read without their offset.
func (a *activations) seed(v V, t, sub int) {
	if signed(a.k) || a.k.Offset == 0 {
		ZERO(v)
		return
	}
	DUP(v, a.head[t], 1+a.field(sub))
	Shift4S(v, v, bits.TrailingZeros(uint(a.k.Offset)))
}

// dot returns the integer sums of a sub-block. Each is two sums if there is
// only one row, so that few instructions wait for each other.
func (a *activations) dot(c *codes, sub int) []pair {
	T := len(a.rows)
	sums := make([]pair, max(2, T))
	for t := range sums {
		sums[t] = newPair()
		if t < T {
			a.seed(sums[t][0], t, sub)
			MOV(sums[t][1], sums[t][0])
		} else {
			ZERO(sums[t][0])
			ZERO(sums[t][1])
		}
	}
	c.each(sub, func(g int, v pair) {
		for t := range T {
			to := t
			if T == 1 {
				to = g % 2
			}
			for h, w := range v {
				SDOT(sums[to][h], w, a.q[t][g/4], g%4)
			}
		}
	})
	if T == 1 {
		for h := range sums[0] {
			ADD4S(sums[0][h], sums[0][h], sums[1][h])
		}
	}
	return sums[:T]
}

// widened is dot without SDOT: products of bytes are summed in 16 bits for as
// long as they fit, four columns of two rows in a vector.
func (a *activations) widened(c *codes, sub int) []pair {
	T := len(a.rows)
	fit := math16 / (largestQ * largestCode(a.k))
	groups := 8 / a.k.Subs()
	halves, words := make([][2]pair, T), make([][2]pair, T)
	for t := range T {
		halves[t] = [2]pair{newPair(), newPair()}
		words[t] = halves[t]
		if fit < groups {
			words[t] = [2]pair{newPair(), newPair()}
		}
	}
	done := 0
	c.each(sub, func(g int, w pair) {
		Scope(func() {
			x := NewV()
			for t := range T {
				DUP(x, a.q[t][g/4], g%4)
				for h, w := range w {
					low, high := halves[t][h][0], halves[t][h][1]
					if done%fit == 0 {
						SMULL(low, w, x)
						SMULL2(high, w, x)
					} else {
						SMLAL(low, w, x)
						SMLAL2(high, w, x)
					}
				}
			}
		})
		done++
		if done%fit != 0 && done != groups {
			return
		}
		for t := range T {
			for h := range w {
				for i, from := range halves[t][h] {
					if done <= fit {
						SADDLP(words[t][h][i], from)
					} else {
						SADALP(words[t][h][i], from)
					}
				}
			}
		}
	})
	sums := make([]pair, T)
	for t := range T {
		for h := range sums[t] {
			sums[t][h] = words[t][h][0]
			ADDP4S(sums[t][h], words[t][h][0], words[t][h][1])
		}
		if !signed(a.k) && a.k.Offset != 0 {
			Scope(func() {
				seed := NewV()
				a.seed(seed, t, sub)
				for _, v := range sums[t] {
					ADD4S(v, v, seed)
				}
			})
		}
	}
	return sums
}

const (
	math16   = 1<<15 - 1
	largestQ = 127
)

// largestCode is the greatest magnitude of what codes.each yields.
func largestCode(k *panel.Kind) int {
	switch {
	case k.Bits == 8:
		return 128
	case k.Table != nil:
		most := 0
		for _, v := range k.Table {
			most = max(most, int(v)-k.Offset, k.Offset-int(v))
		}
		return most
	}
	return 1<<k.Bits - 1
}

// add adds the scaled sums of a sub-block, and its minima, to out. With the
// last sub-block out moves on by eight rows.
func (a *activations) add(c *codes, sub int, sums []pair, out []R) {
	k := a.k
	scale := c.scale(sub)
	var low pair
	if k.Min {
		low = c.min(sub)
	}
	y, s := newPair(), NewV()
	for t := range sums {
		LDP(y[0], y[1], out[t], 0)
		for h := range y {
			SCVTF(sums[t][h], sums[t][h])
			FMULElem(s, scale[h], a.head[t], a.scaleLane())
			FMLA(y[h], s, sums[t][h])
			switch {
			case k.Min && k.Scale.TwoLevel():
				FMLSElem(y[h], low[h], a.head[t], a.field(sub))
			case k.Min:
				FMLAElem(y[h], low[h], a.head[t], a.field(sub))
			}
		}
		if sub < k.Subs()-1 {
			STP(y[0], y[1], out[t], 0)
		} else {
			STPPost(y[0], y[1], out[t], 32)
		}
	}
}
