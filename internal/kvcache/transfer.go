package kvcache

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Export writes what is kept of the first tokens positions of t, for Import
// into a pool of the same layers and type. Where layers keep rings these must
// be the last positions but for at most Slack (*ErrRewind).
func (p *Pool) Export(t *Table, tokens int, w io.Writer) error {
	if len(t.ring) > 0 && t.high-tokens > Slack {
		return &ErrRewind{To: tokens, From: t.high}
	}
	n := p.pagesFor(tokens)
	if tokens < 1 || n > len(t.pages) {
		return fmt.Errorf("cache: %d positions to export, expected 1 to %d", tokens, len(t.pages)*p.pagePositions)
	}
	if err := binary.Write(w, binary.LittleEndian, p.header(tokens)); err != nil {
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
type header struct{ Tokens, PagePositions, PageBytes, RingBytes int64 }

func (p *Pool) header(tokens int) header {
	return header{int64(tokens), int64(p.pagePositions), int64(p.pages.bytes), int64(p.rings.bytes)}
}

// Import fills t, which is empty, with what Export wrote and returns the
// number of its positions. On errors, *ErrFull among them, t stays empty.
func (p *Pool) Import(t *Table, r io.Reader) (tokens int, err error) {
	var h header
	if err := binary.Read(r, binary.LittleEndian, &h); err != nil {
		return 0, fmt.Errorf("cache: %w", err)
	}
	if h.Tokens < 1 || h.Tokens > int64(p.Capacity()) || h != p.header(int(h.Tokens)) {
		return 0, fmt.Errorf("cache: what is imported is of %d positions in pages of %d positions and %d bytes with rings of %d, expected 1 to %d, %d, %d and %d",
			h.Tokens, h.PagePositions, h.PageBytes, h.RingBytes, p.Capacity(), p.pagePositions, p.pages.bytes, p.rings.bytes)
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
	return int(h.Tokens), nil
}
