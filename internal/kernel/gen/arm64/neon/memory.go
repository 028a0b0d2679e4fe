package neon

// Loads and stores. Offsets are in bytes.

// LDR loads 16 bytes.
func LDR(v V, base R, offset int) { Asm("FMOVQ %d(%v), %s", offset, base, v.f()) }

// LDRD loads 8 bytes and clears the rest of v.
func LDRD(v V, base R, offset int) { Asm("FMOVD %d(%v), %s", offset, base, v.f()) }

// LDRS loads 4 bytes and clears the rest of v.
func LDRS(v V, base R, offset int) { Asm("FMOVS %d(%v), %s", offset, base, v.f()) }

// LDRPost loads 16 bytes, then moves base on by step.
func LDRPost(v V, base R, step int) { Asm("FMOVQ.P %d(%v), %s", step, base, v.f()) }

// LDP loads 32 bytes; offset is a multiple of 16 within ±1008.
func LDP(v, w V, base R, offset int) { Asm("FLDPQ %d(%v), (%s, %s)", offset, base, v.f(), w.f()) }

// LDPPost loads 32 bytes, then moves base on by step.
func LDPPost(v, w V, base R, step int) {
	Asm("FLDPQ.P %d(%v), (%s, %s)", step, base, v.f(), w.f())
}

// STR stores 16 bytes.
func STR(v V, base R, offset int) { Asm("FMOVQ %s, %d(%v)", v.f(), offset, base) }

// STRD stores 8 bytes.
func STRD(v V, base R, offset int) { Asm("FMOVD %s, %d(%v)", v.f(), offset, base) }

// STRPost stores 16 bytes, then moves base on by step.
func STRPost(v V, base R, step int) { Asm("FMOVQ.P %s, %d(%v)", v.f(), step, base) }

// STP stores 32 bytes; offset is a multiple of 16 within ±1008.
func STP(v, w V, base R, offset int) { Asm("FSTPQ (%s, %s), %d(%v)", v.f(), w.f(), offset, base) }

// STPPost stores 32 bytes, then moves base on by step.
func STPPost(v, w V, base R, step int) {
	Asm("FSTPQ.P (%s, %s), %d(%v)", v.f(), w.f(), step, base)
}

// LD1 loads one word of v.
func LD1(v V, lane int, base R) { Asm("VLD1 (%v), %v.S[%d]", base, v, lane) }

// ST1 stores one word of v.
func ST1(v V, lane int, base R) { Asm("VST1 %v.S[%d], (%v)", v, lane, base) }

// ST1H stores one half of v.
func ST1H(v V, lane int, base R) { Asm("VST1 %v.H[%d], (%v)", v, lane, base) }

// PRFM asks for the cache line at an address.
func PRFM(base R, offset int) { Asm("PRFM %d(%v), PLDL1KEEP", offset, base) }

// FirstBits is a constant whose words have bits 0 to 3 set: shifted, they
// select four lanes from a mask.
func FirstBits() string { return Data("firstBits", words(1, 2, 4, 8)) }

// LoadData loads the first 16 bytes of a constant.
func LoadData(v V, symbol string) {
	Scope(func() {
		r := NewR()
		Asm("MOVD $%s(SB), %v", symbol, r)
		LDR(v, r, 0)
	})
}
