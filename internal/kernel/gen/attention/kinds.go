package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A kind is how the cache stores values.
type kind struct {
	name string
	size int // bytes of a value, scales not counted
}

var (
	f32   = kind{"F32", 4}
	f16   = kind{"F16", 2}
	bf16  = kind{"BF16", 2}
	q8    = kind{"Q8", 1}
	kinds = []kind{f32, f16, bf16, q8}
)

// A panel of Q8 starts with the scales of its 32 positions.
const (
	q8Scales = 2 * columns
	q8Panel  = q8Scales + columns*columns
)

// panel is the size of a panel of 32 rows.
func (k kind) panel() int {
	if k == q8 {
		return q8Panel
	}
	return columns * columns * k.size
}

// load reads a vector of values, without their scales.
func (m *machine) load(k kind, from Mem, v reg.VecVirtual) {
	switch k {
	case f32:
		VMOVUPS(from, v)
	case f16:
		VCVTPH2PS(from, v)
	case bf16: // the upper half of a float32
		VPMOVZXWD(from, v)
		VPSLLD(U8(16), v, v)
	case q8:
		VPMOVSXBD(from, v)
		VCVTDQ2PS(v, v)
	}
}
