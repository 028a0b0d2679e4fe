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
// system when first needed and kept. A Tree keeps pages of sequences that have
// ended, for those that begin alike. One goroutine owns a Pool and its Tree.
type Pool struct {
	layers []LayerSpec
	dtype  tensor.DType
	parts  [][]part // [layers][stores]

	pagePositions int
	pages         memory
	rings         memory  // one for each sequence; none if there are no rings
	marks         []int32 // of each page, how many of its positions the draft model has computed
	tree          *Tree   // nil: no prefixes are shared
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

// ErrFull reports that a sequence cannot grow until others are released: Want
// more pages, where Free are free or can be evicted, or a ring where all Rings
// are taken.
type ErrFull struct{ Want, Free, PageSize, Rings int }

func (e *ErrFull) Error() string {
	if e.Rings > 0 {
		return fmt.Sprintf("cache full: all %d rings are taken", e.Rings)
	}
	return fmt.Sprintf("cache full: %d more pages of %d tokens wanted, %d free", e.Want, e.PageSize, e.Free)
}

// NewPool makes a pool for the given number of tokens, rounded up to pages of
// pageSize positions: a multiple of what the layers need, or 0 for the least.
// Small pages share more of prefixes, large ones take less bookkeeping; values
// do not depend on it. d is F32, F16, BF16 or Q8_0; the last needs heads whose
// keys and values are whole blocks of 32.
func NewPool(layers []LayerSpec, d tensor.DType, tokens, pageSize int) (*Pool, error) {
	if err := CheckType(layers, d); err != nil {
		return nil, err
	}
	least := pagePositions(layers)
	if pageSize == 0 {
		pageSize = least
	}
	if pageSize < 0 || pageSize%least != 0 {
		return nil, fmt.Errorf("page size %d: expected a multiple of %d", pageSize, least)
	}
	p := &Pool{layers: layers, dtype: d, pagePositions: pageSize}
	pageBytes, ringBytes := 0, 0
	for _, l := range layers {
		parts := make([]part, len(l))
		for k, s := range l {
			a := part{dtype: d, entry: s.EntryBytes(d), entries: p.pagePositions / s.every(), ring: s.Ring > 0}
			if s.DType != tensor.Invalid {
				a.dtype = s.DType
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

// Free is the number of pages that neither a sequence nor the Tree holds.
func (p *Pool) Free() int { return p.pages.available() }

// Held is the number of positions that t has memory for.
func (p *Pool) Held(t *Table) int { return len(t.pages) * p.pagePositions }

// A Table holds the pages of one sequence. The zero Table is empty.
//
// The first pages may be shared: the Tree owns them, and other tables may hold
// them too, so that they are never written again.
type Table struct {
	pages  []int32
	shared int     // pages at the front that are the Tree's
	node   *node   // where they end in it; nil if there are none
	ring   []int32 // one, or none
	high   int     // positions that may have been written since the table was empty
	since  int     // the position at which the ring was filled from a snapshot
}

// Shared is the number of positions of t whose memory is the Tree's.
func (p *Pool) Shared(t *Table) int { return t.shared * p.pagePositions }

// Grow gives t memory for tokens positions in all, evicting what only the Tree
// holds if there is no other, or returns *ErrFull and leaves t as it was. What
// the memory holds is arbitrary.
func (p *Pool) Grow(t *Table, tokens int) error {
	ring := p.rings.bytes > 0 && len(t.ring) == 0 && tokens > 0
	if ring && p.rings.available() == 0 {
		return &ErrFull{Rings: p.rings.most}
	}
	want := p.pagesFor(tokens) - len(t.pages)
	if err := p.provide(want); err != nil {
		return err
	}
	for range want {
		t.pages = append(t.pages, p.take())
	}
	if ring {
		t.ring = append(t.ring, p.rings.take())
	}
	t.high = max(t.high, tokens)
	return nil
}

// Clear writes zeros to the pages and the ring of t that are its own.
func (p *Pool) Clear(t *Table) {
	for _, page := range t.pages[t.shared:] {
		clear(p.pages.at(page))
	}
	for _, ring := range t.ring {
		clear(p.rings.at(ring))
	}
}

// provide sees to it that so many pages are free, or returns *ErrFull.
func (p *Pool) provide(pages int) error {
	short := pages - p.Free()
	if short <= 0 {
		return nil
	}
	evictable := 0
	if p.tree != nil {
		evictable = p.tree.evictable
	}
	if short > evictable {
		return &ErrFull{Want: pages, Free: p.Free() + evictable, PageSize: p.pagePositions}
	}
	p.tree.Evict(short)
	return nil
}

func (p *Pool) pagesFor(tokens int) int { return (tokens + p.pagePositions - 1) / p.pagePositions }

// ErrRewind reports that what a ring held at a position is gone.
type ErrRewind struct{ To, From, Least int }

func (e *ErrRewind) Error() string {
	return fmt.Sprintf("the cache cannot be rewound from position %d to %d: no further than to %d", e.From, e.To, e.Least)
}

// least is the first position that t can be rewound to, but for 0: before it
// the ring lacks what the next row reads.
func (t *Table) least() int {
	if len(t.ring) == 0 {
		return 0
	}
	return max(t.high-Slack, t.since)
}

// Rewind keeps the first tokens positions of t and frees pages beyond them. A
// pool with rings rewinds by at most Slack positions and not before what Attach
// gave, or to none: else Rewind returns *ErrRewind and leaves t as it was.
//
// Shared positions that are not kept stay in the Tree, which t then holds no
// longer there. A page that is kept in part is copied, because t goes on to
// write it; if there is no page for that, Rewind returns *ErrFull and leaves t
// as it was.
func (p *Pool) Rewind(t *Table, tokens int) error {
	if least := t.least(); tokens > 0 && tokens < least {
		return &ErrRewind{To: tokens, From: t.high, Least: least}
	}
	if tokens < p.Shared(t) {
		if err := p.tree.part(t, tokens); err != nil {
			return err
		}
	}
	keep := min(p.pagesFor(tokens), len(t.pages))
	p.pages.put(t.pages[keep:])
	t.pages = t.pages[:keep]
	p.unmark(t, tokens)
	if tokens == 0 {
		p.rings.put(t.ring)
		t.ring, t.high, t.since = t.ring[:0], 0, 0
	}
	return nil
}

// Release empties t. What it shares stays in the Tree.
func (p *Pool) Release(t *Table) { _ = p.Rewind(t, 0) }
