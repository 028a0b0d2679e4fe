// Package x86 holds what the generators of amd64 assembly share. One generator
// emits the AVX-512 and the AVX2 form of a kernel: vectors are ZMM registers
// in the one and YMM registers in the other, and the functions here hide what
// else differs.
package x86

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Vec allocates a vector of width bits, 512 or 256.
func Vec(width int) reg.VecVirtual {
	switch width {
	case 512:
		return ZMM()
	case 256:
		return YMM()
	}
	panic(fmt.Sprintf("no vectors of %d bits", width))
}

// Vecs allocates n vectors.
func Vecs(width, n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = Vec(width)
	}
	return v
}

// Suffix is how the names of functions with vectors of width bits end.
func Suffix(width int) string {
	if width == 512 {
		return "AVX512"
	}
	return "AVX2"
}

// tables are those of the file that is generated, by name.
var tables = map[string]Mem{}

// Table is a table of 64-bit words in memory. One name is one table.
func Table(name string, words ...uint64) Mem {
	m, ok := tables[name]
	if !ok {
		m = GLOBL(name, attr.RODATA|attr.NOPTR)
		for i, w := range words {
			DATA(8*i, U64(w))
		}
		tables[name] = m
	}
	return m
}

// Bits is a constant in memory, repeated over 256 bits: instructions of AVX2
// read it whole, those of AVX-512 broadcast the first 32 bits.
func Bits(v uint32) Mem {
	w := uint64(v)<<32 | uint64(v)
	return Table(fmt.Sprintf("const%08x", v), w, w, w, w)
}

// Float is a float32 constant.
func Float(v float32) Mem { return Bits(math.Float32bits(v)) }

// Broadcast fills a new vector with a constant.
func Broadcast(width int, c Mem) reg.VecVirtual {
	v := Vec(width)
	VBROADCASTSS(c, v)
	return v
}
