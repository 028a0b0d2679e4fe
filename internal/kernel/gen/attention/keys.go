package main

import (
	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Packing keys transposes them: columns of a panel are the entries of a block.
// A 128-bit lane of a register is 16 bytes of an entry, and registers are as
// many as values in these, so that their lanes are squares, which three or two
// rounds of interleaving transpose. Lanes are loaded one by one, which moves
// them between registers for free.

const packSignature = "func(panel []byte, entries *[32]*byte, offset, bytes int)"

// packKeys transposes keys of at least a step's bytes. What remains after
// whole steps is done as a last step that ends with the key.
func (m *machine) packKeys(bits string, size int) {
	m.text("packKeys"+bits, packSignature, "writes the keys of entries, of values of "+bits+" bits, as the columns of a panel.")
	panel, entries, at, left := base("panel"), param("entries"), param("offset"), param("bytes")
	sq := m.squares(size)
	step := 16 * sq.pieces
	loop, rest, done := label("loop"), label("rest"), label("done")
	Label(loop)
	SUBQ(U32(uint32(step)), left)
	JB(LabelRef(rest))
	Label("step")
	for group := 0; group < columns; group += sq.entries {
		sq.load(entries, at, group, 0, func(column int, v reg.VecVirtual) {
			VMOVUPS(v, Mem{Base: panel, Disp: size * (columns*column + group)})
		})
	}
	ADDQ(U32(uint32(columns*step)), panel)
	ADDQ(U32(uint32(step)), at)
	JMP(LabelRef(loop))
	Label(rest)
	ADDQ(U32(uint32(step)), left)
	JZ(LabelRef(done))
	// Back by what the last step did already.
	SUBQ(U32(uint32(step)), left)
	ADDQ(left, at)
	IMUL3Q(U32(columns), left, left)
	ADDQ(left, panel)
	XORQ(left, left)
	JMP(LabelRef("step"))
	Label(done)
	m.end()
}

// packKeysQ8 transposes keys of Q8. Codes go in pairs of dimensions, which are
// separated in the end: both rows are neighbours.
func (m *machine) packKeysQ8() {
	m.text("packKeysQ8", packSignature, "writes the keys of entries as the columns of panels.")
	panel, entries, at, left := base("panel"), param("entries"), param("offset"), param("bytes")
	sq := m.squares(2)
	const even = 0x0e0c0a0806040200
	bytes := make([]uint64, 0, m.bytes()/8)
	for range m.bytes() / 16 {
		bytes = append(bytes, even, even+0x0101010101010101)
	}
	split := x86.Vec(m.width)
	VMOVUPS(x86.Table("evenOdd"+x86.Suffix(m.width), bytes...), split)
	var gather reg.VecVirtual
	if m.width == 512 {
		gather = ZMM()
		VMOVUPS(x86.Table("evenOddWords", 0, 2, 4, 6, 1, 3, 5, 7), gather)
	}
	Label("loop")
	m.copyScales(panel, entries, at)
	for piece := 0; piece < 2; piece += sq.pieces {
		for group := 0; group < columns; group += sq.entries {
			sq.load(entries, at, group, 2+16*piece, func(pair int, v reg.VecVirtual) {
				row := Mem{Base: panel, Disp: q8Scales + columns*(16*piece+2*pair) + group}
				VPSHUFB(split, v, v)
				if m.width == 512 {
					VPERMQ(v, gather, v)
					VMOVUPS(v, row)
					return
				}
				VPERMQ(U8(0b11_01_10_00), v, v)
				VMOVUPS(v.(reg.Vec).AsX(), row)
				VEXTRACTI128(U8(1), v, row.Offset(columns))
			})
		}
	}
	ADDQ(U32(q8Panel), panel)
	ADDQ(U32(2+columns), at)
	SUBQ(U32(2+columns), left)
	JNZ(LabelRef("loop"))
	m.end()
}

// squares are registers whose lanes are transposed.
type squares struct {
	*machine
	size    int // bytes of a value
	side    int // values in a lane, and registers that are transposed together
	entries int // that a register has after that
	pieces  int // of 16 bytes of an entry that are in registers at once
}

func (m *machine) squares(size int) squares {
	side, registers := 16/size, map[int]int{512: 16, 256: 8}[m.width]
	return squares{m, size, side, side * m.width / 128, registers / side}
}

// load transposes pieces of entries from group on, which begin disp bytes
// behind at, and stores each column.
func (sq squares) load(entries, at reg.GPVirtual, group, disp int, store func(column int, v reg.VecVirtual)) {
	pieces := make([][]reg.VecVirtual, sq.pieces)
	for p := range pieces {
		pieces[p] = x86.Vecs(sq.width, sq.side)
	}
	for i := range sq.entries {
		entry := GP64()
		MOVQ(Mem{Base: entries, Disp: 8 * (group + i)}, entry)
		for p := range pieces {
			v, lane := pieces[p][i%sq.side], i/sq.side
			from := Mem{Base: entry, Index: at, Scale: 1, Disp: disp + 16*p}
			switch {
			case sq.width == 512 && lane == 0:
				VBROADCASTI32X4(from, v) // the other lanes come later
			case sq.width == 512:
				VINSERTI32X4(U8(uint8(lane)), from, v, v)
			case lane == 0:
				VBROADCASTI128(from, v)
			default:
				VINSERTI128(U8(1), from, v, v)
			}
		}
	}
	for p, rows := range pieces {
		for i, v := range transpose(rows, sq.size) {
			store(p*sq.side+i, v)
		}
	}
}

// transpose interleaves rows until each register is a column: what neighbours
// have of the first values and what they have of the last ones go separate
// ways.
func transpose(rows []reg.VecVirtual, size int) []reg.VecVirtual {
	if len(rows) == 1 {
		return rows
	}
	low := map[int]func(...Op){2: VPUNPCKLWD, 4: VPUNPCKLDQ, 8: VPUNPCKLQDQ}[size]
	high := map[int]func(...Op){2: VPUNPCKHWD, 4: VPUNPCKHDQ, 8: VPUNPCKHQDQ}[size]
	var first, last []reg.VecVirtual
	for i := 0; i < len(rows); i += 2 {
		l, h := like(rows[i]), like(rows[i])
		low(rows[i+1], rows[i], l)
		high(rows[i+1], rows[i], h)
		first, last = append(first, l), append(last, h)
	}
	return append(transpose(first, 2*size), transpose(last, 2*size)...)
}

// like allocates a vector of the size of v.
func like(v reg.VecVirtual) reg.VecVirtual { return x86.Vec(int(8 * v.Size())) }
