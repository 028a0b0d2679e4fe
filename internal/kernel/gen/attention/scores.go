package main

import (
	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// scores multiplies query vectors with the keys of a block: rows of a panel
// are dimensions, its columns positions.
func (m *machine) scores(k kind) {
	m.text("scores"+k.name, "func(s, q []float32, keys []byte, keyDim int, next *byte)",
		"writes the scores of query vectors q with the keys of a block.")
	s, q := base("s"), base("q")
	n := length("s")
	SHRQ(U8(5), n)
	stride := param("keyDim")
	SHLQ(U8(2), stride)
	strides := newMultiples(stride, m.most())
	next := prefetcher{param("next")}

	m.eachTile(n, m.most(), func(rows int) {
		t := m
		if k != f32 && rows <= 2 {
			// So few chains wait for their latency, however wide they are, and Zen 4
			// converts four of the narrow vectors in less time than two wide ones.
			t = &machine{256}
		}
		for _, pass := range t.passes(rows, t.vectors()) {
			t.scoresTile(k, rows, pass[0], pass[1], s, q, strides, next)
		}
		// Keys are in the first-level cache now; so is what would be prefetched.
		MOVQ(base("keys"), next.at)
		ADDQ(U32(uint32(4*columns*rows)), s)
		end := GP64()
		LEAQ(strides.at(q, rows-1, 0), end)
		LEAQ(Mem{Base: end, Index: stride, Scale: 1}, q)
	})
}

// scoresTile computes vectors [from, to) of rows of scores.
func (m *machine) scoresTile(k kind, rows, from, to int, s, q reg.GPVirtual, strides multiples, next prefetcher) {
	acc := m.tile(rows, to-from)
	keys, value := base("keys"), GP64()
	MOVQ(q, value)
	steps := func(count int) {
		if from == 0 {
			next.lines(columns * k.size * count)
		}
		for i := range count {
			m.step(acc, func(row int) Mem { return strides.at(value, row, 4*i) }, func(v int, to reg.VecVirtual) {
				m.load(k, Mem{Base: keys, Disp: k.size * (columns*i + (from+v)*m.lanes())}, to)
			})
		}
		ADDQ(U32(uint32(columns*k.size*count)), keys)
		ADDQ(U32(uint32(4*count)), value)
	}
	each := func(do func(v reg.VecVirtual, column int, at Mem)) {
		for i, row := range acc {
			for v := range row {
				column := (from + v) * m.lanes()
				do(row[v], column, Mem{Base: s, Disp: 4 * (columns*i + column)})
			}
		}
	}
	dims := param("keyDim")
	if k != q8 {
		acc.clear()
		m.pairs(dims, steps)
		each(func(v reg.VecVirtual, _ int, at Mem) { VMOVUPS(v, at) })
		return
	}

	// Sums of a panel's codes are scaled and added to those of the panels before.
	acc.clear()
	each(func(v reg.VecVirtual, _ int, at Mem) { VMOVUPS(v, at) })
	panel, loop := label("panel"), label("loop")
	Label(panel)
	scales, pairs := GP64(), GP64()
	MOVQ(keys, scales)
	ADDQ(U32(q8Scales), keys)
	if from == 0 {
		next.lines(q8Scales)
	}
	acc.clear()
	MOVQ(U32(columns/2), pairs)
	Label(loop)
	steps(2)
	DECQ(pairs)
	JNZ(LabelRef(loop))
	each(func(v reg.VecVirtual, column int, at Mem) {
		scale := x86.Vec(m.width)
		VCVTPH2PS(Mem{Base: scales, Disp: 2 * column}, scale)
		VFMADD213PS(at, scale, v)
		VMOVUPS(v, at)
	})
	SUBQ(U32(columns), dims)
	JNZ(LabelRef(panel))
}
