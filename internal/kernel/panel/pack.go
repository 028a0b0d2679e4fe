package panel

import (
	"encoding/binary"
	"math"

	"github.com/foretoken/foretoken/internal/tensor"
)

// Pack writes one panel of m, the rows from 32·panel on, to dst, which is zero
// and has the bytes of all segments. Rows beyond the last stay zero.
func (k *Kind) Pack(dst []byte, m *tensor.Matrix, panel int, segments []Segment) {
	for r := range min(Rows, m.Rows-panel*Rows) {
		k.packRow(dst, m, panel*Rows+r, r, segments)
	}
}

// packRow writes row `row` of m as row r of a panel.
func (k *Kind) packRow(dst []byte, m *tensor.Matrix, row, r int, segments []Segment) {
	switch {
	case k.ID == MX4 && m.DType == tensor.F4E2M1:
		k.packFP4(dst, m, row, r)
	case k.ID == Q8:
		k.packWords(dst, m, row, r, 0x80808080)
	case k.ID == Q4 || k.ID == IQ4NL:
		k.packWords(dst, m, row, r, 0)
	case k.Quantised():
		k.packCodes(dst, m, row, r)
	case k.ID == F8:
		packF8(dst, m, row, r, segments)
	case k.ID == F32:
		packF32(dst, m, row, r, segments)
	default:
		packHalf(dst, m, row, r, segments, k.ID == BF16)
	}
}

// packCodes takes the row's storage blocks apart. Segments need no care: they
// are whole groups, stored one after the other.
func (k *Kind) packCodes(dst []byte, m *tensor.Matrix, row, r int) {
	var g group
	size := m.DType.BlockBytes()
	src := m.Data[row*m.DType.RowBytes(m.Cols):][:m.DType.RowBytes(m.Cols)]
	for ; len(src) > 0; src = src[size:] {
		g.split(m.DType, src[:size])
		k.put(dst, &g, r)
		dst = dst[k.GroupBytes():]
	}
}

// packWords packs formats whose bytes only move: a scale and then codes in the
// order of the panel, but for flipped bits.
func (k *Kind) packWords(dst []byte, m *tensor.Matrix, row, r int, flip uint32) {
	const plane = 4 * Rows
	size, group := m.DType.BlockBytes(), k.GroupBytes()
	src := m.Data[row*m.DType.RowBytes(m.Cols):][:m.DType.RowBytes(m.Cols)]
	for ; len(src) >= size && len(dst) >= group; src, dst = src[size:], dst[group:] {
		binary.LittleEndian.PutUint16(dst[k.CodeBytes()+2*r:], binary.LittleEndian.Uint16(src))
		// Sixteen bytes at a time, whose bounds are checked once.
		for g := 0; g < k.Bits; g += 4 {
			words, codes := (*[16]byte)(src[2+4*g:]), (*[3*plane + 4]byte)(dst[plane*g+4*r:])
			binary.LittleEndian.PutUint32(codes[0:], binary.LittleEndian.Uint32(words[0:])^flip)
			binary.LittleEndian.PutUint32(codes[plane:], binary.LittleEndian.Uint32(words[4:])^flip)
			binary.LittleEndian.PutUint32(codes[2*plane:], binary.LittleEndian.Uint32(words[8:])^flip)
			binary.LittleEndian.PutUint32(codes[3*plane:], binary.LittleEndian.Uint32(words[12:])^flip)
		}
	}
}

// packFP4 packs four-bit floats whose scales are stored beside them.
func (k *Kind) packFP4(dst []byte, m *tensor.Matrix, row, r int) {
	s := m.Scales
	perRow := (m.Cols + s.BlockCols - 1) / s.BlockCols
	src, scales := m.Data[row*m.Cols/2:], s.Data[row/s.BlockRows*perRow:]
	var g group
	for c := 0; c < m.Cols; c += Block {
		g.d = e8m0Half(scales[c/s.BlockCols])
		for j, q := range src[c/2 : c/2+Block/2] {
			g.codes[2*j], g.codes[2*j+1] = q&15, q>>4
		}
		k.put(dst, &g, r)
		dst = dst[k.GroupBytes():]
	}
}

