package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
)

// Both forms of rotation loop over the heads of one row, width values apart,
// and within a head over the pairs, len(cos) of them. Products are rounded
// before they are added, as in plain Go: every tier gives the same bits.
func heads(head func(x reg.GPVirtual)) {
	x, n, stride := pointer("x"), Load(Param("heads"), GP64()), Load(Param("width"), GP64())
	SHLQ(U8(2), stride)
	Label("head")
	TESTQ(n, n)
	JZ(LabelRef("end"))
	head(x)
	ADDQ(stride, x)
	DECQ(n)
	JMP(LabelRef("head"))
	Label("end")
	end()
}

// rotate turns pairs (i, i+len(cos)).
func rotate(width int) {
	text("rotate", width, "func(x, cos, sin []float32, heads, width int)", "rotates pairs (i, i+len(cos)) of every head.")
	lanes := width / 32
	cos, sin, half := pointer("cos"), pointer("sin"), length("cos")
	heads(func(x reg.GPVirtual) {
		i, p, q := GP64(), GP64(), GP64()
		MOVQ(x, p)
		LEAQ(Mem{Base: x, Index: half, Scale: 4}, q)
		XORQ(i, i)

		turn := func(load, store func(m Mem, v reg.VecVirtual)) {
			v := x86.Vecs(width, 6)
			c, s, a, b, as, bs := v[0], v[1], v[2], v[3], v[4], v[5]
			at := func(base reg.Register) Mem { return Mem{Base: base, Index: i, Scale: 4} }
			load(at(cos), c)
			load(at(sin), s)
			load(at(p), a)
			load(at(q), b)
			VMULPS(s, a, as)
			VMULPS(s, b, bs)
			VMULPS(c, a, a)
			VMULPS(c, b, b)
			VSUBPS(bs, a, a)
			VADDPS(as, b, b)
			store(at(p), a)
			store(at(q), b)
		}
		next, left := GP64(), GP64()
		Label("pairs")
		LEAQ(Mem{Base: i, Disp: lanes}, next)
		CMPQ(next, half)
		JA(LabelRef("lastPairs"))
		turn(func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) }, func(m Mem, v reg.VecVirtual) { VMOVUPS(v, m) })
		MOVQ(next, i)
		JMP(LabelRef("pairs"))

		Label("lastPairs")
		MOVQ(half, left)
		SUBQ(i, left)
		JZ(LabelRef("turned"))
		tail := x86.NewTail(width, left)
		turn(tail.Load, func(m Mem, v reg.VecVirtual) { tail.Store(v, m) })
		Label("turned")
	})
}

// rotatePairs turns pairs (2i, 2i+1): with the angles of each pair twice, and
// the sine of the first negated, x·cos + swap(x)·sin.
func rotatePairs(width int) {
	text("rotatePairs", width, "func(x, cos, sin []float32, heads, width int)", "rotates pairs (2i, 2i+1) of every head.")
	pairs := width / 64 // in a vector
	cos, sin, half := pointer("cos"), pointer("sin"), length("cos")
	negateFirst := x86.Vec(width)
	VBROADCASTSD(x86.Table("negateFirst", 1<<31), negateFirst)
	heads(func(x reg.GPVirtual) {
		i := GP64()
		XORQ(i, i)
		at := func(base reg.Register, scale uint8) Mem { return Mem{Base: base, Index: i, Scale: scale} }
		turn := func(c, s, v reg.VecVirtual, store func(v reg.VecVirtual, m Mem)) {
			VMOVSLDUP(c, c)
			VMOVSLDUP(s, s)
			VXORPS(negateFirst, s, s)
			swapped := x86.Vec(width)
			VPERMILPS(U8(0b10_11_00_01), v, swapped)
			VMULPS(c, v, v)
			VMULPS(s, swapped, swapped)
			VADDPS(swapped, v, v)
			store(v, at(x, 8))
		}
		next, left := GP64(), GP64()
		Label("pairs")
		LEAQ(Mem{Base: i, Disp: pairs}, next)
		CMPQ(next, half)
		JA(LabelRef("lastPairs"))
		c, s, v := x86.Vec(width), x86.Vec(width), x86.Vec(width)
		VPMOVZXDQ(at(cos, 4), c)
		VPMOVZXDQ(at(sin, 4), s)
		VMOVUPS(at(x, 8), v)
		turn(c, s, v, func(v reg.VecVirtual, m Mem) { VMOVUPS(v, m) })
		MOVQ(next, i)
		JMP(LabelRef("pairs"))

		Label("lastPairs")
		MOVQ(half, left)
		SUBQ(i, left)
		JZ(LabelRef("turned"))
		c, s, v = x86.Vec(width), x86.Vec(width), x86.Vec(width)
		if width == 512 {
			k := K()
			KMOVW(x86.FirstBits(left), k)
			VPMOVZXDQ_Z(at(cos, 4), k, c)
			VPMOVZXDQ_Z(at(sin, 4), k, s)
		} else {
			mask := XMM()
			VMOVUPS(x86.FirstWords(left, 0), mask)
			VMASKMOVPS(at(cos, 4), mask, c.AsX())
			VMASKMOVPS(at(sin, 4), mask, s.AsX())
			VPMOVZXDQ(c.AsX(), c)
			VPMOVZXDQ(s.AsX(), s)
		}
		ADDQ(left, left)
		tail := x86.NewTail(width, left)
		tail.Load(at(x, 8), v)
		turn(c, s, v, tail.Store)
		Label("turned")
	})
}
