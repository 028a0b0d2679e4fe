// Command avx2 writes the products of weight panels with rows of activations
// for amd64 processors without AVX-512.
//
// Sixteen registers of eight lanes are too few for the outputs of 32 rows, so a
// kernel walks each block of a panel in steps of some rows. The float sums stay
// where they are stored in the end, which costs a load and a store for some
// twenty instructions. A lane adds its blocks in their order, so a row's bits
// do not depend on T.
package main

import (
	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
	"github.com/foretoken/foretoken/internal/kernel/panel"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const (
	vector   = 32 // bytes
	lanes    = 8  // of four bytes
	line     = 64 // bytes of a cache line
	maxTile  = 5  // rows of quantised activations that a kernel takes
	maxFloat = 6  // rows of float activations
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
	tree()
	Generate()
}

// function begins a kernel that keeps to its arguments.
func function(name, signature, doc string) {
	used = 0
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(doc)
}

const dotSignature = "func(w, a, out, next *byte, groups, aStride, outStride, nextStep uint64)"

func end() {
	VZEROUPPER()
	RET()
}

// param is where a parameter lies, for those that are not worth a register.
func param(name string) Mem {
	b, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

// used is the number of vector registers that the function has taken.
var used int

var registers = [16]VecPhysical{Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15}

// ymm takes a register. They are assigned by hand because an allocator that
// runs out of the sixteen goes on to those of AVX-512.
func ymm() VecPhysical {
	v := registers[used]
	used++
	return v
}

func ymms(n int) []VecPhysical {
	v := make([]VecPhysical, n)
	for i := range v {
		v[i] = ymm()
	}
	return v
}

// constant is a value in all lanes: in a register if one is left for the rest
// of the function, else in memory. It is the first operand of an instruction.
func constant(bits uint32) Op {
	return held(x86.Bits(bits))
}

// held is a constant in a register if there is one left.
func held(m Mem) Op {
	if used == len(registers) {
		return m
	}
	v := ymm()
	VMOVDQU(m, v)
	return v
}

func constant8(bits uint8) Op { return constant(uint32(bits) * 0x01010101) }

// steps is a walk over the 32 rows of a panel, a number of vectors of eight
// rows at a time.
type steps struct {
	vectors int
	row     Register // first of the step; nil if there is but one step
}

// walk runs body for each step.
func walk(vectors int, body func(s steps)) {
	if lanes*vectors == panel.Rows {
		body(steps{vectors, nil})
		return
	}
	s := steps{vectors, GP64()}
	XORQ(s.row, s.row)
	Label("rows")
	body(s)
	ADDQ(U32(uint32(lanes*vectors)), s.row)
	CMPQ(s.row, U32(panel.Rows))
	JNE(LabelRef("rows"))
}

// at addresses vector v of the step in an array of values of size bytes, one
// for each row of the panel.
func (s steps) at(base Register, size, disp, v int) Mem {
	m := Mem{Base: base, Disp: disp + lanes*size*v}
	if s.row != nil {
		m.Index, m.Scale = s.row, uint8(size)
	}
	return m
}

// prefetchFrom is the number of rows from which kernels ask for what they read
// next. With fewer they wait for memory alone, and the processor's own
// prefetching is faster undisturbed.
const prefetchFrom = 3

// prefetch asks for lines at base, into the second-level cache.
func prefetch(base Register, lines int) {
	for i := range lines {
		PREFETCHT1(Mem{Base: base, Disp: line * i})
	}
}

// rows addresses T rows that lie stride bytes apart.
type rows struct{ base, s1, s3, s5, s7 Register }

func newRows(base Register, T int, param string) rows {
	r := rows{base: base}
	if T > 1 {
		r.s1 = Load(Param(param), GP64())
	}
	sum := func(a, b Register, scale uint8) Register {
		m := GP64()
		LEAQ(Mem{Base: a, Index: b, Scale: scale}, m)
		return m
	}
	if T > 3 {
		r.s3 = sum(r.s1, r.s1, 2)
	}
	if T > 5 {
		r.s5 = sum(r.s1, r.s1, 4)
	}
	if T > 7 {
		r.s7 = sum(r.s1, r.s3, 2)
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
	case 6:
		m.Index, m.Scale = r.s3, 2
	case 7:
		m.Index, m.Scale = r.s7, 1
	}
	return m
}

// outputs walks the rows of out: body gets each row's address in turn.
func outputs(out Register, T int, body func(t int, at Register)) {
	if T == 1 {
		body(0, out)
		return
	}
	at := GP64()
	MOVQ(out, at)
	for t := range T {
		body(t, at)
		if t < T-1 {
			ADDQ(param("outStride"), at)
		}
	}
}
