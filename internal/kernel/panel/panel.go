// Package panel is how weights lie in memory for matrix products: the rows of
// a matrix in groups of 32, a panel, in the order in which a kernel reads them.
// A panel is one sequential stream of blocks of 32 columns; within a block four
// columns (two in bfloat16, one in wider types) of all 32 rows lie together, so
// that a vector of weights meets one broadcast of activations and each lane
// sums one output.
//
//	quantised   codes [8 groups of 4 columns][32 rows][4], then scales
//	BF16        [16 pairs of columns][32 rows][2] uint16
//	F16, F32    [32 columns][32 rows]
//	F8          [32 rows] float32 scales, then [32 columns][32 rows] uint8
//
// Codes of fewer than eight bits are stored in planes (Kind.Planes), so that
// every width is a few shifts and masks of whole vectors:
//
//	8 bits   [8 groups][32 rows][4]
//	4 bits   [4][32][4]   group g in the low nibble, g+4 in the high one
//	2 bits   [2][32][4]   group 4p+i in bits 2i of plane p
//	1 bit    [32][4]      group g in bit g
//
// The file's decoded values are kept exactly (Unpack).
package panel

import "github.com/foretoken/foretoken/internal/tensor"

const (
	// Rows is the number of weight rows in a panel.
	Rows = 32
	// Block is the number of columns that are read and summed together.
	Block = 32
	// Super is the number of blocks whose scales share a header in kinds with
	// scales of two levels.
	Super = 8
)

// An ID numbers the kinds.
type ID uint8

// The kinds, quantised ones first.
const (
	Q8 ID = iota
	Q4
	Q4M // with a minimum
	Q5
	Q5M
	Q2K
	Q3K
	Q4K
	Q5K
	Q6K
	IQ4NL
	IQ4XS
	MX4
	numQuantised

	F32 = iota - 1
	F16
	BF16
	F8
	NumKinds
)

// A ScaleType is how the scales of a quantised kind are stored, each for all
// 32 rows of a panel.
type ScaleType uint8

// The scale types.
const (
	Half   ScaleType = iota // [32] float16
	BHalf                   // [32] bfloat16
	Byte                    // uint8 times a float16 per 256 columns
	Signed                  // int8 times a float16 per 256 columns
)

// TwoLevel reports whether scales are small integers times a float16 that 256
// columns share.
func (t ScaleType) TwoLevel() bool { return t >= Byte }

// A Kind is a way to store panels. A weight is
//
//	(code - Offset) · scale              or, with a Table, (Table[code] - Offset) · scale
//	code · scale + min                   Min, one-level scales
//	code · scale - min                   Min, two-level scales
type Kind struct {
	ID     ID
	Name   string
	Bits   int // of a code
	Offset int // 0 or a power of two
	Table  *[16]uint8
	Sub    int // columns that share a scale: 32 or 16
	Scale  ScaleType
	Min    bool
}

// Quantised reports whether weights are codes with scales.
func (k *Kind) Quantised() bool { return k.ID < numQuantised }

// Group is the number of blocks that are stored together: a panel's segment
// holds a multiple of it.
func (k *Kind) Group() int {
	if k.Quantised() && k.Scale.TwoLevel() {
		return Super
	}
	return 1
}

// Subs is the number of scales of a row in a block.
func (k *Kind) Subs() int { return Block / k.Sub }

// CodeBytes is the size of a block's codes.
func (k *Kind) CodeBytes() int { return k.Bits * Rows * Block / 8 }

// HalfBytes is the size of a group's two-byte floats: scales [32] and, where
// there are any, minima [32], or what they are multiples of. With one level they
// follow the codes; with two they stand in front of the group.
func (k *Kind) HalfBytes() int {
	if k.Min {
		return 4 * Rows
	}
	return 2 * Rows
}

// ScaleBytes is the size of what follows each block's codes in kinds of two
// levels: scales [Subs][32] and, where there are any, minima [Subs][32] bytes,
// filled to whole cache lines.
func (k *Kind) ScaleBytes() int {
	if !k.Scale.TwoLevel() {
		return 0
	}
	n := k.Subs() * Rows
	if k.Min {
		n *= 2
	}
	return max(n, 64)
}

// HalvesAt is where a group has its two-byte floats.
func (k *Kind) HalvesAt() int {
	if k.Scale.TwoLevel() {
		return 0
	}
	return k.CodeBytes()
}

