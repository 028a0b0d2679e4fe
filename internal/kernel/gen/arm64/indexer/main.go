// Command indexer writes the kernels of the indexer for arm64. What each one
// computes, and in which order, is said in kernel.indexerKernels.
package main

import (
	"encoding/binary"
	"math"

	. "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"
)

func main() {
	sumHeads()
	hadamard()
	peakBits()
	round()
	clamp()
	Generate()
}

// pointer loads the address of a slice that is a parameter, length its length.
func pointer(name string) R { return Param(name + "_base") }
func length(name string) R  { return Param(name + "_len") }

const (
	columns  = 32 // positions of a block
	headSums = 4  // sums of heads, by h%4
)

// sumHeads takes half of the positions at a time: four vectors, with four sums
// each.
func sumHeads() {
	Function("sumHeadsNEON", "func(out *[32]float32, s, w []float32)", "writes the weighted sums of positive scores s of all heads.")
	const vectors = 4
	out, none := Param("out"), NewV()
	ZERO(none)
	for from := 0; from < columns; from += 4 * vectors {
		Scope(func() {
			s, w, n := pointer("s"), pointer("w"), length("w")
			Add(s, 4*from)
			var sums [headSums][]V
			for i := range sums {
				sums[i] = NewVs(vectors)
				for _, v := range sums[i] {
					ZERO(v)
				}
			}
			a, x := NewV(), NewVs(vectors)
			head := func(i int) { // with the weight in word i of a
				LDP(x[0], x[1], s, 0)
				LDP(x[2], x[3], s, 32)
				Add(s, 4*columns)
				for v, x := range x {
					FMAX(x, x, none)
					FMLAElem(sums[i][v], x, a, i)
				}
			}
			Loop(n, headSums, func() {
				LDRPost(a, w, 16)
				for i := range headSums {
					head(i)
				}
			})
			LoadPart(a, w, n)
			end := NewLabel("sum")
			for i := range headSums - 1 {
				Asm("CMP $%d, %v", i, n)
				Asm("BEQ %s", end)
				head(i)
			}
			Label(end)
			for v := range vectors {
				for half := headSums / 2; half > 0; half /= 2 {
					for i := range half {
						FADD(sums[i][v], sums[i][v], sums[i+half][v])
					}
				}
			}
			STP(sums[0][0], sums[0][1], out, 4*from)
			STP(sums[0][2], sums[0][3], out, 4*from+32)
		})
	}
	Return()
}

// hadamard transforms 16 vectors, 64 values, in registers.
func hadamard() {
	Function("hadamard64NEON", "func(x []float32)", "multiplies each 64 values of x by the Hadamard matrix of their size.")
	x, n := pointer("x"), length("x")
	signs := NewVs(2)
	const minus = 1 << 31
	LoadData(signs[0], data("signs1", 0, minus, 0, minus))
	LoadData(signs[1], data("signs2", 0, 0, minus, minus))
	Loop(n, 64, func() {
		v := NewVs(16)
		for i := 0; i < len(v); i += 2 {
			LDP(v[i], v[i+1], x, 16*i)
		}
		// Lanes whose partner is before them get partner - v, others v + partner.
		partner := NewV()
		for _, v := range v {
			Asm("VREV64 %v.S4, %v.S4", v, partner)
			EOR(v, v, signs[0])
			FADD(v, partner, v)
			EXT(partner, v, v, 8)
			EOR(v, v, signs[1])
			FADD(v, partner, v)
		}
		difference := partner
		for stride := 1; stride < len(v); stride *= 2 {
			for i := range v {
				if i&stride == 0 {
					a, b := v[i], v[i+stride]
					FSUB(difference, a, b)
					FADD(a, a, b)
					v[i+stride], difference = difference, b
				}
			}
		}
		for i := 0; i < len(v); i += 2 {
			STPPost(v[i], v[i+1], x, 32)
		}
	})
	Return()
}

// data is a constant of four words.
func data(name string, words ...uint32) string {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return Data(name, b)
}

func broadcast(bits uint32) V {
	v := NewV()
	Broadcast(v, bits)
	return v
}

// peakBits compares magnitudes as integers.
func peakBits() {
	Function("peakBitsNEON", "func(x []float32) uint32", "returns the greatest magnitude of x as bits.")
	x, n := pointer("x"), length("x")
	magnitude := broadcast(math.MaxInt32)
	most, v := NewVs(2), NewVs(2)
	for _, m := range most {
		ZERO(m)
	}
	take := func(i int) {
		AND(v[i], v[i], magnitude)
		UMAX4S(most[i], most[i], v[i])
	}
	Loop(n, 8, func() {
		LDPPost(v[0], v[1], x, 32)
		take(0)
		take(1)
	})
	Loop(n, 4, func() {
		LDRPost(v[0], x, 16)
		take(0)
	})
	ZERO(v[1])
	LoadPart(v[1], x, n)
	take(1)
	UMAX4S(most[0], most[0], most[1])
	UMAXV(most[0], most[0])
	ReturnFloat32(most[0])
}

// round adds 1.5·2²³ steps of the format and subtracts them, which leaves
// whole steps.
func round() {
	Function("roundNEON", "func(x []float32, inv, scale float32, least, steps uint32)",
		"rounds x·inv to steps that follow the exponent, no less than least, and multiplies by scale.")
	inv, scale, least, steps := FloatParam("inv"), FloatParam("scale"), FloatParam("least"), FloatParam("steps")
	exponent, sign := broadcast(0xff<<23), broadcast(1<<31)
	x := pointer("x")
	Elements(4, length("x"), x, []R{x}, func(v [][]V) {
		shift := NewVs(len(v[0]))
		for i, x := range v[0] {
			FMUL(x, x, inv)
			AND(shift[i], x, exponent)
			UMAX4S(shift[i], shift[i], least)
			ADD4S(shift[i], shift[i], steps)
		}
		rounded := NewVs(len(v[0]))
		for i, x := range v[0] {
			FADD(rounded[i], x, shift[i])
			FSUB(rounded[i], rounded[i], shift[i])
			BIT(rounded[i], x, sign) // -0 stays
			FMUL(x, rounded[i], scale)
		}
	})
	Return()
}

func clamp() {
	Function("clampNEON", "func(x []float32, low, high float32)", "bounds x; a NaN stays.")
	low, high := FloatParam("low"), FloatParam("high")
	x := pointer("x")
	Elements(4, length("x"), x, []R{x}, func(v [][]V) {
		for _, x := range v[0] {
			FMAX(x, x, low)
			FMIN(x, x, high)
		}
	})
	Return()
}
