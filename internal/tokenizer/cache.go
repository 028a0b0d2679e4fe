package tokenizer

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"
)

const (
	maxCachedPiece = 64 // bytes
	cacheSlots     = 1 << 14
)

// pieceCache remembers the ids of short pieces. It is direct-mapped: a new piece replaces the one
// in its slot, so it never grows beyond cacheSlots entries (some 3 MB) and needs no lock.
type pieceCache struct {
	seed  maphash.Seed
	slots [cacheSlots]atomic.Pointer[cachedPiece]
}

type cachedPiece struct {
	text string
	ids  []int32
}

func newPieceCache() *pieceCache { return &pieceCache{seed: maphash.MakeSeed()} }

// get returns the slot of text and its ids, nil if they are not there.
func (c *pieceCache) get(text string) (slot uint64, ids []int32) {
	slot = maphash.String(c.seed, text) % cacheSlots
	if e := c.slots[slot].Load(); e != nil && e.text == text {
		return slot, e.ids
	}
	return slot, nil
}

func (c *pieceCache) put(slot uint64, text string, ids []int32) {
	if len(ids) > 0 {
		c.slots[slot].Store(&cachedPiece{strings.Clone(text), slices.Clone(ids)})
	}
}
