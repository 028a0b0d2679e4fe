package main

import (
	"github.com/foretoken/foretoken/internal/kernel/panel"

	. "github.com/foretoken/foretoken/internal/kernel/gen/arm64/neon"
)

// A pair is what eight rows have: four in each vector.
type pair [2]V

func newPair() pair { return pair{NewV(), NewV()} }

// codes reads the blocks of a quantised panel, eight rows at a time.
type codes struct {
	k *panel.Kind
	// The addresses of the eight rows' codes; of their scales of two bytes; and
	// of those of one byte, in kinds with two levels.
	at, half, scales R
	masks            map[uint8]V
	table            V
}

func newCodes(k *panel.Kind, base string) *codes {
	c := &codes{k: k, half: Param(base), at: NewR(), masks: map[uint8]V{}}
	Asm("ADD $%d, %v, %v", k.BlockAt(0), c.half, c.at)
	if k.Scale.TwoLevel() {
		c.scales = NewR()
		Asm("ADD $%d, %v, %v", k.BlockAt(0)+k.CodeBytes(), c.half, c.scales)
	} else {
		Add(c.half, k.HalvesAt())
	}
	for _, bits := range map[int][]uint8{2: {0x03}, 3: {0x03, 0x04}, 4: {0x0f}, 5: {0x0f, 0x10}, 6: {0x0f, 0x30}, 8: {0x80}}[k.Bits] {
		c.masks[bits] = NewV()
		MOVI(c.masks[bits], bits)
	}
	if k.Table != nil {
		values := make([]byte, len(k.Table))
		for i, v := range k.Table {
			values[i] = v - uint8(k.Offset)
		}
		c.table = NewV()
		LoadData(c.table, Data("codes"+k.Name, values))
	}
	return c
}

// signed reports whether codes are read without their offset.
func signed(k *panel.Kind) bool { return k.Bits == 8 || k.Table != nil }

// blocks walks n groups. For each block it runs start, eight for every eight
// rows, and end.
func (c *codes) blocks(n R, start, eight, end func()) {
	k := c.k
	block := func() {
		start()
		const times = panel.Rows / 8
		Times("rows", times, func() {
			eight()
			Add(c.at, 32)
			Add(c.half, 16)
			if k.Scale.TwoLevel() {
				Add(c.scales, 8)
			}
		})
		Add(c.at, k.BlockBytes()-32*times)
		Add(c.half, -16*times)
		if k.Scale.TwoLevel() {
			Add(c.scales, k.BlockBytes()-8*times)
		}
		end()
	}
	Repeat("group", n, func() {
		if k.Scale.TwoLevel() {
			Times("block", panel.Super, block)
			Add(c.scales, k.HalfBytes())
		} else {
			block()
		}
		Add(c.at, k.HalfBytes())
		Add(c.half, k.GroupBytes())
	})
}

// scale returns the scales of a sub-block.
func (c *codes) scale(sub int) pair {
	d := c.halves(0)
	if c.k.Scale.TwoLevel() {
		c.multiply(d, sub, c.k.Scale == panel.Signed)
	}
	return d
}

// min returns the minima of a sub-block.
func (c *codes) min(sub int) pair {
	d := c.halves(2 * panel.Rows)
	if c.k.Scale.TwoLevel() {
		c.multiply(d, c.k.Subs()+sub, false)
	}
	return d
}

// halves reads two-byte floats of the header.
func (c *codes) halves(offset int) pair {
	v := newPair()
	LDR(v[0], c.half, offset)
	if c.k.Scale == panel.BHalf {
		SHLL2(v[1], v[0])
		SHLL(v[0], v[0])
	} else {
		FCVTL2(v[1], v[0])
		FCVTL(v[0], v[0])
	}
	return v
}

// multiply multiplies d with bytes of the header.
func (c *codes) multiply(d pair, index int, signed bool) {
	Scope(func() {
		v := newPair()
		LDRD(v[0], c.scales, panel.Rows*index)
		if signed {
			SXTLB(v[0], v[0])
			SXTL2H(v[1], v[0])
			SXTLH(v[0], v[0])
		} else {
			UXTLB(v[0], v[0])
			UXTL2H(v[1], v[0])
			UXTLH(v[0], v[0])
		}
		for h := range d {
			SCVTF(v[h], v[h])
			FMUL(d[h], d[h], v[h])
		}
	})
}

// each calls f with the codes of every group of four columns of a sub-block.
// See package panel for the planes. f may change the codes.
func (c *codes) each(sub int, f func(g int, v pair)) {
	Scope(func() {
		switch c.k.Bits {
		case 8:
			v := newPair()
			for g := range 8 {
				c.load(v, g)
				for _, v := range v {
					EOR(v, v, c.masks[0x80])
				}
				f(g, v)
			}
		case 4, 5, 6:
			c.nibbles(sub, f)
		default:
			c.pairs(sub, f)
		}
	})
}

// load reads a plane.
func (c *codes) load(v pair, plane int) { LDP(v[0], v[1], c.at, 4*panel.Rows*plane) }

// nibbles takes groups g and g+4 from one plane, or one of them if they belong
// to different sub-blocks.
func (c *codes) nibbles(sub int, f func(g int, v pair)) {
	both, low, high := newPair(), newPair(), pair{}
	switch c.k.Bits {
	case 5:
		high = newPair()
		c.load(high, 4)
	case 6:
		high = newPair()
		c.load(high, 4+sub)
	}
	finish := func(g int, v pair) {
		for h, v := range v {
			switch {
			case c.k.Bits == 5:
				c.join(v, high[h], 4-g, 0x10)
			case c.k.Bits == 6:
				c.join(v, high[h], 4-2*(g%4), 0x30)
			case c.k.Table != nil:
				TBL(v, c.table, v)
			}
		}
		f(g, v)
	}
	for g := range 4 {
		c.load(both, g)
		if sub == 0 {
			for h, v := range both {
				AND(low[h], v, c.masks[0x0f])
			}
			finish(g, low)
		}
		if sub == c.k.Subs()-1 {
			for _, v := range both {
				Shift16B(v, v, -4)
			}
			finish(g+4, both)
		}
	}
}

// pairs takes the four groups of a sub-block from one plane of two bits.
func (c *codes) pairs(sub int, f func(g int, v pair)) {
	four, v, high := newPair(), newPair(), pair{}
	c.load(four, sub)
	if c.k.Bits == 3 {
		high = newPair()
		c.load(high, 2)
	}
	for i := range 4 {
		g := 4*sub + i
		for h, v := range v {
			if i == 0 {
				AND(v, four[h], c.masks[0x03])
			} else {
				Shift16B(v, four[h], -2*i)
				AND(v, v, c.masks[0x03])
			}
			if c.k.Bits == 3 {
				c.join(v, high[h], 2-g, 0x04)
			}
		}
		f(g, v)
	}
}

// join copies the bits of mask from n << by to v.
func (c *codes) join(v, n V, by int, mask uint8) {
	if by == 0 {
		BIT(v, n, c.masks[mask])
		return
	}
	Scope(func() {
		shifted := NewV()
		Shift16B(shifted, n, by)
		BIT(v, shifted, c.masks[mask])
	})
}
