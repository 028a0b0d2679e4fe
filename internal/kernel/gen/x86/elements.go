package x86

import (
	"fmt"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Elements emits loops over n values from each source: body gets unroll
// vectors of every source, then one at a time, then the masked tail, and
// leaves the result in those of the first source, which are stored to dst. It
// overwrites n and the pointers; dst may be a source. Every value goes through
// the same instructions wherever it lies, so that it does not depend on its
// neighbours.
func Elements(width, unroll int, n, dst reg.GPVirtual, sources []reg.GPVirtual, body func(v [][]reg.VecVirtual)) {
	lanes := width / 32
	at := func(p reg.GPVirtual, i int) Mem { return Mem{Base: p, Disp: width / 8 * i} }
	pointers := []reg.GPVirtual{dst}
	for _, p := range sources {
		if !slices.Contains(pointers, p) {
			pointers = append(pointers, p)
		}
	}
	step := func(vectors int, load, store func(m Mem, v reg.VecVirtual)) {
		v := make([][]reg.VecVirtual, len(sources))
		for k, p := range sources {
			v[k] = Vecs(width, vectors)
			for i := range v[k] {
				load(at(p, i), v[k][i])
			}
		}
		body(v)
		for i := range vectors {
			store(at(dst, i), v[0][i])
		}
	}
	for _, vectors := range []int{unroll, 1} {
		loop, done := fmt.Sprintf("by%d", vectors), fmt.Sprintf("below%d", vectors)
		Label(loop)
		CMPQ(n, U32(uint32(vectors*lanes)))
		JB(LabelRef(done))
		step(vectors,
			func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) },
			func(m Mem, v reg.VecVirtual) { VMOVUPS(v, m) })
		for _, p := range pointers {
			ADDQ(U32(uint32(vectors*width/8)), p)
		}
		SUBQ(U32(uint32(vectors*lanes)), n)
		JMP(LabelRef(loop))
		Label(done)
	}
	TESTQ(n, n)
	JZ(LabelRef("done"))
	tail := NewTail(width, n)
	step(1, tail.Load, func(m Mem, v reg.VecVirtual) { tail.Store(v, m) })
	Label("done")
}
