package kvcache

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/tensor"
)

// BlockSize is the number of entries that kernels store and reduce together;
// attention cuts its blocks at absolute positions.
const BlockSize = 32

// Slack is how many positions can be rewound where a layer keeps a ring: the
// longest draft.
const Slack = 64

// A Layout is how the entries of a store lie in memory.
type Layout uint8

const (
	// Blocks are BlockSize entries in the order in which an attention kernel
	// reads them.
	Blocks Layout = iota
	// Rows are entries one after another.
	Rows
)

// A Store is one thing that a layer keeps of a sequence: entries, each of a
// key of KeyDim and a value of ValueDim for every head.
type Store struct {
	Kind             string // what it is, in words
	Layout           Layout
	Heads            int
	KeyDim, ValueDim int
	DType            tensor.DType // Invalid: that of the pool
	Every            int          // positions per entry; 0: one
	// Ring, if not 0, is how many of the last entries a row can read. A store
	// keeps Slack more, so that rewinding finds those before.
	Ring int
	// Private says why sequences cannot share a prefix of the store with the same
	// bits; "": they can.
	Private string
}

// LayerSpec says what one layer keeps.
type LayerSpec []Store

// Shareable returns why sequences that begin alike cannot share what the layer
// keeps of that, nil if they can. Where it is not nil there can be no Tree.
func (l LayerSpec) Shareable() error {
	for _, s := range l {
		switch {
		case s.Private != "":
			return fmt.Errorf("%s cannot be shared: %s", s.Kind, s.Private)
		case s.Ring > 0 && (s.every() > 1 || s.Layout != Rows):
			// A page may end inside such an entry or block.
			return fmt.Errorf("%s cannot be shared: a ring of %d positions an entry, expected rows of one", s.Kind, s.every())
		}
	}
	return nil
}

func (s Store) every() int { return max(s.Every, 1) }

// EntryBytes is the size of an entry in a pool of type d.
func (s Store) EntryBytes(d tensor.DType) int {
	if s.DType != tensor.Invalid {
		d = s.DType
	}
	return s.Heads * (d.RowBytes(s.KeyDim) + d.RowBytes(s.ValueDim))
}

// ringBytes is what the store keeps of a sequence, however long.
func (s Store) ringBytes(d tensor.DType) int {
	if s.Ring == 0 {
		return 0
	}
	return (s.Ring + Slack) * s.EntryBytes(d)
}

// CheckType reports why layers cannot be kept in d.
func CheckType(layers []LayerSpec, d tensor.DType) error {
	switch d {
	case tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0:
	default:
		return fmt.Errorf("cache dtype %v: expected F32, F16, BF16 or Q8_0", d)
	}
	for i, l := range layers {
		for _, s := range l {
			if s.DType != tensor.Invalid {
				continue
			}
			for _, width := range []int{s.KeyDim, s.ValueDim} {
				if n := d.BlockLen(); width%n != 0 {
					return fmt.Errorf("cache dtype %v: it stores blocks of %d values, and this model keeps vectors of %d (%s, layer %d): expected f32, f16 or bf16",
						d, n, width, s.Kind, i)
				}
			}
		}
	}
	return nil
}

// BytesPerToken is what layers together keep for each position, rings not
// counted.
func BytesPerToken(layers []LayerSpec, d tensor.DType) int {
	bytes := 0.0
	for _, l := range layers {
		for _, s := range l {
			if s.Ring == 0 {
				bytes += float64(s.EntryBytes(d)) / float64(s.every())
			}
		}
	}
	return int(bytes + 0.5)
}

// BytesPerSequence is what layers together keep of a sequence beside that:
// their rings.
func BytesPerSequence(layers []LayerSpec, d tensor.DType) int {
	bytes := 0
	for _, l := range layers {
		for _, s := range l {
			bytes += s.ringBytes(d)
		}
	}
	return bytes
}

// pagePositions is the least number of positions of which every store has
// whole entries or, where they are Blocks, whole blocks.
func pagePositions(layers []LayerSpec) int {
	n := BlockSize
	for _, l := range layers {
		for _, s := range l {
			switch {
			case s.Ring > 0:
			case s.Layout == Blocks:
				n = lcm(n, BlockSize*s.every())
			default:
				n = lcm(n, s.every())
			}
		}
	}
	return n
}

func lcm(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}
