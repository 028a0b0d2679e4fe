package main

import (
	"github.com/foretoken/foretoken/internal/kernel/panel"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// codes reads the blocks of a quantised panel: operands of four columns of 16
// rows, and the scales and minima of 16 rows.
type codes struct {
	k      *panel.Kind
	at     Register // of the block at hand
	header Register // of its group
	masks  map[uint8]VecVirtual
	table  VecVirtual
}

func newCodes(k *panel.Kind, w Register) *codes {
	c := &codes{k: k, at: w, header: w, masks: map[uint8]VecVirtual{}}
	switch k.Bits {
	case 2:
		c.mask(0x03)
	case 3:
		c.mask(0x03)
		c.mask(0x04)
	case 4:
		c.mask(0x0f)
	case 5:
		c.mask(0x0f)
		c.mask(0x10)
	case 6:
		c.mask(0x0f)
		c.mask(0x30)
	}
	if k.Table != nil {
		c.table = ZMM()
		VBROADCASTI32X4(tableData(k), c.table)
	}
	return c
}

var tables = map[panel.ID]Mem{}

// tableData is the constant that holds k's table.
func tableData(k *panel.Kind) Mem {
	m, ok := tables[k.ID]
	if !ok {
		m = GLOBL("codes"+k.Name, RODATA|NOPTR)
		for i, v := range k.Table {
			DATA(i, U8(v))
		}
		tables[k.ID] = m
	}
	return m
}

func (c *codes) mask(bits uint8) { c.masks[bits] = broadcast8(bits) }

// blocks runs body for every block of n groups.
func (c *codes) blocks(n Register, body func()) {
	k := c.k
	if !k.Scale.TwoLevel() {
		Label("loop")
		body()
		ADDQ(U32(uint32(k.GroupBytes())), c.at)
		DECQ(n)
		JNZ(LabelRef("loop"))
		return
	}
	c.header = GP64()
	inner := GP64()
	Label("loop")
	MOVQ(c.at, c.header)
	ADDQ(U32(uint32(k.HalfBytes())), c.at)
	MOVQ(U32(panel.Super), inner)
	Label("block")
	body()
	ADDQ(U32(uint32(k.BlockBytes())), c.at)
	DECQ(inner)
	JNZ(LabelRef("block"))
	DECQ(n)
	JNZ(LabelRef("loop"))
}

// lines is what a block takes of its panel.
func (c *codes) lines() int { return (c.k.GroupBytes()/c.k.Group() + line - 1) / line }

// scale returns the scales of rows 16h to 16h+15 in a sub-block.
func (c *codes) scale(sub, h int) VecVirtual {
	d := c.half(0, h)
	if !c.k.Scale.TwoLevel() {
		return d
	}
	VMULPS(c.byteAt(panel.Rows*sub+16*h, c.k.Scale == panel.Signed), d, d)
	return d
}

// min returns the minima of rows 16h to 16h+15 in a sub-block.
func (c *codes) min(sub, h int) VecVirtual {
	d := c.half(2*panel.Rows, h)
	if c.k.Scale.TwoLevel() {
		VMULPS(c.byteAt(panel.Rows*(c.k.Subs()+sub)+16*h, false), d, d)
	}
	return d
}

// half reads 16 two-byte floats of the header.
func (c *codes) half(disp, h int) VecVirtual {
	v, at := ZMM(), Mem{Base: c.header, Disp: c.k.HalvesAt() + disp + 32*h}
	if c.k.Scale == panel.BHalf {
		VPMOVZXWD(at, v)
		VPSLLD(U8(16), v, v)
	} else {
		VCVTPH2PS(at, v)
	}
	return v
}

func (c *codes) byteAt(disp int, signed bool) VecVirtual {
	v, at := ZMM(), Mem{Base: c.at, Disp: c.k.CodeBytes() + disp}
	if signed {
		VPMOVSXBD(at, v)
	} else {
		VPMOVZXBD(at, v)
	}
	VCVTDQ2PS(v, v)
	return v
}

// operand returns the codes of group g (four columns) for rows 16h to 16h+15.
// See package panel for the planes.
func (c *codes) operand(g, h int) VecVirtual {
	const plane = 4 * panel.Rows
	at := func(disp int) Mem { return Mem{Base: c.at, Disp: disp + line*h} }
	v := ZMM()
	switch c.k.Bits {
	case 8:
		VMOVDQU64(at(plane*g), v)
	case 2:
		c.shifted(v, at(plane*(g/4)), -2*(g%4), 0x03)
	case 3:
		c.shifted(v, at(plane*(g/4)), -2*(g%4), 0x03)
		c.join(v, at(2*plane), 2-g, 0x04)
	case 4, 5, 6:
		c.shifted(v, at(plane*(g%4)), -(g/4)*4, 0x0f)
		switch c.k.Bits {
		case 5:
			c.join(v, at(4*plane), 4-g, 0x10)
		case 6:
			c.join(v, at(plane*(4+g/4)), 4-2*(g%4), 0x30)
		}
	}
	if c.k.Table != nil {
		VPSHUFB(v, c.table, v)
	}
	return v
}

// shifted is v = (m << by) & mask; by is negative to the right. No bit of a
// byte is wanted in another, so words may be shifted.
func (c *codes) shifted(v VecVirtual, m Mem, by int, mask uint8) {
	if by == 0 {
		VPANDD(m, c.masks[mask], v)
		return
	}
	c.shift(v, m, by)
	VPANDD(c.masks[mask], v, v)
}

// join is v |= (m << by) & mask.
func (c *codes) join(v VecVirtual, m Mem, by int, mask uint8) {
	const orAnd = 0xf8 // a | b&c
	if by == 0 {
		VPTERNLOGD(U8(orAnd), m, c.masks[mask], v)
		return
	}
	high := ZMM()
	c.shift(high, m, by)
	VPTERNLOGD(U8(orAnd), high, c.masks[mask], v)
}

func (c *codes) shift(v VecVirtual, m Mem, by int) {
	if by > 0 {
		VPSLLW(U8(by), m, v)
	} else {
		VPSRLW(U8(-by), m, v)
	}
}
