package main

import . "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"

func add() {
	Function("addNEON", "func(y, x []float32)", "adds x to y, of one length.")
	y := pointer("y")
	Elements(4, length("y"), y, []R{y, pointer("x")}, func(v [][]V) {
		for i, y := range v[0] {
			FADD(y, y, v[1][i])
		}
	})
	Return()
}

func scale() {
	Function("scaleNEON", "func(x []float32, a float32)", "multiplies x by a.")
	byConstant(FMUL)
}

func divide() {
	Function("divideNEON", "func(x []float32, a float32)", "divides x by a.")
	byConstant(FDIV)
}

func byConstant(op func(d, n, m V)) {
	a, x := FloatParam("a"), pointer("x")
	Elements(4, length("x"), x, []R{x}, func(v [][]V) {
		for _, x := range v[0] {
			op(x, x, a)
		}
	})
	Return()
}

func swiglu() {
	Function("swigluNEON", "func(gate, up []float32)", "writes silu(gate) · up into gate.")
	gated(func(gate, e []V) { // exp(-gate)
		for i, g := range gate {
			FNEG(e[i], g)
		}
	})
}

// gelu(x) = x · (1 + tanh(u))/2 = x / (1 + exp(-2u)), where u = √(2/π)·(x + 0.044715·x³).
func geglu() {
	Function("gegluNEON", "func(gate, up []float32)", "writes gelu(gate) · up into gate, with the tanh form of GELU.")
	linear := broadcast(-2 * 0.79788456080286535588)
	cubic := broadcast(-2 * 0.79788456080286535588 * 0.044715)
	gated(func(gate, e []V) {
		Scope(func() {
			square := NewV()
			for i, g := range gate {
				FMUL(square, g, g)
				MOV(e[i], linear)
				FMLA(e[i], square, cubic)
				FMUL(e[i], e[i], g)
			}
		})
	})
}

// gated writes gate / (1 + exp(e)) · up into gate, where argument sets e.
func gated(argument func(gate, e []V)) {
	exp, one := NewExp(), broadcast(1)
	gate := pointer("gate")
	Elements(2, length("gate"), gate, []R{gate, pointer("up")}, func(v [][]V) {
		gate, up := v[0], v[1]
		e := NewVs(len(gate))
		argument(gate, e)
		exp.Apply(e...)
		for i, gate := range gate {
			FADD(e[i], e[i], one)
			FDIV(gate, gate, e[i])
			FMUL(gate, gate, up[i])
		}
	})
	Return()
}