// BlockAt is where a group has block b.
func (k *Kind) BlockAt(b int) int {
	if k.Scale.TwoLevel() {
		return k.HalfBytes() + b*k.BlockBytes()
	}
	return 0
}

// BlockBytes is the size of a block's codes and scales of one byte.
func (k *Kind) BlockBytes() int { return k.CodeBytes() + k.ScaleBytes() }

// GroupBytes is the size of a group of blocks.
func (k *Kind) GroupBytes() int {
	switch k.ID {
	case F32:
		return 4 * Rows * Block
	case F16, BF16:
		return 2 * Rows * Block
	case F8:
		return 4*Rows + Rows*Block
	}
	return k.HalfBytes() + k.Group()*k.BlockBytes()
}

// Bytes is the size of a panel's part of the given number of blocks.
func (k *Kind) Bytes(blocks int) int { return blocks / k.Group() * k.GroupBytes() }

// iq4 is ggml's non-linear spacing, plus 128.
var iq4 = [16]uint8{1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241}

// e2m1 is twice the four-bit floats, plus 16.
var e2m1 = [16]uint8{16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4}

// Kinds has every kind by its ID.
var Kinds = [NumKinds]Kind{
	Q8:    {Q8, "Q8", 8, 128, nil, 32, Half, false},
	Q4:    {Q4, "Q4", 4, 8, nil, 32, Half, false},
	Q4M:   {Q4M, "Q4M", 4, 0, nil, 32, Half, true},
	Q5:    {Q5, "Q5", 5, 16, nil, 32, Half, false},
	Q5M:   {Q5M, "Q5M", 5, 0, nil, 32, Half, true},
	Q2K:   {Q2K, "Q2K", 2, 0, nil, 16, Byte, true},
	Q3K:   {Q3K, "Q3K", 3, 4, nil, 16, Signed, false},
	Q4K:   {Q4K, "Q4K", 4, 0, nil, 32, Byte, true},
	Q5K:   {Q5K, "Q5K", 5, 0, nil, 32, Byte, true},
	Q6K:   {Q6K, "Q6K", 6, 32, nil, 16, Signed, false},
	IQ4NL: {IQ4NL, "IQ4NL", 4, 128, &iq4, 32, Half, false},
	IQ4XS: {IQ4XS, "IQ4XS", 4, 128, &iq4, 32, Signed, false},
	MX4:   {MX4, "MX4", 4, 16, &e2m1, 32, BHalf, false},
	F32:   {ID: F32, Name: "F32"},
	F16:   {ID: F16, Name: "F16"},
	BF16:  {ID: BF16, Name: "BF16"},
	F8:    {ID: F8, Name: "F8"},
}

// of maps storage types to kinds; the others are decoded to F32.
var of = map[tensor.DType]ID{
	tensor.Q8_0: Q8, tensor.Q4_0: Q4, tensor.Q4_1: Q4M, tensor.Q5_0: Q5, tensor.Q5_1: Q5M,
	tensor.Q2_K: Q2K, tensor.Q3_K: Q3K, tensor.Q4_K: Q4K, tensor.Q5_K: Q5K, tensor.Q6_K: Q6K,
	tensor.IQ4_NL: IQ4NL, tensor.IQ4_XS: IQ4XS, tensor.MXFP4: MX4,
	tensor.F16: F16, tensor.BF16: BF16,
}

// Of returns the kind that keeps the values of m.
func Of(m *tensor.Matrix) *Kind {
	if s := m.Scales; s != nil {
		switch {
		case m.DType == tensor.F8E4M3 && s.BlockCols%Block == 0:
			return &Kinds[F8]
		case m.DType == tensor.F4E2M1 && s.DType == tensor.F8E8M0 && s.BlockCols%Block == 0 && m.Cols%Block == 0:
			return &Kinds[MX4]
		}
		return &Kinds[F32]
	}
	if m.DType == tensor.F8E4M3 {
		return &Kinds[F8]
	}
	if id, ok := of[m.DType]; ok {
		return &Kinds[id]
	}
	return &Kinds[F32]
}

// A Segment is a range of columns that is summed on its own, [From, To). In
// quantised kinds its ends are multiples of the group; in the others its last
// block is filled with zeros.
type Segment struct{ From, To int }

// Blocks is the number of blocks of s.
func (s Segment) Blocks() int { return (s.To - s.From + Block - 1) / Block }
