package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"

	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
)

func add(width int) {
	text("add", width, "func(y, x []float32)", "adds x to y, of one length.")
	y := pointer("y")
	x86.Elements(width, 4, length("y"), y, []reg.GPVirtual{y, pointer("x")}, func(v [][]reg.VecVirtual) {
		for i, y := range v[0] {
			VADDPS(v[1][i], y, y)
		}
	})
	end()
}

func scale(width int) {
	text("scale", width, "func(x []float32, a float32)", "multiplies x by a.")
	withFactor(width, func(a, x reg.VecVirtual) { VMULPS(a, x, x) })
}

func divide(width int) {
	text("divide", width, "func(x []float32, a float32)", "divides x by a.")
	withFactor(width, func(a, x reg.VecVirtual) { VDIVPS(a, x, x) })
}

func withFactor(width int, op func(a, x reg.VecVirtual)) {
	a := x86.Vec(width)
	VBROADCASTSS(address("a"), a)
	x := pointer("x")
	x86.Elements(width, 4, length("x"), x, []reg.GPVirtual{x}, func(v [][]reg.VecVirtual) {
		for _, x := range v[0] {
			op(a, x)
		}
	})
	end()
}

func swiglu(width int) {
	text("swiglu", width, "func(gate, up []float32)", "writes silu(gate) · up into gate.")
	sign := x86.Broadcast(width, x86.Bits(1<<31))
	gated(width, func(gate, e []reg.VecVirtual) { // exp(-gate)
		for i, g := range gate {
			VXORPS(sign, g, e[i])
		}
	})
	end()
}

// gelu(x) = x · (1 + tanh(u))/2 = x / (1 + exp(-2u)), where u = √(2/π)·(x + 0.044715·x³).
func geglu(width int) {
	text("geglu", width, "func(gate, up []float32)", "writes gelu(gate) · up into gate, with the tanh form of GELU.")
	linear := x86.Broadcast(width, x86.Float(-2*0.79788456080286535588))
	cubic := x86.Broadcast(width, x86.Float(-2*0.79788456080286535588*0.044715))
	gated(width, func(gate, e []reg.VecVirtual) {
		for i, g := range gate {
			VMULPS(g, g, e[i])
		}
		for i := range gate {
			VFMADD213PS(linear, cubic, e[i])
		}
		for i, g := range gate {
			VMULPS(g, e[i], e[i])
		}
	})
	end()
}

// gated writes gate / (1 + exp(e)) · up into gate, where argument sets e.
func gated(width int, argument func(gate, e []reg.VecVirtual)) {
	exp := x86.NewExp(width)
	one := x86.Broadcast(width, x86.Float(1))
	gate := pointer("gate")
	unroll := width / 128 // five registers each
	x86.Elements(width, unroll, length("gate"), gate, []reg.GPVirtual{gate, pointer("up")}, func(v [][]reg.VecVirtual) {
		gate, up := v[0], v[1]
		e := x86.Vecs(width, len(gate))
		argument(gate, e)
		exp.Apply(e...)
		for i, gate := range gate {
			VADDPS(one, e[i], e[i])
			VDIVPS(e[i], gate, gate)
			VMULPS(up[i], gate, gate)
		}
	})
}
