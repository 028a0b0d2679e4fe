package neon

// Vectors of four float32, or of two float64 (2D).

// FADD, FSUB, FMUL and FDIV are n with m.
func FADD(d, n, m V) { word(three(0x4e20d400, d, n, m), "fadd %v.4s, %v.4s, %v.4s", d, n, m) }
func FSUB(d, n, m V) { word(three(0x4ea0d400, d, n, m), "fsub %v.4s, %v.4s, %v.4s", d, n, m) }
func FMUL(d, n, m V) { word(three(0x6e20dc00, d, n, m), "fmul %v.4s, %v.4s, %v.4s", d, n, m) }
func FDIV(d, n, m V) { word(three(0x6e20fc00, d, n, m), "fdiv %v.4s, %v.4s, %v.4s", d, n, m) }

// FMLA and FMLS add n·m to d, or subtract it, with one rounding.
func FMLA(d, n, m V) { Asm("VFMLA %v.S4, %v.S4, %v.S4", m, n, d) }
func FMLS(d, n, m V) { Asm("VFMLS %v.S4, %v.S4, %v.S4", m, n, d) }

// The same with word i of m.

func FMULElem(d, n, m V, i int) {
	word(element(0x4f809000, d, n, m, i), "fmul %v.4s, %v.4s, %v.s[%d]", d, n, m, i)
}

func FMLAElem(d, n, m V, i int) {
	word(element(0x4f801000, d, n, m, i), "fmla %v.4s, %v.4s, %v.s[%d]", d, n, m, i)
}

func FMLSElem(d, n, m V, i int) {
	word(element(0x4f805000, d, n, m, i), "fmls %v.4s, %v.4s, %v.s[%d]", d, n, m, i)
}

// SCVTF and UCVTF convert signed and unsigned words.
func SCVTF(d, n V) { word(two(0x4e21d800, d, n), "scvtf %v.4s, %v.4s", d, n) }
func UCVTF(d, n V) { word(two(0x6e21d800, d, n), "ucvtf %v.4s, %v.4s", d, n) }

// FCVTL widens float16, the first or (2) the last four.
func FCVTL(d, n V)  { word(two(0x0e217800, d, n), "fcvtl %v.4s, %v.4h", d, n) }
func FCVTL2(d, n V) { word(two(0x4e217800, d, n), "fcvtl2 %v.4s, %v.8h", d, n) }

// FCVTN rounds to float16, as the first or (2) the last half of d.
func FCVTN(d, n V)  { word(two(0x0e216800, d, n), "fcvtn %v.4h, %v.4s", d, n) }
func FCVTN2(d, n V) { word(two(0x4e216800, d, n), "fcvtn2 %v.8h, %v.4s", d, n) }

// FCVTNS rounds to integers, ties to even.
func FCVTNS(d, n V) { word(two(0x4e21a800, d, n), "fcvtns %v.4s, %v.4s", d, n) }

// FMAX and FMIN are NaN if either is; FMAXV is the greatest of n, in word 0.
func FMAX(d, n, m V) { word(three(0x4e20f400, d, n, m), "fmax %v.4s, %v.4s, %v.4s", d, n, m) }
func FMIN(d, n, m V) { word(three(0x4ea0f400, d, n, m), "fmin %v.4s, %v.4s, %v.4s", d, n, m) }
func FMAXV(d, n V)   { word(two(0x6e30f800, d, n), "fmaxv s%d, %v.4s", int(d), n) }

// FMAXNM passes NaN over, and FMAXNMV.
func FMAXNM(d, n, m V) { word(three(0x4e20c400, d, n, m), "fmaxnm %v.4s, %v.4s, %v.4s", d, n, m) }
func FMAXNMV(d, n V)   { word(two(0x6e30c800, d, n), "fmaxnmv s%d, %v.4s", int(d), n) }

// FADDP is the sum of the first two lanes, in the first.
func FADDP(d, n V) { word(two(0x7e30d800, d, n), "faddp s%d, %v.2s", int(d), n) }

// FNEG changes the sign.
func FNEG(d, n V) { word(two(0x6ea0f800, d, n), "fneg %v.4s, %v.4s", d, n) }

// FCMGE sets the words where n >= m, FCMGT where n > m, FCMEQ where n == m.
func FCMGT(d, n, m V) { word(three(0x6ea0e400, d, n, m), "fcmgt %v.4s, %v.4s, %v.4s", d, n, m) }
func FCMGE(d, n, m V) { word(three(0x6e20e400, d, n, m), "fcmge %v.4s, %v.4s, %v.4s", d, n, m) }
func FCMEQ(d, n, m V) { word(three(0x4e20e400, d, n, m), "fcmeq %v.4s, %v.4s, %v.4s", d, n, m) }

// float64: FCVTLD widens float32, the first or (2) the last two; FADDP is the
// sum of both lanes, in the first.
func FCVTLD(d, n V)    { word(two(0x0e617800, d, n), "fcvtl %v.2d, %v.2s", d, n) }
func FCVTL2D(d, n V)   { word(two(0x4e617800, d, n), "fcvtl2 %v.2d, %v.4s", d, n) }
func FADD2D(d, n, m V) { word(three(0x4e60d400, d, n, m), "fadd %v.2d, %v.2d, %v.2d", d, n, m) }
func FMLA2D(d, n, m V) { Asm("VFMLA %v.D2, %v.D2, %v.D2", m, n, d) }
func FADDP2D(d, n V)   { word(two(0x7e70d800, d, n), "faddp d%d, %v.2d", int(d), n) }
