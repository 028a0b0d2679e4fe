package main

import (
	"math"

	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// softmax takes one query vector's scores of a block at a time: they are two
// vectors of AVX-512, four of AVX2. Weights are rounded before they are added,
// where that is asked for.
func (m *machine) softmax(name, doc string, round func(x []reg.VecVirtual)) {
	m.text(name, "func(s []float32, lanes []uint32, high, sum []float32, scale float32)", doc)
	s, lanes, n, high, sum := base("s"), base("lanes"), length("lanes"), base("high"), base("sum")
	scale := x86.Vec(m.width)
	at, err := Param("scale").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(at.Addr, scale)
	exp := x86.NewExp(m.width)
	sees := m.newLaneMask()
	TESTQ(n, n)
	JZ(LabelRef("done"))

	Label("loop")
	x := x86.Vecs(m.width, m.vectors())
	unseen := x86.Broadcast(m.width, x86.Float(float32(math.Inf(-1))))
	sees.load(Mem{Base: lanes})
	for i := range x {
		VMULPS(Mem{Base: s, Disp: m.bytes() * i}, scale, x[i])
		sees.blend(i, x[i], unseen)
	}
	// Compared with a number first, a NaN loses.
	top := x86.Vecs(m.width, len(x))
	least := x86.Broadcast(m.width, x86.Float(-math.MaxFloat32))
	for i := range x {
		VMAXPS(least, x[i], top[i])
	}
	most := m.tree(top, VMAXPS)
	VMOVSS(most, Mem{Base: high})
	VBROADCASTSS(most, top[0])
	for i := range x {
		VSUBPS(top[0], x[i], x[i])
	}
	exp.Apply(x...)
	if round != nil {
		round(x)
	}
	for i := range x {
		VMOVUPS(x[i], Mem{Base: s, Disp: m.bytes() * i})
	}
	VMOVSS(m.tree(x, VADDPS), Mem{Base: sum})
	ADDQ(U32(4*columns), s)
	for _, p := range []reg.GPVirtual{lanes, high, sum} {
		ADDQ(U32(4), p)
	}
	DECQ(n)
	JNZ(LabelRef("loop"))
	Label("done")
	m.end()
}

// tree combines the 32 lanes of v: the halves, then their halves, and so on.
func (m *machine) tree(v []reg.VecVirtual, op func(...Op)) reg.VecVirtual {
	for ; len(v) > 1; v = v[:len(v)/2] {
		for i := range len(v) / 2 {
			op(v[i+len(v)/2], v[i], v[i])
		}
	}
	y := v[0]
	if m.width == 512 {
		upper := YMM()
		VEXTRACTF64X4(U8(1), v[0], upper)
		y = YMM()
		op(upper, v[0].(reg.Vec).AsY(), y)
	}
	upper, x := XMM(), XMM()
	VEXTRACTF128(U8(1), y, upper)
	op(upper, y.(reg.Vec).AsX(), x)
	VPERMILPS(U8(0b1110), x, upper)
	op(upper, x, x)
	VPERMILPS(U8(1), x, upper)
	op(upper, x, x)
	return x
}

// A laneMask tells the lanes that a query sees.
type laneMask struct {
	width int
	k     []reg.OpmaskVirtual // AVX-512, by vector
	bits  Mem                 // AVX2: the bit of each lane
	seen  reg.VecVirtual
}

func (m *machine) newLaneMask() *laneMask {
	if m.width == 512 {
		return &laneMask{width: 512, k: []reg.OpmaskVirtual{K(), K()}}
	}
	words := make([]uint64, columns/2)
	for i := range words {
		words[i] = 1<<(2*i) | 1<<(2*i+1)<<32
	}
	return &laneMask{width: 256, bits: x86.Table("laneBits", words...), seen: YMM()}
}

// load reads a mask of 32 lanes.
func (l *laneMask) load(from Mem) {
	if l.width == 256 {
		VPBROADCASTD(from, l.seen)
		return
	}
	KMOVD(from, l.k[0])
	KSHIFTRD(U8(16), l.k[0], l.k[1])
}

// blend replaces what is not seen of vector i by other.
func (l *laneMask) blend(i int, v, other reg.VecVirtual) {
	if l.width == 512 {
		VBLENDMPS(v, other, l.k[i], v)
		return
	}
	mask, bits := YMM(), l.bits.Offset(32*i)
	VPAND(bits, l.seen, mask)
	VPCMPEQD(bits, mask, mask)
	VBLENDVPS(mask, v, other, v)
}
