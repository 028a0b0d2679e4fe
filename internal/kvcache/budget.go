package kvcache

import (
	"fmt"
	"math"

	"github.com/foretoken/foretoken/internal/tensor"
)

// A Budget is memory for a cache and what of it does not grow with tokens.
type Budget struct {
	Bytes     int64
	Sequences int // most at a time, each with rings
	Snapshots int // of rings, as in TreeOptions
}

// Tokens returns how many tokens a pool may have that stays within the budget,
// whole pages of pageSize (0: the least). The error says how much the least
// pool takes. Bookkeeping, some bytes for each token and page, is not counted.
func (b Budget) Tokens(layers []LayerSpec, d tensor.DType, pageSize int) (int, error) {
	p, err := NewPool(layers, d, 0, pageSize)
	if err != nil {
		return 0, err
	}
	snapshots := b.Snapshots
	if snapshots == 0 {
		snapshots = DefaultSnapshots
	}
	page, rings := int64(p.pages.bytes), int64(b.Sequences)*int64(p.rings.bytes)
	kept := int64(snapshots) * int64(p.snapshotBytes())
	n := (b.Bytes - rings - kept) / max(page, 1)
	if b.Bytes-rings-kept < page {
		return 0, fmt.Errorf("cache of %d bytes: expected at least %d, for a page of %d tokens (%d bytes), rings of %d sequences (%d) and %d snapshots of rings (%d)",
			b.Bytes, page+rings+kept, p.pagePositions, page, b.Sequences, rings, snapshots, kept)
	}
	return int(min(n, math.MaxInt32/int64(p.pagePositions))) * p.pagePositions, nil
}
