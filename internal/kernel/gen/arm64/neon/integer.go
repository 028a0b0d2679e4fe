package neon

// Vectors of integers. A suffix gives the lanes: 16B are sixteen bytes, 8H
// eight halves, 4S four words, 2D two doubles; logic has no lanes.

// three is an encoding with registers d (bits 0-4), n (5-9) and m (16-20).
func three(base uint32, d, n, m V) uint32 {
	return base | uint32(m)<<16 | uint32(n)<<5 | uint32(d)
}

// two is an encoding with registers d and n.
func two(base uint32, d, n V) uint32 { return three(base, d, n, 0) }

// element is three, with one of m's four words: its index is in bits 11 and 21.
func element(base uint32, d, n, m V, i int) uint32 {
	return three(base, d, n, m) | uint32(i>>1)<<11 | uint32(i&1)<<21
}

// AND, ORR and EOR are n with m.
func AND(d, n, m V) { Asm("VAND %v.B16, %v.B16, %v.B16", m, n, d) }
func ORR(d, n, m V) { Asm("VORR %v.B16, %v.B16, %v.B16", m, n, d) }
func EOR(d, n, m V) { Asm("VEOR %v.B16, %v.B16, %v.B16", m, n, d) }

// BIT copies the bits of n to d where those of m are set.
func BIT(d, n, m V) { Asm("VBIT %v.B16, %v.B16, %v.B16", m, n, d) }

// BIF copies those of n where the bits of m are clear.
func BIF(d, n, m V) { Asm("VBIF %v.B16, %v.B16, %v.B16", m, n, d) }

// MOV copies n.
func MOV(d, n V) { Asm("VMOV %v.B16, %v.B16", n, d) }

// ZERO clears d.
func ZERO(d V) { Asm("VEOR %v.B16, %v.B16, %v.B16", d, d, d) }

// MOVI fills d with a byte.
func MOVI(d V, b uint8) { Asm("VMOVI $%d, %v.B16", b, d) }

// DUP fills d with word i of n.
func DUP(d, n V, i int) { Asm("VDUP %v.S[%d], %v.S4", n, i, d) }

// Broadcast fills d with a word.
func Broadcast(d V, bits uint32) {
	Scope(func() {
		r := NewR()
		Asm("MOVW $0x%08x, %v", bits, r)
		Asm("VDUP %v, %v.S4", r, d)
	})
}

// INS is word i of d = word j of n.
func INS(d V, i int, n V, j int) { Asm("VMOV %v.S[%d], %v.S[%d]", n, j, d, i) }

// TBL looks up the bytes of n, below 16, in table.
func TBL(d, table, n V) { Asm("VTBL %v.B16, [%v.B16], %v.B16", n, table, d) }

// Shifts, to the left if by is positive and with zeros to the right if not.
func Shift16B(d, n V, by int) { shift(d, n, "B16", by) }
func Shift8H(d, n V, by int)  { shift(d, n, "H8", by) }
func Shift4S(d, n V, by int)  { shift(d, n, "S4", by) }

func shift(d, n V, lanes string, by int) {
	if by >= 0 {
		Asm("VSHL $%d, %v.%s, %v.%[3]s", by, n, lanes, d)
	} else {
		Asm("VUSHR $%d, %v.%s, %v.%[3]s", -by, n, lanes, d)
	}
}

// SSHR4S shifts signed words to the right: immh:immb is 64-by.
func SSHR4S(d, n V, by int) {
	word(two(0x4f000400, d, n)|uint32(64-by)<<16, "sshr %v.4s, %v.4s, #%d", d, n, by)
}

// ADD4S, SUB4S and SUB16B are n+m and n-m.
func ADD4S(d, n, m V)  { Asm("VADD %v.S4, %v.S4, %v.S4", m, n, d) }
func SUB4S(d, n, m V)  { Asm("VSUB %v.S4, %v.S4, %v.S4", m, n, d) }
func SUB16B(d, n, m V) { Asm("VSUB %v.B16, %v.B16, %v.B16", m, n, d) }

// ADDP4S and ADDP16B are the sums of neighbours, those of n first.
func ADDP16B(d, n, m V) { Asm("VADDP %v.B16, %v.B16, %v.B16", m, n, d) }
func ADDP4S(d, n, m V)  { Asm("VADDP %v.S4, %v.S4, %v.S4", m, n, d) }

// CMTST4S sets the words where n and m have a bit in common.
func CMTST4S(d, n, m V) { Asm("VCMTST %v.S4, %v.S4, %v.S4", m, n, d) }

// CMEQ16B sets the bytes where n and m are equal.
func CMEQ16B(d, n, m V) { Asm("VCMEQ %v.B16, %v.B16, %v.B16", m, n, d) }

// UMAX4S is the greater of unsigned words, UMAXV the greatest of n, in word 0.
func UMAX4S(d, n, m V) { Asm("VUMAX %v.S4, %v.S4, %v.S4", m, n, d) }
func UMAXV(d, n V)     { word(two(0x6eb0a800, d, n), "umaxv s%d, %v.4s", int(d), n) }

// Widening, of the first or (2) the last half of n, with zeros or signs in
// front. The suffix is that of n's lanes: B bytes, H halves.

func UXTLB(d, n V)  { Asm("VUXTL %v.B8, %v.H8", n, d) }
func UXTLH(d, n V)  { Asm("VUXTL %v.H4, %v.S4", n, d) }
func UXTL2B(d, n V) { Asm("VUXTL2 %v.B16, %v.H8", n, d) }
func UXTL2H(d, n V) { Asm("VUXTL2 %v.H8, %v.S4", n, d) }

