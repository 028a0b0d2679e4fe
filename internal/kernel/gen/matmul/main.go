// Command matmul writes the products of weight panels with rows of
// activations, for amd64.
//
// A kernel keeps 32 outputs of T rows in registers, one output in each lane,
// and walks a panel once from its first block to its last: one broadcast of
// activations meets two vectors of weights. A lane adds its blocks in their
// order, so a row's bits do not depend on T.
package main

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/kernel/panel"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const (
	line     = 64 // bytes of a vector and of a cache line
	maxTile  = 5  // rows of quantised activations that a kernel takes
	maxFloat = 6  // rows of float activations
)

// Offsets in a QBlock.
const (
	scaleAt = 0
	negAt   = 4
	sumAt   = 16
	codesAt = 32
	qblock  = 64
)

func main() {
	for i := range panel.Kinds {
		k := &panel.Kinds[i]
		if k.Quantised() {
			for t := range maxTile {
				dotInt8(k, t+1)
			}
		}
		switch k.ID {
		case panel.F32, panel.F16, panel.BF16:
			for t := range maxFloat {
				dotFloat(k, t+1)
			}
		default:
			unpack(k)
		}
	}
	for t := range maxFloat {
		dotBF16(t + 1)
	}
	tree()
	Generate()
}

// function begins a kernel that keeps to its arguments.
func function(name, signature, doc string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(doc)
}

const dotSignature = "func(w, a, out, next *byte, groups, aStride, outStride, nextStep uint64)"

// rows addresses T rows that lie stride bytes apart.
type rows struct{ base, s1, s3, s5 Register }

func newRows(base Register, T int, param string) rows {
	r := rows{base: base}
	if T > 1 {
		r.s1 = Load(Param(param), GP64())
	}
	multiple := func(scale uint8) Register {
		m := GP64()
		LEAQ(Mem{Base: r.s1, Index: r.s1, Scale: scale}, m)
		return m
	}
	if T > 3 {
		r.s3 = multiple(2)
	}
	if T > 5 {
		r.s5 = multiple(4)
	}
	return r
}

func (r rows) at(t, disp int) Mem {
	m := Mem{Base: r.base, Disp: disp}
	switch t {
	case 1, 2, 4:
		m.Index, m.Scale = r.s1, uint8(t)
	case 3:
		m.Index, m.Scale = r.s3, 1
	case 5:
		m.Index, m.Scale = r.s5, 1
	}
	return m
}

func zmms(n int) []VecVirtual {
	v := make([]VecVirtual, n)
	for i := range v {
		v[i] = ZMM()
	}
	return v
}

func zeroed(n int) []VecVirtual {
	v := zmms(n)
	for i := range v {
		VPXORD(v[i], v[i], v[i])
	}
	return v
}

// broadcast32 fills a vector with a constant.
func broadcast32(x uint32) VecVirtual {
	g, v := GP32(), ZMM()
	MOVL(U32(x), g)
	VPBROADCASTD(g, v)
	return v
}

func broadcast8(x uint8) VecVirtual { return broadcast32(uint32(x) * 0x01010101) }

// store writes the sums of T rows, two vectors each.
func store[V Op](acc []V, T int) {
	out := newRows(Load(Param("out"), GP64()), T, "outStride")
	for t := range T {
		for h := range 2 {
			VMOVUPS(acc[h*T+t], out.at(t, line*h))
		}
	}
	VZEROUPPER()
	RET()
}

// prefetcher asks for the memory that is read next, into the second-level
// cache, every line of it. Kernels that do little with a line do not: they wait
// for memory alone, and their loads run further ahead undisturbed.
type prefetcher struct{ at, step Register }

func newPrefetcher(k *panel.Kind, T int) prefetcher {
	from := 3
	if k.Quantised() && k.ID != panel.Q8 && k.ID != panel.Q4 {
		from = 2
	}
	if T < from {
		return prefetcher{}
	}
	return prefetcher{Load(Param("next"), GP64()), Load(Param("nextStep"), GP64())}
}

func (p prefetcher) line(i int) {
	if p.at != nil {
		PREFETCHT1(Mem{Base: p.at, Disp: line * i})
	}
}

func (p prefetcher) advance() {
	if p.at != nil {
		ADDQ(p.step, p.at)
	}
}

// dotInt8 multiplies a panel of quantised weights with T rows of QBlocks.
// Integer sums of a sub-block are exact; they are scaled by weight scale ×
// activation scale and added with a fused multiply-add.
func dotInt8(k *panel.Kind, T int) {
	function(fmt.Sprintf("dot%sT%dAVX512", k.Name, T), dotSignature,
		fmt.Sprintf("multiplies a panel of %s with %d rows of QBlocks", k.Name, T))
	w := Load(Param("w"), GP64())
	n := Load(Param("groups"), GP64())
	a := newRows(Load(Param("a"), GP64()), T, "aStride")
	pf := newPrefetcher(k, T)
	c := newCodes(k, w)
	acc := zeroed(2 * T)
	x := zmms(2 * T)

	c.blocks(n, func() {
		lines := c.lines()
		next := 0
		prefetch := func() {
			if next < lines {
				pf.line(next)
				next++
			}
		}
		prefetch()
		for sub := range k.Subs() {
			for t := range T {
				seed(k, x[t], a.at(t, negAt+4*subField(k, sub)))
				VMOVDQA32(x[t], x[T+t])
			}
			groups := 8 / k.Subs()
			for g := sub * groups; g < (sub+1)*groups; g++ {
				w0, w1 := c.operand(g, 0), c.operand(g, 1)
				prefetch()
				prefetch()
				for t := range T {
					b := ZMM()
					VPBROADCASTD(a.at(t, codesAt+4*g), b)
					VPDPBUSD(b, w0, x[t])
					VPDPBUSD(b, w1, x[T+t])
				}
			}
			for h := range 2 {
				scale := c.scale(sub, h)
				for t := range T {
					i := h*T + t
					VCVTDQ2PS(x[i], x[i])
					s := ZMM()
					VMULPS_BCST(a.at(t, scaleAt), scale, s)
					VFMADD231PS(s, x[i], acc[i])
				}
				if !k.Min {
					continue
				}
				low := c.min(sub, h)
				for t := range T {
					sum := a.at(t, sumAt+4*subField(k, sub))
					if k.Scale.TwoLevel() {
						VFNMADD231PS_BCST(sum, low, acc[h*T+t])
					} else {
						VFMADD231PS_BCST(sum, low, acc[h*T+t])
					}
				}
			}
		}
		ADDQ(U32(qblock), a.base)
		pf.advance()
	})
	store(acc, T)
}

