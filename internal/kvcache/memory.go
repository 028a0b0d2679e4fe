package kvcache

import "unsafe"

// memory is made of equal pieces that are handed out and taken back. They are
// allocated some at a time, when first wanted, and kept.
type memory struct {
	bytes int // of a piece
	most  int // how many there may be
	slabs [][]byte
	made  int
	free  []int32
}

// slabPieces bounds the first allocation of a short sequence and the number
// of allocations of a long one.
const slabPieces = 8

// available is how many pieces can be taken.
func (m *memory) available() int { return m.most - m.made + len(m.free) }

// take returns a piece; there is one available.
func (m *memory) take() int32 {
	if n := len(m.free); n > 0 {
		piece := m.free[n-1]
		m.free = m.free[:n-1]
		return piece
	}
	if m.made%slabPieces == 0 {
		m.slabs = append(m.slabs, allocate(min(slabPieces, m.most-m.made)*m.bytes))
	}
	m.made++
	return int32(m.made - 1)
}

// put gives pieces back.
func (m *memory) put(pieces []int32) { m.free = append(m.free, pieces...) }

// at returns the bytes of a piece.
func (m *memory) at(piece int32) []byte {
	return m.slabs[piece/slabPieces][int(piece%slabPieces)*m.bytes:][:m.bytes]
}

// allocate returns n bytes, the first at the start of a cache line.
func allocate(n int) []byte {
	b := make([]byte, n+lineBytes-1)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % lineBytes)
	return b[skip:][:n:n]
}
