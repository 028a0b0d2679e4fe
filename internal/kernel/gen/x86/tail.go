package x86

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A Tail loads and stores the first values of a vector of float32 and touches
// no memory beyond them.
type Tail struct {
	K    reg.OpmaskVirtual // AVX-512
	mask reg.VecVirtual    // AVX2
}

// NewTail covers n values, fewer than a vector of width bits has. n is kept.
func NewTail(width int, n reg.Register) Tail {
	if width == 512 {
		t := Tail{K: K()}
		KMOVW(FirstBits(n), t.K)
		return t
	}
	t := Tail{mask: YMM()}
	VMOVUPS(FirstWords(n, 0), t.mask)
	return t
}

// Load loads v; values beyond the tail are 0.
func (t Tail) Load(m Mem, v reg.VecVirtual) {
	if t.K != nil {
		VMOVUPS_Z(m, t.K, v)
	} else {
		VMASKMOVPS(m, t.mask, v)
	}
}

// LoadOver loads v; values beyond the tail stay.
func (t Tail) LoadOver(m Mem, v reg.VecVirtual) {
	if t.K != nil {
		VMOVUPS(m, t.K, v)
	} else {
		loaded := YMM()
		VMASKMOVPS(m, t.mask, loaded)
		VBLENDVPS(t.mask, loaded, v, v)
	}
}

// Store stores v.
func (t Tail) Store(v reg.VecVirtual, m Mem) {
	if t.K != nil {
		VMOVUPS(v, t.K, m)
	} else {
		VMASKMOVPS(v, t.mask, m)
	}
}

// FirstBits returns the n lowest bits set, n < 32.
func FirstBits(n reg.Register) reg.Register {
	bits := GP32()
	MOVQ(n, reg.RCX)
	MOVL(U32(1), bits)
	SHLL(reg.CL, bits)
	DECL(bits)
	return bits
}

// FirstWords is where words of ones start of which the first is word skip of n
// such words, n <= 32, before words of zeros: a mask for values skip, skip+1, …
// of n.
func FirstWords(n reg.Register, skip int) Mem {
	words := make([]uint64, 32)
	for i := range 16 {
		words[i] = ^uint64(0)
	}
	from, back := GP64(), GP64()
	LEAQ(Table("first", words...), from)
	MOVQ(n, back)
	NEGQ(back)
	return Mem{Base: from, Index: back, Scale: 4, Disp: 4 * (32 + skip)}
}
