// Package kvcache holds what layers remember of a sequence. Memory is handed
// out in pages of so many positions; a Table lists a sequence's pages in
// order of position, so that sequences grow and rewind without copying. What
// does not grow with a sequence, rings of its last entries, has a place of its
// own for each.
//
// A page is bytes: how keys and values lie in them is known to the kernels
// that write and read them, and only there.
package kvcache

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/tensor"
)

const lineBytes = 64

// A Pool stores the pages and rings of all sequences. They are taken from the
// system when first needed and kept. One goroutine owns a Pool.
type Pool struct {
	layers []LayerSpec
	dtype  tensor.DType
	parts  [][]part // [layers][stores]

	pagePositions int
	pages         memory
	rings         memory // one for each sequence; none if there are no rings
}

// A part is the place of a store in a page or, if it is a ring, in a ring's
// memory.
type part struct {
	dtype   tensor.DType
	entry   int // bytes
	offset  int
	entries int // in a page, or in the ring
	block   int // bytes from one block to the next
	ring    bool
}

// ErrFull reports that a sequence cannot grow until others are released.
type ErrFull struct{ Want, Free, PageSize int }

func (e *ErrFull) Error() string {
	return fmt.Sprintf("cache full: %d more pages of %d tokens wanted, %d free", e.Want, e.PageSize, e.Free)
}

// NewPool makes a pool for the given number of tokens, rounded up to pages.
// d is F32, F16, BF16 or Q8_0; the last needs heads whose keys and values are
// whole blocks of 32.
func NewPool(layers []LayerSpec, d tensor.DType, tokens int) (*Pool, error) {
	switch d {
	case tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0:
	default:
		return nil, fmt.Errorf("cache dtype %v: expected F32, F16, BF16 or Q8_0", d)
	}
	p := &Pool{layers: layers, dtype: d, pagePositions: pagePositions(layers)}
	pageBytes, ringBytes := 0, 0
	for i, l := range layers {
		parts := make([]part, len(l))
		for k, s := range l {
			a := part{dtype: d, entry: s.EntryBytes(d), entries: p.pagePositions / s.every(), ring: s.Ring > 0}
			if s.DType != tensor.Invalid {
				a.dtype = s.DType
			}
			if n := a.dtype.BlockLen(); s.KeyDim%n != 0 || s.ValueDim%n != 0 {
				return nil, fmt.Errorf("cache dtype %v: layer %d has keys of %d and values of %d, expected multiples of %d", d, i, s.KeyDim, s.ValueDim, n)
			}
			end := &pageBytes
			if a.ring {
				a.entries, end = s.Ring+Slack, &ringBytes
			}
			a.offset, a.block = *end, lines(BlockSize*a.entry)
			if s.Layout == Blocks {
				*end += a.entries / BlockSize * a.block
			} else {
				*end += lines(a.entries * a.entry)
			}
			parts[k] = a
		}
		p.parts = append(p.parts, parts)
	}
	n := (tokens + p.pagePositions - 1) / p.pagePositions
	p.pages = memory{bytes: pageBytes, most: n}
	p.rings = memory{bytes: ringBytes, most: n} // a sequence has at least a page
	return p, nil
}

// lines rounds bytes up to whole cache lines.
func lines(bytes int) int { return (bytes + lineBytes - 1) / lineBytes * lineBytes }

// DType is the storage type of keys and values.
func (p *Pool) DType() tensor.DType { return p.dtype }

// PageSize is the number of positions in a page.
func (p *Pool) PageSize() int { return p.pagePositions }

// Capacity is the number of tokens the pool can hold.
func (p *Pool) Capacity() int { return p.pages.most * p.pagePositions }

// Free is the number of pages that no sequence holds.
func (p *Pool) Free() int { return p.pages.available() }

// Held is the number of positions that t has memory for.
func (p *Pool) Held(t *Table) int { return len(t.pages) * p.pagePositions }

// A Table holds the pages of one sequence. The zero Table is empty.
type Table struct {
	pages []int32
	ring  []int32 // one, or none
	high  int     // positions that may have been written since the table was empty
}

// Grow gives t memory for tokens positions in all, or returns *ErrFull and
// leaves it as it was. What the memory holds is arbitrary.
func (p *Pool) Grow(t *Table, tokens int) error {
	want := p.pagesFor(tokens) - len(t.pages)
	if want > p.Free() {
		return &ErrFull{Want: want, Free: p.Free(), PageSize: p.pagePositions}
	}
	for range want {
		t.pages = append(t.pages, p.pages.take())
	}
	if p.rings.bytes > 0 && len(t.ring) == 0 && tokens > 0 {
		t.ring = append(t.ring, p.rings.take())
	}
	t.high = max(t.high, tokens)
	return nil
}

func (p *Pool) pagesFor(tokens int) int { return (tokens + p.pagePositions - 1) / p.pagePositions }

// ErrRewind reports that what a ring held at a position is gone.
type ErrRewind struct{ To, From int }

func (e *ErrRewind) Error() string {
	return fmt.Sprintf("the cache cannot be rewound from position %d to %d: at most %d", e.From, e.To, Slack)
}

// Rewind keeps the first tokens positions of t and frees pages beyond them. A
// pool with rings rewinds by at most Slack positions, or to none: else Rewind
// returns *ErrRewind and leaves t as it was.
func (p *Pool) Rewind(t *Table, tokens int) error {
	if len(t.ring) > 0 && tokens > 0 && t.high-tokens > Slack {
		return &ErrRewind{To: tokens, From: t.high}
	}
	keep := min(p.pagesFor(tokens), len(t.pages))
	p.pages.put(t.pages[keep:])
	t.pages = t.pages[:keep]
	if tokens == 0 {
		p.rings.put(t.ring)
		t.ring, t.high = t.ring[:0], 0
	}
	return nil
}

// Release empties t.
func (p *Pool) Release(t *Table) { _ = p.Rewind(t, 0) }
