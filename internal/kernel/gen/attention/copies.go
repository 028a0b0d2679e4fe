package main

import (
	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// packValues copies values of entries to panels: those of one panel after the
// other, so that what is written is contiguous.
func (m *machine) packValues(name string, size int) {
	m.text("packValues"+name, packSignature, "writes the values of entries as the rows of panels.")
	panel, entries, at, left := base("panel"), param("entries"), param("offset"), param("bytes")
	wide := columns * size
	if name == "Q8" {
		wide += 2
	}
	loop, narrow, done := label("loop"), label("narrow"), label("done")
	Label(loop)
	SUBQ(U32(uint32(wide)), left)
	JB(LabelRef(narrow))
	if name == "Q8" {
		m.copyScales(panel, entries, at)
		m.copyRows(Mem{Base: panel, Disp: q8Scales}, entries, at, 2, columns)
		ADDQ(U32(q8Panel), panel)
	} else {
		m.copyRows(Mem{Base: panel}, entries, at, 0, wide)
		ADDQ(U32(uint32(columns*wide)), panel)
	}
	ADDQ(U32(uint32(wide)), at)
	JMP(LabelRef(loop))
	Label(narrow)
	if name != "Q8" {
		ADDQ(U32(uint32(wide)), left)
		JZ(LabelRef(done))
		m.copyRows(Mem{Base: panel}, entries, at, 0, wide/2)
		Label(done)
	}
	m.end()
}

// copyRows copies a part of each entry, of whole vectors or of half of one.
func (m *machine) copyRows(to Mem, entries, at reg.GPVirtual, disp, bytes int) {
	width := min(m.width, 8*bytes)
	for i := range columns {
		entry := GP64()
		MOVQ(Mem{Base: entries, Disp: 8 * i}, entry)
		for b := 0; b < bytes; b += width / 8 {
			v := x86.Vec(width)
			VMOVUPS(Mem{Base: entry, Index: at, Scale: 1, Disp: disp + b}, v)
			VMOVUPS(v, to.Offset(bytes*i+b))
		}
	}
}

// copyScales copies the scales of a panel of Q8.
func (m *machine) copyScales(panel, entries, at reg.GPVirtual) {
	for i := range columns {
		entry, scale := GP64(), GP32()
		MOVQ(Mem{Base: entries, Disp: 8 * i}, entry)
		MOVWLZX(Mem{Base: entry, Index: at, Scale: 1}, scale)
		MOVW(scale.As16(), Mem{Base: panel, Disp: 2 * i})
	}
}

// packValuesPairs interleaves the values of every two entries.
func (m *machine) packValuesPairs() {
	m.text("packValuesPairs", packSignature, "writes the values of entries as rows of pairs.")
	panel, entries := base("panel"), param("entries")
	order := x86.Vecs(m.width, 2) // of quarters of lanes: those of the first register, then of the second
	VMOVUPS(x86.Table("pairsLow", 0, 1, 8, 9, 2, 3, 10, 11), order[0])
	VMOVUPS(x86.Table("pairsHigh", 4, 5, 12, 13, 6, 7, 14, 15), order[1])
	pairs := GP64()
	MOVQ(U32(columns/2), pairs)
	Label("pairs")
	a, b, left := GP64(), GP64(), param("bytes")
	MOVQ(Mem{Base: entries}, a)
	MOVQ(Mem{Base: entries, Disp: 8}, b)
	offset := param("offset")
	ADDQ(offset, a)
	ADDQ(offset, b)
	pass := func(width int) {
		x, y, load := ZMM(), ZMM(), VMOVUPS
		if width == 256 {
			load = VBROADCASTI64X4
		}
		load(Mem{Base: a}, x)
		load(Mem{Base: b}, y)
		low, high, out := ZMM(), ZMM(), ZMM()
		VPUNPCKLWD(y, x, low)
		VPUNPCKHWD(y, x, high)
		VMOVUPS(low, out)
		VPERMT2Q(high, order[0], out)
		VMOVUPS(out, Mem{Base: panel})
		if width == 512 {
			VPERMT2Q(high, order[1], low)
			VMOVUPS(low, Mem{Base: panel, Disp: 64})
		}
		ADDQ(U32(uint32(width/4)), panel)
	}
	Label("dims")
	SUBQ(U32(uint32(m.bytes())), left)
	JB(LabelRef("narrow"))
	pass(512)
	ADDQ(U32(uint32(m.bytes())), a)
	ADDQ(U32(uint32(m.bytes())), b)
	JMP(LabelRef("dims"))
	Label("narrow")
	ADDQ(U32(uint32(m.bytes())), left)
	JZ(LabelRef("next"))
	pass(256)
	Label("next")
	ADDQ(U32(16), entries)
	DECQ(pairs)
	JNZ(LabelRef("pairs"))
	m.end()
}
