package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
)

// hadamardEights transforms eight vectors, 128 or 64 values, in registers.
func hadamardEights(width int) {
	text("hadamardEights", width, "func(x []float32)", "multiplies each eight vectors of x by the Hadamard matrix of their size.")
	x, n := pointer("x"), length("x")
	lanes := width / 32
	Label("loop")
	CMPQ(n, U32(uint32(8*lanes)))
	JB(LabelRef("done"))
	at := func(i int) Mem { return Mem{Base: x, Disp: width / 8 * i} }
	v := x86.Vecs(width, 8)
	for i := range v {
		VMOVUPS(at(i), v[i])
	}
	for stride := 1; stride < lanes; stride *= 2 {
		signs := x86.Vec(width)
		VMOVUPS(signsOf(stride), signs)
		for i := range v {
			// Lanes whose partner is before them get partner - x, others x + partner.
			partner := x86.Vec(width)
			swap(width, stride, v[i], partner)
			VXORPS(signs, v[i], v[i])
			VADDPS(partner, v[i], v[i])
		}
	}
	for stride := 1; stride < len(v); stride *= 2 {
		for i := range v {
			if i&stride == 0 {
				sum := x86.Vec(width)
				VADDPS(v[i+stride], v[i], sum)
				VSUBPS(v[i+stride], v[i], v[i+stride])
				v[i] = sum
			}
		}
	}
	for i := range v {
		VMOVUPS(v[i], at(i))
	}
	ADDQ(U32(uint32(width)), x)
	SUBQ(U32(uint32(8*lanes)), n)
	JMP(LabelRef("loop"))
	Label("done")
	end()
}

// signsOf has the sign bit of 16 lanes whose number has the bit stride.
func signsOf(stride int) Mem {
	words := make([]uint64, 8)
	for lane := range 16 {
		if lane&stride != 0 {
			words[lane/2] |= 1 << (31 + 32*(lane%2))
		}
	}
	return x86.Table(fmt.Sprintf("signs%d", stride), words...)
}

// swap exchanges lanes that are stride apart.
func swap(width, stride int, from, to reg.VecVirtual) {
	switch {
	case stride == 1:
		VPERMILPS(U8(0b10_11_00_01), from, to)
	case stride == 2:
		VPERMILPS(U8(0b01_00_11_10), from, to)
	case width == 256:
		VPERM2F128(U8(1), from, from, to)
	case stride == 4:
		VSHUFF32X4(U8(0b10_11_00_01), from, from, to)
	case stride == 8:
		VSHUFF32X4(U8(0b01_00_11_10), from, from, to)
	}
}
