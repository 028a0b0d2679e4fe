package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
)

const (
	columns  = 32 // positions of a block
	headSums = 4  // sums of heads, by h%4
)

// sumHeads takes two vectors of positions at a time, all that registers hold
// of AVX2: with the four sums these are eight chains of multiply-adds.
func sumHeads(width int) {
	text("sumHeads", width, "func(out *[32]float32, s, w []float32)", "writes the weighted sums of positive scores s of all heads.")
	const vectors = 2
	out := Load(Param("out"), GP64())
	none := x86.Vec(width)
	zero(none)
	for from := 0; from < columns; from += vectors * width / 32 {
		at := func(base reg.Register, head, v int) Mem {
			return Mem{Base: base, Disp: 4*(columns*head+from) + width/8*v}
		}
		s, w, n := pointer("s"), pointer("w"), length("w")
		var sums [headSums][]reg.VecVirtual
		for i := range sums {
			sums[i] = x86.Vecs(width, vectors)
			for _, v := range sums[i] {
				zero(v)
			}
		}
		head := func(i int) {
			a := x86.Broadcast(width, Mem{Base: w, Disp: 4 * i})
			for v, sum := range sums[i] {
				x := x86.Vec(width)
				VMAXPS(at(s, i, v), none, x) // the second source, the score, if it is NaN
				VFMADD231PS(a, x, sum)
			}
		}
		label := func(name string) string { return fmt.Sprintf("%s%d", name, from) }

		Label(label("heads"))
		CMPQ(n, U32(headSums))
		JB(LabelRef(label("rest")))
		for i := range headSums {
			head(i)
		}
		ADDQ(U32(4*columns*headSums), s)
		ADDQ(U32(4*headSums), w)
		SUBQ(U32(headSums), n)
		JMP(LabelRef(label("heads")))
		Label(label("rest"))
		for i := range headSums - 1 {
			CMPQ(n, U32(uint32(i)))
			JE(LabelRef(label("sum")))
			head(i)
		}
		Label(label("sum"))
		for v := range vectors {
			for half := headSums / 2; half > 0; half /= 2 {
				for i := range half {
					VADDPS(sums[i+half][v], sums[i][v], sums[i][v])
				}
			}
			VMOVUPS(sums[0][v], at(out, 0, v))
		}
	}
	end()
}