// SXTL is SSHLL by 0: immh:immb is the width of a lane of n.
func SXTLB(d, n V)  { word(two(0x0f08a400, d, n), "sxtl %v.8h, %v.8b", d, n) }
func SXTLH(d, n V)  { word(two(0x0f10a400, d, n), "sxtl %v.4s, %v.4h", d, n) }
func SXTL2H(d, n V) { word(two(0x4f10a400, d, n), "sxtl2 %v.4s, %v.8h", d, n) }

// SHLL widens halves to words with zeros behind.
func SHLL(d, n V)  { word(two(0x2e613800, d, n), "shll %v.4s, %v.4h, #16", d, n) }
func SHLL2(d, n V) { word(two(0x6e613800, d, n), "shll2 %v.4s, %v.8h, #16", d, n) }

// XTN keeps the low halves of words, XTNB the low bytes of halves, as the first
// or (2) the last half of d.
func XTN(d, n V)   { word(two(0x0e612800, d, n), "xtn %v.4h, %v.4s", d, n) }
func XTN2(d, n V)  { word(two(0x4e612800, d, n), "xtn2 %v.8h, %v.4s", d, n) }
func XTNB(d, n V)  { word(two(0x0e212800, d, n), "xtn %v.8b, %v.8h", d, n) }
func XTN2B(d, n V) { word(two(0x4e212800, d, n), "xtn2 %v.16b, %v.8h", d, n) }

// Narrow packs the low bytes of 32 words into v[0] and v[4].
func Narrow(v []V) {
	for h := 0; h < 8; h += 4 {
		XTN(v[h], v[h])
		XTN2(v[h], v[h+1])
		XTN(v[h+2], v[h+2])
		XTN2(v[h+2], v[h+3])
		XTNB(v[h], v[h])
		XTN2B(v[h], v[h+2])
	}
}

// UZP1 and UZP2 are the even and the odd lanes of n and m, ZIP1 and ZIP2 their
// first and last halves, lane by lane. Lanes are B bytes, H halves, S words, D
// doubles.
func UZP1S(d, n, m V) { Asm("VUZP1 %v.S4, %v.S4, %v.S4", m, n, d) }
func UZP2S(d, n, m V) { Asm("VUZP2 %v.S4, %v.S4, %v.S4", m, n, d) }
func UZP1H(d, n, m V) { Asm("VUZP1 %v.H8, %v.H8, %v.H8", m, n, d) }
func UZP2H(d, n, m V) { Asm("VUZP2 %v.H8, %v.H8, %v.H8", m, n, d) }
func UZP1B(d, n, m V) { Asm("VUZP1 %v.B16, %v.B16, %v.B16", m, n, d) }
func ZIP1S(d, n, m V) { Asm("VZIP1 %v.S4, %v.S4, %v.S4", m, n, d) }
func ZIP2S(d, n, m V) { Asm("VZIP2 %v.S4, %v.S4, %v.S4", m, n, d) }
func ZIP1H(d, n, m V) { Asm("VZIP1 %v.H8, %v.H8, %v.H8", m, n, d) }
func ZIP2H(d, n, m V) { Asm("VZIP2 %v.H8, %v.H8, %v.H8", m, n, d) }
func ZIP1B(d, n, m V) { Asm("VZIP1 %v.B16, %v.B16, %v.B16", m, n, d) }
func ZIP2B(d, n, m V) { Asm("VZIP2 %v.B16, %v.B16, %v.B16", m, n, d) }
func ZIP1D(d, n, m V) { Asm("VZIP1 %v.D2, %v.D2, %v.D2", m, n, d) }
func ZIP2D(d, n, m V) { Asm("VZIP2 %v.D2, %v.D2, %v.D2", m, n, d) }

// EXT is the bytes of n from the given one on, then those of m.
func EXT(d, n, m V, from int) { Asm("VEXT $%d, %v.B16, %v.B16, %v.B16", from, m, n, d) }

// Products of signed bytes, of the first or (2) the last eight.

func SMULL(d, n, m V)  { word(three(0x0e20c000, d, n, m), "smull %v.8h, %v.8b, %v.8b", d, n, m) }
func SMULL2(d, n, m V) { word(three(0x4e20c000, d, n, m), "smull2 %v.8h, %v.16b, %v.16b", d, n, m) }
func SMLAL(d, n, m V)  { word(three(0x0e208000, d, n, m), "smlal %v.8h, %v.8b, %v.8b", d, n, m) }
func SMLAL2(d, n, m V) { word(three(0x4e208000, d, n, m), "smlal2 %v.8h, %v.16b, %v.16b", d, n, m) }

// SADDLP is the sums of neighbouring halves as words, SADALP adds them to d.
func SADDLP(d, n V) { word(two(0x4e602800, d, n), "saddlp %v.4s, %v.8h", d, n) }
func SADALP(d, n V) { word(two(0x4e606800, d, n), "sadalp %v.4s, %v.8h", d, n) }

// SDOT adds to each word of d the product of four bytes of n with the four of
// m in word i (FEAT_DotProd).
func SDOT(d, n, m V, i int) {
	word(element(0x4f80e000, d, n, m, i), "sdot %v.4s, %v.16b, %v.4b[%d]", d, n, m, i)
}
