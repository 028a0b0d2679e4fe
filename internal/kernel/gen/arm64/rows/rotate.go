package main

import . "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"

// heads loops over the heads of one row, width values apart. Within a head a
// rotation loops over the pairs, len(cos) of them; their number, and where the
// angles are, are new for each head. Products are rounded before they are
// added, as in plain Go: every tier gives the same bits.
func heads(head func(x, cos, sin, pairs R)) {
	x, n, stride := pointer("x"), Param("heads"), Param("width")
	end := NewLabel("end")
	Asm("CBZ %v, %s", n, end)
	Asm("LSL $2, %v, %v", stride, stride)
	Repeat("head", n, func() {
		at := NewR()
		Asm("MOVD %v, %v", x, at)
		head(at, pointer("cos"), pointer("sin"), length("cos"))
		Asm("ADD %v, %v", stride, x)
	})
	Label(end)
	Return()
}

// turn rotates pairs (a, b) by angles of which c and s are cosines and sines.
func turn(a, b, c, s V) {
	Scope(func() {
		as, bs := NewV(), NewV()
		FMUL(as, a, s)
		FMUL(bs, b, s)
		FMUL(a, a, c)
		FMUL(b, b, c)
		FSUB(a, a, bs)
		FADD(b, b, as)
	})
}

// rotate turns pairs (i, i+len(cos)).
func rotate() {
	Function("rotateNEON", "func(x, cos, sin []float32, heads, width int)", "rotates pairs (i, i+len(cos)) of every head.")
	heads(func(p, cos, sin, pairs R) {
		q := NewR()
		Asm("ADD %v<<2, %v, %v", pairs, p, q)
		a, b, c, s := NewV(), NewV(), NewV(), NewV()
		Loop(pairs, 4, func() {
			LDRPost(c, cos, 16)
			LDRPost(s, sin, 16)
			LDR(a, p, 0)
			LDR(b, q, 0)
			turn(a, b, c, s)
			STRPost(a, p, 16)
			STRPost(b, q, 16)
		})
		end := NewLabel("turned")
		Asm("CBZ %v, %s", pairs, end)
		for _, v := range []struct {
			v  V
			at R
		}{{c, cos}, {s, sin}, {a, p}, {b, q}} {
			ZERO(v.v)
			LoadPart(v.v, v.at, pairs)
		}
		turn(a, b, c, s)
		StorePart(a, p, pairs)
		StorePart(b, q, pairs)
		Label(end)
	})
}

// rotatePairs turns pairs (2i, 2i+1).
func rotatePairs() {
	Function("rotatePairsNEON", "func(x, cos, sin []float32, heads, width int)", "rotates pairs (2i, 2i+1) of every head.")
	heads(func(x, cos, sin, pairs R) {
		v, w, a, b, c, s := NewV(), NewV(), NewV(), NewV(), NewV(), NewV()
		Loop(pairs, 4, func() {
			LDRPost(c, cos, 16)
			LDRPost(s, sin, 16)
			LDP(v, w, x, 0)
			UZP1S(a, v, w)
			UZP2S(b, v, w)
			turn(a, b, c, s)
			ZIP1S(v, a, b)
			ZIP2S(w, a, b)
			STPPost(v, w, x, 32)
		})
		Loop(pairs, 1, func() {
			LDRS(c, cos, 0)
			LDRS(s, sin, 0)
			LDRD(a, x, 0)
			DUP(b, a, 1)
			turn(a, b, c, s)
			ZIP1S(a, a, b)
			STRD(a, x, 0)
			Add(cos, 4)
			Add(sin, 4)
			Add(x, 8)
		})
	})
}
