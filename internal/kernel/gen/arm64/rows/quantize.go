package main

import . "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"

// The parts of a QBlock.
const (
	scaleAndNeg = 0  // Scale, Neg
	sumAndZero  = 16 // Sum, zero
	quanta      = 32 // Q
	blockBytes  = 64
)

// The absolute values, as bits, between which a block is quantised.
const (
	tinyBits     = 0x0d800000 // 2⁻¹⁰⁰
	infinityBits = 0x7f800000
)

// quantize writes one block for each 32 values. A block whose values are all
// tiny, or that has a NaN or an infinity, is rare: it branches off.
func quantize() {
	Function("quantizeNEON", "func(dst *byte, x []float32)", "quantises x, 32 values to each QBlock at dst.")
	dst, x, n := Param("dst"), pointer("x"), length("x")
	c127, absolute, zero := broadcast(127), NewV(), NewV()
	Broadcast(absolute, 0x7fffffff)
	ZERO(zero)
	bits, range_ := NewR(), NewR()
	Asm("MOVW $0x%08x, %v", infinityBits-tinyBits, range_)
	Loop(n, 32, func() {
		v := NewVs(8)
		for i := 0; i < 8; i += 2 {
			LDPPost(v[i], v[i+1], x, 32)
		}
		special, next := NewLabel("special"), NewLabel("next")
		amax := NewV()
		absMax(amax, v, absolute)
		Asm("VMOV %v.S[0], %v", amax, bits)
		Asm("SUBW $0x%08x, %v", tinyBits, bits)
		Asm("CMPW %v, %v", range_, bits)
		Asm("BHS %s", special)

		scale, inv := NewV(), NewV()
		DUP(amax, amax, 0)
		FDIV(scale, amax, c127)
		FDIV(inv, c127, amax)
		// |x|·inv is at most 127·(1+2⁻²³), which rounds to 127: nothing is clamped.
		for _, v := range v {
			FMUL(v, v, inv)
			FCVTNS(v, v)
		}
		head, sum := NewV(), NewV()
		sums(head, v)
		SCVTF(sum, head)
		FMUL(sum, sum, scale)
		EXT(sum, sum, zero, 4)
		SUB4S(head, zero, head)
		INS(head, 0, scale, 0)
		STP(head, sum, dst, scaleAndNeg)
		Narrow(v)
		STP(v[0], v[4], dst, quanta)

		Label(next)
		Add(dst, blockBytes)
		after := NewLabel("after")
		Asm("B %s", after)

		Label(special) // all zero, but for the scale and sums of a block with a NaN or an infinity
		STP(zero, zero, dst, scaleAndNeg)
		STP(zero, zero, dst, quanta)
		Asm("CMPW %v, %v", range_, bits)
		Asm("BLT %s", next) // below both limits, bits is negative
		Asm("MOVW $0x7fc00000, %v", bits)
		for _, at := range []int{scaleAndNeg, sumAndZero, sumAndZero + 4, sumAndZero + 8} {
			Asm("MOVW %v, %d(%v)", bits, at, dst)
		}
		Asm("B %s", next)
		Label(after)
	})
	Return()
}

// absMax returns the greatest absolute value in the first lane. Compared as
// integers, infinities and then NaNs are the greatest.
func absMax(most V, v []V, absolute V) {
	Scope(func() {
		abs := NewVs(len(v))
		for i, v := range v {
			AND(abs[i], v, absolute)
		}
		for n := len(abs) / 2; n > 0; n /= 2 {
			for i := range n {
				UMAX4S(abs[i], abs[i], abs[i+n])
			}
		}
		UMAXV(most, abs[0])
	})
}

// sums sets the words of d from the second on to the sum of the 32 integers of
// v, of the first 16 and of the last.
func sums(d V, v []V) {
	Scope(func() {
		half := NewVs(2)
		for h, s := range half {
			ADD4S(s, v[4*h], v[4*h+1])
			ADD4S(s, s, v[4*h+2])
			ADD4S(s, s, v[4*h+3])
		}
		ADDP4S(d, half[0], half[1])
		ADDP4S(d, d, d)
		ADDP4S(half[0], d, d)
		INS(d, 1, half[0], 0)
	})
}

// toBF16 rounds in integers.
func toBF16() {
	Function("toBF16NEON", "func(dst []uint16, x []float32)", "rounds x to bfloat16, ties to even.")
	dst, x, n := pointer("dst"), pointer("x"), length("x")
	one, half, quiet := NewV(), NewV(), NewV()
	Broadcast(one, 1)
	Broadcast(half, 0x7fff)
	Broadcast(quiet, 0x400000)

	// round leaves results in the high halves of v.
	round := func(v V) {
		Scope(func() {
			even, number := NewV(), NewV()
			FCMEQ(number, v, v)
			Shift4S(even, v, -16)
			AND(even, even, one)
			ADD4S(even, even, half)
			ADD4S(even, even, v)
			ORR(v, v, quiet)
			BIT(v, even, number)
		})
	}
	Loop(n, 8, func() {
		v := NewVs(2)
		LDPPost(v[0], v[1], x, 32)
		round(v[0])
		round(v[1])
		UZP2H(v[0], v[0], v[1])
		STRPost(v[0], dst, 16)
	})
	Loop(n, 1, func() {
		v := NewV()
		LDRS(v, x, 0)
		round(v)
		ST1H(v, 1, dst)
		Add(dst, 2)
		Add(x, 4)
	})
	Return()
}
