package main

import (
	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// most is the largest number of rows of a tile: what fits into the registers
// beside a row of the panel and one value of each row of the tile.
func (m *machine) most() int {
	if m.width == 512 {
		return 8
	}
	return 6
}

// passes are the vectors [from, to) of count that are taken at a time by a
// tile of rows. Narrow tiles take many, so that enough chains are under way to
// hide the latency of an addition.
func (m *machine) passes(rows, count int) (passes [][2]int) {
	n := count
	if m.width == 256 && rows > 3 {
		n = 2
	}
	for from := 0; from < count; from += n {
		passes = append(passes, [2]int{from, min(from+n, count)})
	}
	return passes
}

// multiples are a stride and its multiples, to address up to 8 rows.
type multiples struct{ x1, x3, x5, x7 reg.Register }

// newMultiples takes over x1.
func newMultiples(x1 reg.GPVirtual, rows int) multiples {
	s := multiples{x1: x1}
	next := func(from reg.Register, scale uint8) reg.Register {
		r := GP64()
		LEAQ(Mem{Base: from, Index: x1, Scale: scale}, r)
		return r
	}
	s.x3 = next(x1, 2)
	s.x5 = next(x1, 4)
	if rows > 7 {
		s.x7 = next(s.x3, 4)
	}
	return s
}

// at addresses row t from base on.
func (s multiples) at(base reg.Register, t, disp int) Mem {
	m := Mem{Base: base, Disp: disp}
	switch t {
	case 1, 2, 4:
		m.Index, m.Scale = s.x1, uint8(t)
	case 3, 6:
		m.Index, m.Scale = s.x3, uint8(t/3)
	case 5:
		m.Index, m.Scale = s.x5, 1
	case 7:
		m.Index, m.Scale = s.x7, 1
	}
	return m
}

// A tile is sums of rows × vectors in registers.
type tile [][]reg.VecVirtual

func (m *machine) tile(rows, vectors int) tile {
	t := make(tile, rows)
	for i := range t {
		t[i] = x86.Vecs(m.width, vectors)
	}
	return t
}

func (t tile) clear() {
	for _, row := range t {
		for _, v := range row {
			VXORPS(v, v, v)
		}
	}
}

// step adds to every row of the tile its value times a row of a panel.
func (m *machine) step(acc tile, value func(row int) Mem, vector func(v int, to reg.VecVirtual)) {
	rows, vectors := len(acc), len(acc[0])
	if rows < vectors {
		x := x86.Vecs(m.width, rows)
		for i := range x {
			VBROADCASTSS(value(i), x[i])
		}
		for v := range vectors {
			b := x86.Vec(m.width)
			vector(v, b)
			for i := range acc {
				VFMADD231PS(x[i], b, acc[i][v])
			}
		}
		return
	}
	b := x86.Vecs(m.width, vectors)
	for v := range b {
		vector(v, b[v])
	}
	for i := range acc {
		x := x86.Vec(m.width)
		VBROADCASTSS(value(i), x)
		for v := range b {
			VFMADD231PS(x, b[v], acc[i][v])
		}
	}
}

// eachTile runs body for tiles of the largest size while n rows are left and
// then for one of what remains. body leaves with the pointers behind its rows.
func (m *machine) eachTile(n reg.GPVirtual, most int, body func(rows int)) {
	done := label("done")
	loop := label("tile")
	Label(loop)
	var small [16]string
	for rows := 1; rows < most; rows++ {
		small[rows] = label("tile")
		CMPQ(n, U32(uint32(rows)))
		JE(LabelRef(small[rows]))
	}
	TESTQ(n, n)
	JZ(LabelRef(done))
	body(most)
	SUBQ(U32(uint32(most)), n)
	JMP(LabelRef(loop))
	for rows := 1; rows < most; rows++ {
		Label(small[rows])
		body(rows)
		if rows < most-1 {
			JMP(LabelRef(done))
		}
	}
	Label(done)
	m.end()
}

// pairs runs body for two steps at a time and then for the one that may
// remain of n ≥ 1, which is used up.
func (m *machine) pairs(n reg.GPVirtual, body func(steps int)) {
	loop, odd, done := label("pair"), label("odd"), label("end")
	SUBQ(U32(2), n)
	JB(LabelRef(odd))
	Label(loop)
	body(2)
	SUBQ(U32(2), n)
	JAE(LabelRef(loop))
	Label(odd)
	CMPQ(n, U32(0xffffffff)) // -1: one is left
	JNE(LabelRef(done))
	body(1)
	Label(done)
}

// A prefetcher asks for the lines of other memory while a panel is read.
type prefetcher struct{ at reg.GPVirtual }

func (p prefetcher) lines(bytes int) {
	for i := 0; i < bytes; i += 64 {
		PREFETCHT1(Mem{Base: p.at, Disp: i})
	}
	ADDQ(U32(uint32(bytes)), p.at)
}
