// Package kvcache holds what layers remember of a sequence. Memory is handed
// out in pages of PageSize positions; a Table lists a sequence's pages in
// order of position, so that sequences grow and rewind without copying.
//
// A page is bytes: how keys and values lie in them is known to the kernels
// that write and read them, and only there.
package kvcache

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/tensor"
)

// PageSize is the number of positions in a page. Attention reduces over the
// same blocks, cut at absolute positions.
const PageSize = 32

// A LayerSpec says what one layer keeps of a position: a key of KeyDim and a
// value of ValueDim for each of its Heads.
type LayerSpec struct {
	Heads            int
	KeyDim, ValueDim int
}

// BytesPerToken is what the layer keeps of one position.
func (s LayerSpec) BytesPerToken(d tensor.DType) int {
	return s.Heads * (d.RowBytes(s.KeyDim) + d.RowBytes(s.ValueDim))
}

// pageBytes is the size of the layer's part of a page, whole cache lines.
func (s LayerSpec) pageBytes(d tensor.DType) int {
	return (PageSize*s.BytesPerToken(d) + lineBytes - 1) / lineBytes * lineBytes
}

const lineBytes = 64

// BytesPerToken is what all layers together keep of one position.
func BytesPerToken(layers []LayerSpec, d tensor.DType) int {
	n := 0
	for _, l := range layers {
		n += l.BytesPerToken(d)
	}
	return n
}

// A Pool stores the pages of all sequences. Pages are taken from the system
// when first needed and kept. One goroutine owns a Pool.
type Pool struct {
	layers    []LayerSpec
	dtype     tensor.DType
	offsets   []int // [layers], where a layer's part of a page begins
	pageBytes int
	pages     int      // how many there may be
	slabs     [][]byte // [made/slabPages] slabs of slabPages pages
	made      int
	free      []int32
}

// slabPages bounds the first allocation of a short sequence and the number of
// allocations of a long one.
const slabPages = 8

// ErrFull reports that a sequence cannot grow until others are released.
type ErrFull struct{ Want, Free int }

func (e *ErrFull) Error() string {
	return fmt.Sprintf("cache full: %d more pages of %d tokens wanted, %d free", e.Want, PageSize, e.Free)
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
	p := &Pool{layers: layers, dtype: d, pages: (tokens + PageSize - 1) / PageSize}
	for i, l := range layers {
		if n := d.BlockLen(); l.KeyDim%n != 0 || l.ValueDim%n != 0 {
			return nil, fmt.Errorf("cache dtype %v: layer %d has keys of %d and values of %d, expected multiples of %d", d, i, l.KeyDim, l.ValueDim, n)
		}
		p.offsets = append(p.offsets, p.pageBytes)
		p.pageBytes += l.pageBytes(d)
	}
	return p, nil
}

// DType is the storage type of keys and values.
func (p *Pool) DType() tensor.DType { return p.dtype }

// Capacity is the number of tokens the pool can hold.
func (p *Pool) Capacity() int { return p.pages * PageSize }

// Free is the number of pages that no sequence holds.
func (p *Pool) Free() int { return p.pages - p.made + len(p.free) }

// A Table holds the pages of one sequence. The zero Table is empty.
type Table struct {
	pages []int32
}

// Capacity is the number of positions the table has memory for.
func (t *Table) Capacity() int { return len(t.pages) * PageSize }

// Grow gives t memory for tokens positions in all, or returns *ErrFull and
// leaves it as it was. What the memory holds is arbitrary.
func (p *Pool) Grow(t *Table, tokens int) error {
	want := (tokens+PageSize-1)/PageSize - len(t.pages)
	if want > p.Free() {
		return &ErrFull{Want: want, Free: p.Free()}
	}
	for range want {
		t.pages = append(t.pages, p.take())
	}
	return nil
}

// Rewind keeps the first tokens positions of t and frees pages beyond them.
func (p *Pool) Rewind(t *Table, tokens int) {
	keep := min((tokens+PageSize-1)/PageSize, len(t.pages))
	p.free = append(p.free, t.pages[keep:]...)
	t.pages = t.pages[:keep]
}

// Release empties t.
func (p *Pool) Release(t *Table) { p.Rewind(t, 0) }

func (p *Pool) take() int32 {
	if n := len(p.free); n > 0 {
		page := p.free[n-1]
		p.free = p.free[:n-1]
		return page
	}
	if p.made%slabPages == 0 {
		p.slabs = append(p.slabs, allocate(min(slabPages, p.pages-p.made)*p.pageBytes))
	}
	p.made++
	return int32(p.made - 1)
}

// A View is one layer of the cache for the sequences of a step, as attention
// kernels write and read it.
type View struct {
	Pool   *Pool
	Layer  int
	Tables []*Table
}

// Block returns the layer's part of the page with positions
// [b·PageSize, (b+1)·PageSize) of sequence seq. It begins at a cache line.
func (v *View) Block(seq, b int) []byte {
	p, page := v.Pool, v.Tables[seq].pages[b]
	from := int(page%slabPages)*p.pageBytes + p.offsets[v.Layer]
	return p.slabs[page/slabPages][from:][:PageSize*p.layers[v.Layer].BytesPerToken(p.dtype)]
}
