package main

import (
	"encoding/binary"

	"github.com/foretoken/foretoken/internal/kernel/gen/x86"
	"github.com/foretoken/foretoken/internal/kernel/panel"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// codes reads the blocks of a quantised panel, eight rows at a time: the
// vectors v of a step.
type codes struct {
	k      *panel.Kind
	at     Register // of the block at hand
	header Register // of its group
	step   steps

	masks  map[uint8]Op
	tables []Op // the kind's table, or its low and its high nibbles
}

// newCodes loads what operand needs, or nibbles. The kernel has taken its
// registers before.
func newCodes(k *panel.Kind, w Register, nibbles bool) *codes {
	c := &codes{k: k, at: w, header: w, masks: map[uint8]Op{}}
	mask := func(bits ...uint8) {
		for _, b := range bits {
			c.masks[b] = constant8(b)
		}
	}
	switch k.Bits {
	case 2:
		mask(0x03)
	case 3:
		mask(0x03, 0x04)
	case 4, 8:
		mask(0x0f)
	case 5:
		mask(0x0f, 0x10)
	case 6:
		mask(0x0f, 0x30)
	}
	switch {
	case k.Table == nil:
	case nibbles:
		var low, high [16]uint8
		for i, v := range k.Table {
			low[i], high[i] = v&15, v>>4
		}
		c.tables = []Op{table(k.Name+"Low", &low), table(k.Name+"High", &high)}
	default:
		c.tables = []Op{table(k.Name, k.Table)}
	}
	return c
}

// table is a constant of 16 bytes, twice.
func table(name string, t *[16]uint8) Op {
	a, b := binary.LittleEndian.Uint64(t[:]), binary.LittleEndian.Uint64(t[8:])
	return held(x86.Table("codes"+name, a, b, a, b))
}

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

// scale reads the scales of a sub-block; it overwrites tmp.
func (c *codes) scale(sub, v int, x, tmp VecPhysical) {
	c.half(0, v, x)
	if c.k.Scale.TwoLevel() {
		c.byteAt(panel.Rows*sub, v, c.k.Scale == panel.Signed, tmp)
		VMULPS(tmp, x, x)
	}
}

// min reads the minima of a sub-block; it overwrites tmp.
func (c *codes) min(sub, v int, x, tmp VecPhysical) {
	c.half(2*panel.Rows, v, x)
	if c.k.Scale.TwoLevel() {
		c.byteAt(panel.Rows*(c.k.Subs()+sub), v, false, tmp)
		VMULPS(tmp, x, x)
	}
}

// half reads two-byte floats of the header.
func (c *codes) half(disp, v int, x VecPhysical) {
	m := c.step.at(c.header, 2, c.k.HalvesAt()+disp, v)
	if c.k.Scale == panel.BHalf {
		VPMOVZXWD(m, x)
		VPSLLD(U8(16), x, x)
	} else {
		VCVTPH2PS(m, x)
	}
}

func (c *codes) byteAt(disp, v int, signed bool, x VecPhysical) {
	m := c.step.at(c.at, 1, c.k.CodeBytes()+disp, v)
	if signed {
		VPMOVSXBD(m, x)
	} else {
		VPMOVZXBD(m, x)
	}
	VCVTDQ2PS(x, x)
}

// operand reads the codes of group g (four columns), through the table where
// there is one; it overwrites tmp. See package panel for the planes.
func (c *codes) operand(g, v int, x, tmp VecPhysical) {
	const plane = 4 * panel.Rows
	switch c.k.Bits {
	case 8:
		VMOVDQU(c.plane(plane*g, v), x)
	case 2:
		c.field(c.plane(plane*(g/4), v), -2*(g%4), 0x03, x)
	case 3:
		c.field(c.plane(plane*(g/4), v), -2*(g%4), 0x03, x)
		c.field(c.plane(2*plane, v), 2-g, 0x04, tmp)
		VPOR(tmp, x, x)
	case 4, 5, 6:
		c.field(c.plane(plane*(g%4), v), -(g/4)*4, 0x0f, x)
		switch c.k.Bits {
		case 5:
			c.field(c.plane(4*plane, v), 4-g, 0x10, tmp)
			VPOR(tmp, x, x)
		case 6:
			c.field(c.plane(plane*(4+g/4), v), 4-2*(g%4), 0x30, tmp)
			VPOR(tmp, x, x)
		}
	}
	if len(c.tables) == 1 {
		lookUp(c.tables[0], x, tmp)
	}
}

// nibbles reads the low and high halves of the codes of group g.
func (c *codes) nibbles(g, v int, low, high, tmp VecPhysical) {
	const mask = 0x0f
	c.operand(g, v, low, high)
	if c.tables != nil {
		VMOVDQA(low, high)
		lookUp(c.tables[0], low, tmp)
		lookUp(c.tables[1], high, tmp)
		return
	}
	VPSRLW(U8(4), low, high)
	VPAND(c.masks[mask], low, low)
	VPAND(c.masks[mask], high, high)
}

// plane is where a vector of codes lies.
func (c *codes) plane(disp, v int) Mem {
	return c.step.at(c.at, 4, disp, v)
}

// field is x = (m << by) & mask; by is negative to the right. No bit of a byte
// is wanted in another, so words may be shifted.
func (c *codes) field(m Mem, by int, mask uint8, x VecPhysical) {
	VMOVDQU(m, x)
	switch {
	case by > 0:
		VPSLLW(U8(by), x, x)
	case by < 0:
		VPSRLW(U8(-by), x, x)
	}
	VPAND(c.masks[mask], x, x)
}

// lookUp replaces codes by their values in a table; it overwrites tmp.
func lookUp(table Op, x, tmp VecPhysical) {
	t, ok := table.(VecPhysical)
	if !ok {
		t = tmp
		VMOVDQU(table, t)
	}
	VPSHUFB(x, t, x)
}
