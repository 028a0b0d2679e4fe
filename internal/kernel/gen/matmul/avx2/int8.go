package main

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/foretoken/foretoken/internal/kernel/panel"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets in a QBlock.
const (
	scaleAt = 0
	negAt   = 4
	sumAt   = 16
	codesAt = 32
	qblock  = 64
)

// dotInt8 multiplies a panel of quantised weights with T rows of QBlocks.
// Integer sums of a sub-block are exact; they are scaled by weight scale ×
// activation scale and added with a fused multiply-add.
func dotInt8(k *panel.Kind, T int) {
	function(fmt.Sprintf("dot%sT%dAVX2", k.Name, T), dotSignature,
		fmt.Sprintf("multiplies a panel of %s with %d rows of QBlocks", k.Name, T))
	w := Load(Param("w"), GP64())
	n := Load(Param("groups"), GP64())
	out := Load(Param("out"), GP64())
	next := Load(Param("next"), GP64())
	a := newRows(Load(Param("a"), GP64()), T, "aStride")

	d := newDot(k, T, w, a)
	VPXOR(d.b, d.b, d.b)
	outputs(out, T, func(_ int, at Register) {
		for v := range panel.Rows / lanes {
			VMOVUPS(d.b, Mem{Base: at, Disp: vector * v})
		}
	})
	d.codes.blocks(n, func() {
		if T >= prefetchFrom {
			prefetch(next, d.codes.lines())
			ADDQ(param("nextStep"), next)
		}
		walk(d.vectors, func(s steps) {
			d.codes.step = s
			for sub := range k.Subs() {
				d.sum(sub)
				for v := 0; v < d.vectors; v += d.together {
					d.add(sub, v, out)
				}
			}
		})
		ADDQ(U32(qblock), a.base)
	})
	end()
}

// dot forms sums of products of codes, up to 255, and activations, up to 127 in
// size. VPMADDUBSW multiplies and adds two columns in 16 bits, where a few such
// sums can be added before VPMADDWD widens them:
//
//	codes up to   3   7   15   28   31   63
//	sums         43  18    8    4    4    2    // 32767 / (2·127·code)
//
// Eight-bit codes, and tables of such, do not fit at all: they are taken as two
// codes of four bits.
type dot struct {
	k     *panel.Kind
	codes *codes
	a     rows
	form  form

	run      int // groups that are added in 16 bits
	vectors  int // of eight weight rows in a step
	together int // that meet one broadcast of activations

	x, y    [][]VecPhysical // sums [vectors][T]
	w       []VecPhysical   // codes [together], or low and high halves [2·together]
	b, p    VecPhysical     // activations and products
	ones    Op
	sixteen Op
}

// A form is how sums are kept from overflowing.
type form int

const (
	whole   form = iota // x holds a sub-block's sum in 16 bits
	runs                // y holds a run's, and x the others' in 32
	nibbles             // x and y hold those of the codes' low and high halves
)

func newDot(k *panel.Kind, T int, w Register, a rows) *dot {
	d := &dot{k: k, a: a, b: ymm(), p: ymm()}
	greatest := 1<<k.Bits - 1
	if k.Table != nil {
		greatest = int(slices.Max(k.Table[:]))
	}
	groups := 8 / k.Subs()
	switch room := math.MaxInt16 / (2 * 127 * greatest); {
	case room < 2:
		d.form, d.run = nibbles, groups
	case room < groups:
		d.form, d.run = runs, room&^1
	default:
		d.form, d.run = whole, groups
	}

	// As many vectors as registers hold sums of; steps of more than ten sums are
	// no faster.
	sets, codes := 1, 1
	if d.form != whole {
		sets = 2
	}
	if d.form == nibbles {
		codes = 2
	}
	fits := func() bool {
		d.together = min(d.vectors, 2)
		return d.vectors*T <= 10 && used+sets*d.vectors*T+codes*d.together <= len(registers)
	}
	for d.vectors = panel.Rows / lanes; !fits(); {
		d.vectors /= 2
	}
	d.w = ymms(codes * d.together)
	for range d.vectors {
		d.x = append(d.x, ymms(T))
		if d.form != whole {
			d.y = append(d.y, ymms(T))
		}
	}
	d.codes = newCodes(k, w, d.form == nibbles)
	d.ones = constant(0x00010001)
	if d.form == nibbles {
		d.sixteen = constant(0x00100010)
	}
	return d
}

