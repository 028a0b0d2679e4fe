package main

import (
	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// mergeBlock adds the results of a block to those of the blocks before it.
func (m *machine) mergeBlock() {
	m.text("mergeBlock", "func(out, block, top, total, high, sum []float32, dim int)", "merges the results of a block into out, total and top.")
	out, block, n := base("out"), base("block"), length("top")
	top, total, high, sum := base("top"), base("total"), base("high"), base("sum")
	exp := x86.NewExp(m.width)
	none := x86.Vec(m.width)
	zero(none)
	TESTQ(n, n)
	JZ(LabelRef("done"))

	Label("rows")
	// Lane 0 is for what is merged, lane 1 for the block.
	old, late, t := XMM(), XMM(), XMM()
	VMOVSS(Mem{Base: top}, old)
	VMOVSS(Mem{Base: high}, late)
	VMAXSS(old, late, t)
	VMOVSS(t, Mem{Base: top})
	VUNPCKLPS(late, old, old)
	VUNPCKLPS(t, t, t)
	VSUBPS(t, old, old)
	factors := x86.Vec(m.width)
	VBROADCASTSD(old, factors)
	exp.Apply(factors)
	keep, gain, second := x86.Vec(m.width), x86.Vec(m.width), XMM()
	first := factors.(reg.Vec).AsX()
	VPERMILPS(U8(1), first, second)
	VBROADCASTSS(first, keep)
	VBROADCASTSS(second, gain)
	s := XMM()
	VMULSS(Mem{Base: total}, first, s)
	VFMADD231SS(Mem{Base: sum}, second, s)
	VMOVSS(s, Mem{Base: total})

	m.vectorsOf("dim", func() {
		o := x86.Vec(m.width)
		VMULPS(Mem{Base: out}, keep, o)
		VFMADD231PS(Mem{Base: block}, gain, o)
		VMOVUPS(o, Mem{Base: out})
		VMOVUPS(none, Mem{Base: block})
		ADDQ(U32(uint32(m.bytes())), out)
		ADDQ(U32(uint32(m.bytes())), block)
	})
	for _, p := range []reg.GPVirtual{top, total, high, sum} {
		ADDQ(U32(4), p)
	}
	DECQ(n)
	JNZ(LabelRef("rows"))
	Label("done")
	m.end()
}

// normalise divides output vectors by the sums of their weights.
func (m *machine) normalise() {
	m.text("normalise", "func(dst, src, total []float32, dim int)", "divides vectors of src by their total.")
	dst, src, total, n := base("dst"), base("src"), base("total"), length("total")
	one := XMM()
	VMOVSS(x86.Float(1), one)
	TESTQ(n, n)
	JZ(LabelRef("done"))
	Label("rows")
	q, by := XMM(), x86.Vec(m.width)
	VDIVSS(Mem{Base: total}, one, q)
	VBROADCASTSS(q, by)
	m.vectorsOf("dim", func() {
		v := x86.Vec(m.width)
		VMULPS(Mem{Base: src}, by, v)
		VMOVUPS(v, Mem{Base: dst})
		ADDQ(U32(uint32(m.bytes())), src)
		ADDQ(U32(uint32(m.bytes())), dst)
	})
	ADDQ(U32(4), total)
	DECQ(n)
	JNZ(LabelRef("rows"))
	Label("done")
	m.end()
}

// vectorsOf repeats body for each vector of a positive number of values.
func (m *machine) vectorsOf(name string, body func()) {
	n, loop := param(name), label("vectors")
	Label(loop)
	body()
	SUBQ(U32(uint32(m.lanes())), n)
	JNZ(LabelRef(loop))
}
