package main

import (
	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// values adds the weighted values of a block to outputs: rows of a panel are
// positions, its columns dimensions.
func (m *machine) values(k kind) {
	m.text("values"+k.name, "func(out, w, spare []float32, values []byte, valueDim, from, to int, next *byte)",
		"adds to out the values of positions [from, to) of a block, weighted with w.")
	f := &valuesFunc{machine: m, kind: k, out: base("out"), w: base("w"), n: length("w"), next: prefetcher{param("next")}}
	SHRQ(U8(5), f.n)
	stride := param("valueDim")
	SHLQ(U8(2), stride)
	f.strides = newMultiples(stride, m.most())
	m.eachTile(f.n, m.most(), f.rows)
}

type valuesFunc struct {
	*machine
	kind
	out, w, n reg.GPVirtual
	strides   multiples
	next      prefetcher
}

// rows takes a tile through all panels: two at a time if that leaves registers,
// then one, then the narrow one.
func (f *valuesFunc) rows(rows int) {
	panel, dims := base("values"), param("valueDim")
	one, narrow, done := label("one"), label("narrow"), label("done")
	if f.width == 512 && rows <= 4 && f.kind != q8 {
		two := label("two")
		Label(two)
		CMPQ(dims, U32(2*columns))
		JB(LabelRef(one))
		f.panels(rows, 2*columns, columns, panel)
		SUBQ(U32(2*columns), dims)
		JMP(LabelRef(two))
	}
	Label(one)
	CMPQ(dims, U32(columns))
	JB(LabelRef(narrow))
	f.panels(rows, columns, columns, panel)
	SUBQ(U32(columns), dims)
	JMP(LabelRef(one))
	Label(narrow)
	if f.kind != q8 {
		TESTQ(dims, dims)
		JZ(LabelRef(done))
		f.panels(rows, columns/2, columns/2, panel)
		Label(done)
	}
	// Values are in the first-level cache now; so is what would be prefetched.
	MOVQ(base("values"), f.next.at)
	ADDQ(U32(uint32(4*columns*rows)), f.w)
	// out is behind the first row.
	LEAQ(f.strides.at(f.out, rows-1, 0), f.out)
}

// panels adds count columns of panels that are wide columns each, and steps
// over them.
func (f *valuesFunc) panels(rows, count, wide int, panel reg.GPVirtual) {
	weights := f.w
	if f.kind == q8 {
		weights = f.scaled(rows, panel)
		f.next.lines(q8Scales)
	}
	for _, pass := range f.passes(rows, count/f.lanes()) {
		f.pass(rows, count, wide, pass[0], pass[1], panel, weights)
	}
	ADDQ(U32(uint32(f.panel()*count/columns)), panel)
	ADDQ(U32(uint32(4*count)), f.out)
}

// scaled multiplies weights with the scales of a panel's positions.
func (f *valuesFunc) scaled(rows int, panel reg.GPVirtual) reg.GPVirtual {
	spare := base("spare")
	for v := range f.vectors() {
		scale, lane := x86.Vec(f.width), v*f.lanes()
		VCVTPH2PS(Mem{Base: panel, Disp: 2 * lane}, scale)
		for row := range rows {
			w := x86.Vec(f.width)
			VMULPS(Mem{Base: f.w, Disp: 4 * (columns*row + lane)}, scale, w)
			VMOVUPS(w, Mem{Base: spare, Disp: 4 * (columns*row + lane)})
		}
	}
	return spare
}

// pass adds vectors [from, to) of count columns.
func (f *valuesFunc) pass(rows, count, wide, from, to int, panel, weights reg.GPVirtual) {
	acc := f.machine.tile(rows, to-from)
	each := func(do func(v reg.VecVirtual, at Mem)) {
		for i, row := range acc {
			for v := range row {
				do(row[v], f.strides.at(f.out, i, f.bytes()*(from+v)))
			}
		}
	}
	each(func(v reg.VecVirtual, at Mem) { VMOVUPS(at, v) })

	lane, left, row := param("from"), param("to"), GP64()
	SUBQ(lane, left)
	MOVQ(lane, row)
	IMUL3Q(U32(uint32(wide*f.size)), row, row)
	ADDQ(panel, row)
	perPanel := wide / f.lanes() // vectors
	at := func(step, v int) Mem {
		v += from
		disp := f.panel()*(v/perPanel) + f.size*(wide*step+v%perPanel*f.lanes())
		if f.kind == q8 {
			disp += q8Scales
		}
		return Mem{Base: row, Disp: disp}
	}
	f.pairs(left, func(steps int) {
		if from == 0 {
			f.next.lines(count * f.size * steps / 64 * 64)
		}
		for i := range steps {
			f.step(acc,
				func(row int) Mem { return Mem{Base: weights, Index: lane, Scale: 4, Disp: 4 * (columns*row + i)} },
				func(v int, to reg.VecVirtual) { f.load(f.kind, at(i, v), to) })
		}
		ADDQ(U32(uint32(wide*f.size*steps)), row)
		ADDQ(U32(uint32(steps)), lane)
	})
	each(func(v reg.VecVirtual, at Mem) { VMOVUPS(v, at) })
}