// sum leaves a sub-block's sums of products in x, in 32 bits.
func (d *dot) sum(sub int) {
	groups := 8 / d.k.Subs()
	for i := range groups {
		for v := 0; v < d.vectors; v += d.together {
			d.multiply(sub*groups+i, v, i%d.run == 0, i < d.run)
		}
		if (i+1)%d.run == 0 {
			d.widen(i < d.run)
		}
	}
}

// multiply adds the products of group g for the vectors from v on.
func (d *dot) multiply(g, v int, first, firstRun bool) {
	for i := range d.together {
		switch d.form {
		case nibbles:
			d.codes.nibbles(g, v+i, d.w[2*i], d.w[2*i+1], d.p)
		default:
			d.codes.operand(g, v+i, d.w[i], d.p)
		}
	}
	for t := range d.x[0] {
		VPBROADCASTD(d.a.at(t, codesAt+4*g), d.b)
		for i := range d.together {
			switch {
			case d.form == nibbles:
				d.product(d.w[2*i], d.x[v+i][t], first)
				d.product(d.w[2*i+1], d.y[v+i][t], first)
			case firstRun:
				d.product(d.w[i], d.x[v+i][t], first)
			default:
				d.product(d.w[i], d.y[v+i][t], first)
			}
		}
	}
}

// product adds w·b to sum, or begins it.
func (d *dot) product(w, sum VecPhysical, first bool) {
	if first {
		VPMADDUBSW(d.b, w, sum)
		return
	}
	VPMADDUBSW(d.b, w, d.p)
	VPADDW(d.p, sum, sum)
}

// widen ends a run: x are its sums, or those up to it.
func (d *dot) widen(firstRun bool) {
	for v := range d.x {
		for t, x := range d.x[v] {
			if firstRun {
				VPMADDWD(d.ones, x, x)
			}
			if d.form == whole || d.form == runs && firstRun {
				continue
			}
			y := d.y[v][t]
			if d.form == nibbles {
				VPMADDWD(d.sixteen, y, y)
			} else {
				VPMADDWD(d.ones, y, y)
			}
			VPADDD(y, x, x)
		}
	}
}

// add scales the sums of a sub-block, of vectors from v on, and adds them to out.
func (d *dot) add(sub, v int, out Register) {
	k, field := d.k, 0
	if k.Subs() > 1 {
		field = 1 + sub // QBlock's Neg and Sum: all, first half, second half
	}
	sums := d.x[v : v+d.together]
	for i := range sums {
		d.codes.scale(sub, v+i, d.w[i], d.p)
	}
	outputs(out, len(sums[0]), func(t int, at Register) {
		if k.Offset != 0 {
			VPBROADCASTD(d.a.at(t, negAt+4*field), d.b)
			VPSLLD(U8(bits.TrailingZeros(uint(k.Offset))), d.b, d.b)
			for _, x := range sums {
				VPADDD(d.b, x[t], x[t])
			}
		}
		VBROADCASTSS(d.a.at(t, scaleAt), d.b)
		for i, x := range sums {
			VCVTDQ2PS(x[t], x[t])
			VMULPS(d.b, d.w[i], d.p)
			VFMADD213PS(d.codes.step.at(at, 4, 0, v+i), d.p, x[t]) // x = p·x + out
		}
	})
	if k.Min {
		for i := range sums {
			d.codes.min(sub, v+i, d.w[i], d.p)
		}
		for t := range sums[0] {
			VBROADCASTSS(d.a.at(t, sumAt+4*field), d.b)
			for i, x := range sums {
				if k.Scale.TwoLevel() {
					VFNMADD231PS(d.b, d.w[i], x[t])
				} else {
					VFMADD231PS(d.b, d.w[i], x[t])
				}
			}
		}
	}
	// The rows of out may lie a multiple of 4 KiB apart, where some processors
	// let a load wait for the stores before it: they come last.
	outputs(out, len(sums[0]), func(t int, at Register) {
		for i, x := range sums {
			VMOVUPS(x[t], d.codes.step.at(at, 4, 0, v+i))
		}
	})
}
