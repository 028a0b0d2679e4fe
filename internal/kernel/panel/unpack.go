package panel

import (
	"encoding/binary"

	"github.com/foretoken/foretoken/internal/tensor"
)

// Unpack decodes blocks of a panel to dst [blocks·32 columns][32 rows]: the
// values that the file's decoder gives, which is how they are computed.
func (k *Kind) Unpack(dst []float32, src []byte, blocks int) {
	for b := 0; b < blocks; b += k.Group() {
		part := src[k.Bytes(b):][:k.GroupBytes()]
		out := dst[b*Block*Rows:][:k.Group()*Block*Rows]
		switch k.ID {
		case F32:
			tensor.Decode(tensor.F32, out, part)
		case F16:
			tensor.Decode(tensor.F16, out, part)
		case BF16:
			for i := range out {
				col, r := i/Rows, i%Rows
				out[i] = tensor.BF16ToF32(binary.LittleEndian.Uint16(part[4*(Rows*(col/2)+r)+2*(col%2):]))
			}
		case F8:
			var scales [Rows]float32
			tensor.Decode(tensor.F32, scales[:], part[:4*Rows])
			tensor.Decode(tensor.F8E4M3, out, part[4*Rows:])
			for i := range out {
				out[i] *= scales[i%Rows]
			}
		default:
			k.unpackGroup(out, part)
		}
	}
}

func (k *Kind) unpackGroup(dst []float32, src []byte) {
	for b := range k.Group() {
		codes := k.Block(src, b)
		for sub := range k.Subs() {
			for r := range Rows {
				scale, low := k.Scales(src, b, sub, r)
				if k.Scale.TwoLevel() {
					low = -low
				}
				for g := sub * k.Sub / 4; g < (sub+1)*k.Sub/4; g++ {
					w := k.Codes(codes, g, r)
					out := dst[(b*Block+4*g)*Rows+r:]
					for j := range 4 {
						v := float32(float32(int(uint8(w>>(8*j)))-k.Offset) * scale)
						if k.Min {
							v += low
						}
						out[j*Rows] = v
					}
				}
			}
		}
	}
}

// Block returns the codes of block b of a group.
func (k *Kind) Block(group []byte, b int) []byte { return group[k.BlockAt(b):][:k.CodeBytes()] }

// Scales returns the scale and the minimum of row r in sub-block sub of block b
// of a group.
func (k *Kind) Scales(group []byte, b, sub, r int) (scale, low float32) {
	halves := group[k.HalvesAt():]
	scale = half(k.Scale, halves[2*r:])
	if k.Min {
		low = half(k.Scale, halves[2*Rows+2*r:])
	}
	if !k.Scale.TwoLevel() {
		return scale, low
	}
	scales := group[k.BlockAt(b)+k.CodeBytes():]
	if k.Min {
		low *= float32(scales[(k.Subs()+sub)*Rows+r])
	}
	if k.Scale == Signed {
		return scale * float32(int8(scales[sub*Rows+r])), low
	}
	return scale * float32(scales[sub*Rows+r]), low
}

func half(t ScaleType, b []byte) float32 {
	if t == BHalf {
		return tensor.BF16ToF32(binary.LittleEndian.Uint16(b))
	}
	return tensor.F16ToF32(binary.LittleEndian.Uint16(b))
}

// Codes returns the codes of row r in the four columns of group g of a block,
// the first in the lowest byte, through the table where there is one.
func (k *Kind) Codes(codes []byte, g, r int) uint32 {
	const plane = 4 * Rows
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(codes[at+4*r:]) }
	pair := func(at int) uint32 { return word(at+plane*(g/4)) >> (2 * (g % 4)) & 0x03030303 }
	bit := func(at int) uint32 { return word(at) >> g & 0x01010101 }
	switch k.Bits {
	case 8:
		return word(plane * g)
	case 2:
		return pair(0)
	case 3:
		return pair(0) | bit(2*plane)<<2
	}
	c := word(plane*(g%4)) >> (g / 4 * 4) & 0x0f0f0f0f
	switch {
	case k.Bits == 5:
		return c | bit(4*plane)<<4
	case k.Bits == 6:
		return c | pair(4*plane)<<4
	case k.Table != nil:
		t := k.Table
		return uint32(t[c&15]) | uint32(t[c>>8&15])<<8 | uint32(t[c>>16&15])<<16 | uint32(t[c>>24])<<24
	}
	return c
}
