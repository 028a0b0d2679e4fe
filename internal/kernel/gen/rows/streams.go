package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
)

// streams is the number of streams of hyper-connections: x [streams, n].
const streams = 4

// streamPointers loads the addresses of the streams of x, of n values each.
func streamPointers(n reg.Register) []reg.GPVirtual {
	x := []reg.GPVirtual{pointer("x")}
	for i := range streams - 1 {
		next := GP64()
		LEAQ(Mem{Base: x[i], Index: n, Scale: 4}, next)
		x = append(x, next)
	}
	return x
}

func sumStreams(width int) {
	text("sumStreams", width, "func(y, x, w []float32)", "writes Σ w[j]·x[j] over the four streams x [4, len(y)].")
	n := length("y")
	x, from := streamPointers(n), pointer("w")
	w := x86.Vecs(width, streams)
	for j, w := range w {
		VBROADCASTSS(Mem{Base: from, Disp: 4 * j}, w)
	}
	unroll := width / 128 // four registers each
	x86.Elements(width, unroll, n, pointer("y"), x, func(v [][]reg.VecVirtual) {
		for i, sum := range v[0] {
			VMULPS(w[0], sum, sum)
			for j := 1; j < streams; j++ {
				VFMADD231PS(w[j], v[j][i], sum)
			}
		}
	})
	end()
}

// mixStreams has 20 factors: AVX-512 keeps them in registers; AVX2 reads each
// for two vectors.
func mixStreams(width int) {
	text("mixStreams", width, "func(x, y, post, comb []float32)",
		"replaces the four streams x [4, len(y)]: x[k] by post[k]·y + Σ comb[j][k]·x[j].")
	n, y := length("y"), pointer("y")
	x, post, comb := streamPointers(n), pointer("post"), pointer("comb")
	factor := func(base reg.Register, i int) reg.VecVirtual {
		v := x86.Vec(width)
		VBROADCASTSS(Mem{Base: base, Disp: 4 * i}, v)
		return v
	}
	ofY := func(k int) reg.VecVirtual { return factor(post, k) }
	ofX := func(j, k int) reg.VecVirtual { return factor(comb, streams*j+k) }
	unroll := 2
	if width == 512 {
		unroll = 1
		var held [1 + streams][streams]reg.VecVirtual
		for k := range streams {
			held[streams][k] = ofY(k)
			for j := range streams {
				held[j][k] = ofX(j, k)
			}
		}
		ofY = func(k int) reg.VecVirtual { return held[streams][k] }
		ofX = func(j, k int) reg.VecVirtual { return held[j][k] }
	}

	i, lanes := GP64(), width/32
	XORQ(i, i)
	step := func(vectors int, load, store func(m Mem, v reg.VecVirtual)) {
		at := func(base reg.Register, vector int) Mem {
			return Mem{Base: base, Index: i, Scale: 4, Disp: width / 8 * vector}
		}
		read := func(base reg.Register) []reg.VecVirtual {
			v := x86.Vecs(width, vectors)
			for i, v := range v {
				load(at(base, i), v)
			}
			return v
		}
		in, of := read(y), make([][]reg.VecVirtual, streams)
		for j := range of {
			of[j] = read(x[j])
		}
		for k := range streams {
			sum, f := x86.Vecs(width, vectors), ofY(k)
			for i, sum := range sum {
				VMULPS(f, in[i], sum)
			}
			for j := range of {
				f := ofX(j, k)
				for i, sum := range sum {
					VFMADD231PS(f, of[j][i], sum)
				}
			}
			for i, sum := range sum {
				store(at(x[k], i), sum)
			}
		}
	}
	whole := func(vectors int) {
		step(vectors,
			func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) },
			func(m Mem, v reg.VecVirtual) { VMOVUPS(v, m) })
		ADDQ(U32(uint32(vectors*lanes)), i)
		SUBQ(U32(uint32(vectors*lanes)), n)
	}
	Label("mix")
	CMPQ(n, U32(uint32(unroll*lanes)))
	JB(LabelRef("mixed"))
	whole(unroll)
	JMP(LabelRef("mix"))
	Label("mixed")
	if unroll > 1 {
		CMPQ(n, U32(uint32(lanes)))
		JB(LabelRef("tail"))
		whole(1)
		Label("tail")
	}
	TESTQ(n, n)
	JZ(LabelRef("done"))
	tail := x86.NewTail(width, n)
	step(1, tail.Load, func(m Mem, v reg.VecVirtual) { tail.Store(v, m) })
	Label("done")
	end()
}
