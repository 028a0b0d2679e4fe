package neon

import (
	"encoding/binary"
	"math"
)

// Exp is the macro for exp: that of package x86, which explains it, for
// vectors of four. It holds its constants in six registers.
type Exp struct {
	most, least, magic V
	ln2                V    // 1/ln2, then ln2 in two parts
	coefficients       [2]V // from r⁶ down to r⁰
}

// NewExp loads the constants.
func NewExp() *Exp {
	e := &Exp{most: NewV(), least: NewV(), magic: NewV(), ln2: NewV(), coefficients: [2]V{NewV(), NewV()}}
	Broadcast(e.most, math.Float32bits(89))
	Broadcast(e.least, math.Float32bits(-87))
	Broadcast(e.magic, math.Float32bits(1.5*(1<<23)+126))
	Scope(func() {
		table := NewR()
		Asm("MOVD $%s(SB), %v", Data("expConstants", words(
			math.Float32bits(1.44269504), math.Float32bits(0.693359375), math.Float32bits(-2.12194440e-4), 0x40000000,
			0x3b3511e8, 0x3c891d10, 0x3daaac79, 0x3eaaaa49, 0x3f7ffffe, 0x40000000, 0x40000000, 0)), table)
		LDR(e.ln2, table, 0)
		LDP(e.coefficients[0], e.coefficients[1], table, 16)
	})
	return e
}

func words(w ...uint32) (b []byte) {
	for _, w := range w {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// Apply replaces every lane of each x by its exponential. It takes two more
// registers per vector and as many for all. With several x the chains of
// dependent instructions overlap.
func (e *Exp) Apply(x ...V) {
	Scope(func() {
		power, p, next := NewVs(len(x)), NewVs(len(x)), NewVs(len(x))
		for _, x := range x { // a NaN stays one
			FMIN(x, x, e.most)
		}
		for _, x := range x {
			FMAX(x, x, e.least)
		}
		for i, x := range x {
			MOV(power[i], e.magic)
			FMLAElem(power[i], x, e.ln2, 0)
		}
		for i := range x {
			FSUB(p[i], power[i], e.magic) // n
		}
		for part := 1; part <= 2; part++ {
			for i, x := range x {
				FMLSElem(x, p[i], e.ln2, part)
			}
		}
		for i := range x {
			Shift4S(power[i], power[i], 23)
			DUP(p[i], e.coefficients[0], 0)
		}
		for c := 1; c <= 6; c++ {
			for i, x := range x {
				DUP(next[i], e.coefficients[c/4], c%4)
				FMLA(next[i], p[i], x)
			}
			p, next = next, p
		}
		for i, x := range x {
			FMUL(x, p[i], power[i])
		}
	})
}