// put stores a group as row r of a panel.
func (k *Kind) put(dst []byte, g *group, r int) {
	halves := dst[k.HalvesAt():]
	binary.LittleEndian.PutUint16(halves[2*r:], g.d)
	if k.Min {
		binary.LittleEndian.PutUint16(halves[2*Rows+2*r:], g.min)
	}
	subs := k.Subs()
	for b := range k.Group() {
		block := dst[k.BlockAt(b):]
		k.putCodes(block, (*[Block]uint8)(g.codes[b*Block:]), r)
		if !k.Scale.TwoLevel() {
			return
		}
		scales := block[k.CodeBytes():]
		for sub := range subs {
			scales[sub*Rows+r] = g.scales[b*subs+sub]
			if k.Min {
				scales[(subs+sub)*Rows+r] = g.mins[b*subs+sub]
			}
		}
	}
}

// putCodes stores the codes of row r in a block's planes, four bytes at a time.
func (k *Kind) putCodes(dst []byte, codes *[Block]uint8, r int) {
	u32, put := binary.LittleEndian.Uint32, binary.LittleEndian.PutUint32
	const plane = 4 * Rows // bytes of one group, or of a plane of several
	switch k.Bits {
	case 8:
		for g := range 8 {
			put(dst[plane*g+4*r:], u32(codes[4*g:]))
		}
		return
	case 4, 5, 6:
		for g := range 4 {
			put(dst[plane*g+4*r:], u32(codes[4*g:])&0x0f0f0f0f|u32(codes[4*g+16:])&0x0f0f0f0f<<4)
		}
		dst = dst[4*plane:]
	case 2, 3:
		putPairs(dst[4*r:], codes, 0)
		dst = dst[2*plane:]
	}
	switch k.Bits {
	case 6:
		putPairs(dst[4*r:], codes, 4)
	case 5, 3:
		var w uint32
		for g := range 8 {
			w |= u32(codes[4*g:]) >> (k.Bits - 1) & 0x01010101 << g
		}
		put(dst[4*r:], w)
	}
}

// putPairs stores bits shift and shift+1 of the codes.
func putPairs(dst []byte, codes *[Block]uint8, shift int) {
	for p := range 2 {
		var w uint32
		for i := range 4 {
			w |= binary.LittleEndian.Uint32(codes[16*p+4*i:]) >> shift & 0x03030303 << (2 * i)
		}
		binary.LittleEndian.PutUint32(dst[4*Rows*p:], w)
	}
}

// each calls f for every block of the segments with the row's values there.
func each[T any](row []T, segments []Segment, f func(block int, values []T)) {
	block := 0
	for _, s := range segments {
		for from := s.From; from < s.To; from += Block {
			f(block, row[from:min(from+Block, s.To)])
			block++
		}
	}
}

func packF32(dst []byte, m *tensor.Matrix, row, r int, segments []Segment) {
	values := make([]float32, m.Cols)
	m.Row(values, row)
	each(values, segments, func(block int, v []float32) {
		out := dst[4*Rows*Block*block+4*r:]
		for i, x := range v {
			binary.LittleEndian.PutUint32(out[4*Rows*i:], math.Float32bits(x))
		}
	})
}

func packHalf(dst []byte, m *tensor.Matrix, row, r int, segments []Segment, pairs bool) {
	src := m.Data[2*row*m.Cols:][:2*m.Cols]
	block := 0
	for _, s := range segments {
		for from := s.From; from < s.To; from += Block {
			values := src[2*from : 2*min(from+Block, s.To)]
			out := dst[2*Rows*Block*block:]
			block++
			if !pairs {
				for i := 0; i < len(values); i += 2 {
					binary.LittleEndian.PutUint16(out[Rows*i+2*r:], binary.LittleEndian.Uint16(values[i:]))
				}
				continue
			}
			for len(values) >= 4 {
				binary.LittleEndian.PutUint32(out[4*r:], binary.LittleEndian.Uint32(values))
				out, values = out[4*Rows:], values[4:]
			}
			if len(values) > 0 {
				binary.LittleEndian.PutUint16(out[4*r:], binary.LittleEndian.Uint16(values))
			}
		}
	}
}

func packF8(dst []byte, m *tensor.Matrix, row, r int, segments []Segment) {
	src := m.Data[row*m.Cols:][:m.Cols]
	col := 0
	each(src, segments, func(block int, codes []byte) {
		out := dst[(4*Rows+Rows*Block)*block:]
		scale := float32(1)
		if m.Scales != nil {
			scale = m.Scales.At(row, col, m.Cols)
		}
		col += len(codes)
		binary.LittleEndian.PutUint32(out[4*r:], math.Float32bits(scale))
		for i, c := range codes {
			out[4*Rows+Rows*i+r] = c
		}
	})
}
