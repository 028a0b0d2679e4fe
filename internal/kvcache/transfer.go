package kvcache

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Export writes what is kept of the first tokens positions of t, for Import
// into a pool of the same layers and type. Where layers keep rings these must
// be positions that Rewind could keep (*ErrRewind).
func (p *Pool) Export(t *Table, tokens int, w io.Writer) error {
	least := t.least()
	if tokens < least {
		return &ErrRewind{To: tokens, From: t.high, Least: least}
	}
	n := p.pagesFor(tokens)
	if tokens < 1 || n > len(t.pages) {
		return fmt.Errorf("cache: %d positions to export, expected 1 to %d", tokens, len(t.pages)*p.pagePositions)
	}
	if err := binary.Write(w, binary.LittleEndian, p.header(tokens, least)); err != nil {
		return err
	}
	for _, page := range t.pages[:n] {
		if _, err := w.Write(p.pages.at(page)); err != nil {
			return err
		}
	}
	for _, ring := range t.ring {
		if _, err := w.Write(p.rings.at(ring)); err != nil {
			return err
		}
	}
	return nil
}

// header is what begins an export: enough to refuse that of another pool.
// Least is the first position that can be rewound to.
type header struct{ Tokens, Least, PagePositions, PageBytes, RingBytes int64 }

func (p *Pool) header(tokens, least int) header {
	return header{int64(tokens), int64(least), int64(p.pagePositions), int64(p.pages.bytes), int64(p.rings.bytes)}
}

// Import fills t, which is empty, with what Export wrote and returns the
// number of its positions. On errors, *ErrFull among them, t stays empty.
func (p *Pool) Import(t *Table, r io.Reader) (tokens int, err error) {
	var h header
	if err := binary.Read(r, binary.LittleEndian, &h); err != nil {
		return 0, fmt.Errorf("cache: %w", err)
	}
	if h.Tokens < 1 || h.Tokens > int64(p.Capacity()) || h != p.header(int(h.Tokens), int(h.Least)) {
		return 0, fmt.Errorf("cache: what is imported is of %d positions in pages of %d positions and %d bytes with rings of %d, expected 1 to %d, %d, %d and %d",
			h.Tokens, h.PagePositions, h.PageBytes, h.RingBytes, p.Capacity(), p.pagePositions, p.pages.bytes, p.rings.bytes)
	}
	if h.Least < 0 || h.Least > h.Tokens {
		return 0, fmt.Errorf("cache: what is imported can be rewound to position %d, expected 0 to %d", h.Least, h.Tokens)
	}
	if err := p.Grow(t, int(h.Tokens)); err != nil {
		return 0, err
	}
	read := func(memory *memory, pieces []int32) {
		for _, piece := range pieces {
			if err == nil {
				_, err = io.ReadFull(r, memory.at(piece))
			}
		}
	}
	read(&p.pages, t.pages)
	read(&p.rings, t.ring)
	if err != nil {
		p.Release(t)
		return 0, fmt.Errorf("cache: %w", err)
	}
	if len(t.ring) > 0 {
		t.since = int(h.Least)
	}
	return int(h.Tokens), nil
}
