package main

import . "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"

const packSignature = "func(panel []byte, entries *[32]*byte, offset, bytes int)"

// packer are the parameters of what packs entries: at is where a part of an
// entry begins, left how many bytes there are from there on.
type packer struct{ panel, entries, at, left R }

func newPacker(name, doc string) packer {
	Function(name+"NEON", packSignature, doc)
	return packer{pointer("panel"), Param("entries"), Param("offset"), Param("bytes")}
}

// packKeys transposes keys of at least 16 bytes: columns of a panel are the
// entries of a block. What remains after whole registers is done with a last
// one that ends with the key.
func packKeys(bits string, size int) {
	p := newPacker("packKeys"+bits, "writes the keys of entries, of values of "+bits+" bits, as the columns of a panel.")
	step, end := NewLabel("step"), NewLabel("end")
	Loop(p.left, 16, func() {
		Label(step)
		p.transpose(p.panel, size, 0)
		Add(p.panel, 16*columns)
		Add(p.at, 16)
	})
	Asm("CBZ %v, %s", p.left, end)
	// Back by what the last step did already.
	Add(p.left, -16)
	Asm("ADD %v, %v", p.left, p.at)
	Asm("ADD %v<<5, %v", p.left, p.panel) // columns
	Asm("MOVD $16, %v", p.left)           // which the step takes
	Asm("B %s", step)
	Label(end)
	Return()
}

func packKeysQ8() {
	p := newPacker("packKeysQ8", "writes the keys of entries as the columns of panels.")
	Loop(p.left, 2+columns, func() {
		p.copyScales()
		codes := NewR()
		Asm("ADD $%d, %v, %v", q8Scales, p.panel, codes)
		p.transpose(codes, 1, 2)
		Add(codes, 16*columns)
		p.transpose(codes, 1, 2+16)
		Add(p.panel, q8Panel)
		Add(p.at, 2+columns)
	})
	Return()
}

// transpose writes 16 bytes of each entry, which begin disp bytes behind at, as
// columns. As many entries as values in these bytes make a square.
func (p packer) transpose(to R, size, disp int) {
	side := 16 / size
	for group := 0; group < columns; group += side {
		Scope(func() {
			rows, spare := NewVs(side), NewV()
			for i, v := range rows {
				p.entry(group+i, func(entry R) { LDR(v, entry, disp) })
			}
			for i, v := range transposed(rows, &spare, size) {
				STR(v, to, size*(columns*i+group))
			}
		})
	}
}

// transposed interleaves rows until each register is a column: what neighbours
// have of the first values and what they have of the last ones go separate
// ways.
func transposed(rows []V, spare *V, size int) []V {
	if len(rows) == 1 {
		return rows
	}
	zip1 := map[int]func(d, n, m V){1: ZIP1B, 2: ZIP1H, 4: ZIP1S, 8: ZIP1D}[size]
	zip2 := map[int]func(d, n, m V){1: ZIP2B, 2: ZIP2H, 4: ZIP2S, 8: ZIP2D}[size]
	var first, last []V
	for i := 0; i < len(rows); i += 2 {
		a, b := rows[i], rows[i+1]
		zip1(*spare, a, b)
		zip2(b, a, b)
		first, last, *spare = append(first, *spare), append(last, b), a
	}
	first = transposed(first, spare, 2*size)
	return append(first, transposed(last, spare, 2*size)...)
}

// entry runs body with where a part of entry i begins.
func (p packer) entry(i int, body func(entry R)) {
	Scope(func() {
		entry := NewR()
		Asm("MOVD %d(%v), %v", 8*i, p.entries, entry)
		Asm("ADD %v, %v", p.at, entry)
		body(entry)
	})
}

// packValues copies values of entries to panels: those of one panel after the
// other, so that what is written is contiguous.
func packValues(k kind, name string) {
	p := newPacker("packValues"+name, "writes the values of entries as the rows of panels.")
	wide, disp := columns*k.size, 0
	if k == q8 {
		wide, disp = wide+2, 2
	}
	Loop(p.left, wide, func() {
		if k == q8 {
			p.copyScales()
			Add(p.panel, q8Scales)
		}
		p.copyRows(columns*k.size, disp)
		Add(p.at, wide)
	})
	if k != q8 {
		end := NewLabel("end")
		Asm("CBZ %v, %s", p.left, end)
		p.copyRows(wide/2, 0)
		Label(end)
	}
	Return()
}

// copyRows copies a part of each entry, and moves the panel on.
func (p packer) copyRows(bytes, disp int) {
	for i := range columns {
		p.entry(i, func(entry R) {
			v, w := NewV(), NewV()
			Add(entry, disp)
			for b := 0; b < bytes; b += 32 {
				LDP(v, w, entry, b)
				STPPost(v, w, p.panel, 32)
			}
		})
	}
}

// copyScales copies the scales of a panel of Q8.
func (p packer) copyScales() {
	for i := range columns {
		p.entry(i, func(entry R) {
			Asm("MOVHU (%v), %[1]v", entry)
			Asm("MOVH %v, %d(%v)", entry, 2*i, p.panel)
		})
	}
}