// subField is the index in QBlock's Neg and Sum: all, first half, second half.
func subField(k *panel.Kind, sub int) int {
	if k.Subs() == 1 {
		return 0
	}
	return 1 + sub
}

// seed starts an integer sum at -Offset·Σ of the activations.
func seed(k *panel.Kind, x VecVirtual, neg Mem) {
	if k.Offset == 0 {
		VPXORD(x, x, x)
		return
	}
	shift := 0
	for 1<<shift < k.Offset {
		shift++
	}
	VPSLLD_BCST(U8(shift), neg, x)
}

// dotFloat adds to out the products of a panel of floats with T rows of float32,
// each block summed by itself first.
func dotFloat(k *panel.Kind, T int) {
	function(fmt.Sprintf("float%sT%dAVX512", k.Name, T), dotSignature,
		fmt.Sprintf("adds the products of a panel of %s and %d rows of float32 to out", k.Name, T))
	w := Load(Param("w"), GP64())
	n := Load(Param("groups"), GP64())
	a := newRows(Load(Param("a"), GP64()), T, "aStride")
	pf := newPrefetcher(k, T)
	acc, s := zmms(2*T), zmms(2*T)
	out := newRows(Load(Param("out"), GP64()), T, "outStride")
	for t := range T {
		VMOVUPS(out.at(t, 0), acc[t])
		VMOVUPS(out.at(t, line), acc[T+t])
	}
	column := floatColumns(k, w)
	lines := k.GroupBytes() / line
	Label("loop")
	for col := range panel.Block {
		w0, w1 := column(col, 0), column(col, 1)
		for i := col * lines / panel.Block; i < (col+1)*lines/panel.Block; i++ {
			pf.line(i)
		}
		for t := range T {
			b := ZMM()
			VBROADCASTSS(a.at(t, 4*col), b)
			if col == 0 {
				VMULPS(b, w0, s[t])
				VMULPS(b, w1, s[T+t])
			} else {
				VFMADD231PS(b, w0, s[t])
				VFMADD231PS(b, w1, s[T+t])
			}
		}
	}
	for i := range acc {
		VADDPS(s[i], acc[i], acc[i])
	}
	ADDQ(U32(uint32(k.GroupBytes())), w)
	ADDQ(U32(4*panel.Block), a.base)
	pf.advance()
	DECQ(n)
	JNZ(LabelRef("loop"))
	store(acc, T)
}

// floatColumns reads a column of 16 rows as float32.
func floatColumns(k *panel.Kind, w Register) func(col, h int) VecVirtual {
	switch k.ID {
	case panel.F16:
		return func(col, h int) VecVirtual {
			v := ZMM()
			VCVTPH2PS(Mem{Base: w, Disp: line*col + line/2*h}, v)
			return v
		}
	case panel.BF16:
		high := broadcast32(0xffff0000)
		return func(col, h int) VecVirtual {
			v, pair := ZMM(), Mem{Base: w, Disp: 2*line*(col/2) + line*h}
			if col%2 == 0 {
				VPSLLD(U8(16), pair, v)
			} else {
				VPANDD(pair, high, v)
			}
			return v
		}
	}
	return func(col, h int) VecVirtual {
		v := ZMM()
		VMOVUPS(Mem{Base: w, Disp: 2*line*col + line*h}, v)
		return v
	}
}

// tree adds eight parts of 32 values, for a number of rows, as a balanced
// binary tree.
func tree() {
	function("treeAVX512", "func(out, parts *float32, rows, outStride, partStride uint64)",
		"adds eight parts [rows][32] as a balanced binary tree")
	out, parts := Load(Param("out"), GP64()), Load(Param("parts"), GP64())
	n, outStride := Load(Param("rows"), GP64()), Load(Param("outStride"), GP64())
	p := newRows(parts, 8, "partStride")
	s7 := GP64()
	LEAQ(Mem{Base: p.s1, Index: p.s3, Scale: 2}, s7)
	at := func(s, disp int) Mem {
		switch s {
		case 6:
			return Mem{Base: parts, Index: p.s3, Scale: 2, Disp: disp}
		case 7:
			return Mem{Base: parts, Index: s7, Scale: 1, Disp: disp}
		}
		return p.at(s, disp)
	}
	Label("loop")
	for h := range 2 {
		v := zmms(4)
		for i := range v {
			VMOVUPS(at(2*i, line*h), v[i])
			VADDPS(at(2*i+1, line*h), v[i], v[i])
		}
		VADDPS(v[1], v[0], v[0])
		VADDPS(v[3], v[2], v[2])
		VADDPS(v[2], v[0], v[0])
		VMOVUPS(v[0], Mem{Base: out, Disp: line * h})
	}
	ADDQ(U32(4*panel.Rows), parts)
	ADDQ(outStride, out)
	DECQ(n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
