package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
)

// squareSums is how many float64 sums of squares a row has; value i belongs to
// sum i%32. A square of a float32 is exact in float64, so that fusing it with
// the addition changes nothing: every tier gives the same bits.
const squareSums = 32

func rmsNorm(width int) {
	text("rmsNorm", width, "func(y, x, w []float32, eps float32)", "writes w · x / rms(x) for one row. y may be x.")
	n := length("x")
	x := sumSquares(width)

	// inv = 1/√(sum/n + eps), rounded to float32 at the end.
	count, eps := XMM(), XMM()
	VXORPS(count, count, count)
	VCVTSI2SDQ(n, count, count)
	VDIVSD(count, x, x)
	VMOVSS(address("eps"), eps)
	VCVTSS2SD(eps, eps, eps)
	VADDSD(eps, x, x)
	VSQRTSD(x, x, x)
	one := GP64()
	MOVQ(U64(0x3ff0000000000000), one)
	VMOVQ(one, eps)
	VDIVSD(x, eps, x)
	VCVTSD2SS(x, x, x)
	inv := x86.Vec(width)
	VBROADCASTSS(x, inv)

	x86.Elements(width, 4, n, pointer("y"), []reg.GPVirtual{pointer("x"), pointer("w")}, func(v [][]reg.VecVirtual) {
		for i, x := range v[0] {
			VMULPS(inv, x, x)
			VMULPS(v[1][i], x, x)
		}
	})
	end()
}

func squares(width int) {
	text("squares", width, "func(x []float32) float64", "returns Σ x².")
	Store(sumSquares(width), ReturnIndex(0))
	end()
}

// sumSquares sums the squares of parameter x.
func sumSquares(width int) reg.Register {
	x, n := pointer("x"), length("x")
	lanes := width / 64 // of a vector of sums: half as wide a vector of x
	sums := x86.Vecs(width, squareSums/lanes)
	for _, s := range sums {
		VXORPS(s, s, s)
	}
	v := x86.Vecs(width, len(sums))
	add := func() {
		for i, s := range sums {
			VFMADD231PD(v[i], v[i], s)
		}
	}

	Label("squares")
	CMPQ(n, U32(squareSums))
	JB(LabelRef("lastSquares"))
	for i := range v {
		VCVTPS2PD(Mem{Base: x, Disp: 4 * lanes * i}, v[i])
	}
	add()
	ADDQ(U32(4*squareSums), x)
	SUBQ(U32(squareSums), n)
	JMP(LabelRef("squares"))

	Label("lastSquares")
	TESTQ(n, n)
	JZ(LabelRef("sum"))
	if width == 512 {
		bits, k := x86.FirstBits(n), K()
		for i := range v {
			KMOVW(bits, k)
			VCVTPS2PD_Z(Mem{Base: x, Disp: 4 * lanes * i}, k, v[i])
			SHRL(U8(lanes), bits)
		}
	} else {
		for i := range v {
			mask := XMM()
			VMOVUPS(x86.FirstWords(n, lanes*i), mask)
			VMASKMOVPS(Mem{Base: x, Disp: 4 * lanes * i}, mask, mask)
			VCVTPS2PD(mask, v[i])
		}
	}
	add()
	Label("sum")
	// The sums are added as a tree: j and j+16, j and j+8, …
	for half := len(sums) / 2; half > 0; half /= 2 {
		for j := range half {
			VADDPD(sums[half+j], sums[j], sums[j])
		}
	}
	return sumFloat64(width, sums[0])
}
