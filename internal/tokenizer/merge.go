package tokenizer

import (
	"math"
	"math/bits"
	"slices"
	"sync"
)

// mergeTable maps a pair of symbols to the rank of its merge and the symbol that results. It is an
// open-addressing hash table: a vocabulary has up to 500,000 merges, and every piece asks for
// several pairs.
type mergeTable struct {
	slots []mergeSlot // a power of two, at most three quarters full
	count int
}

type mergeSlot struct {
	left, right int32 // left -1: empty
	rank, id    int32
}

const noRank = math.MaxInt32

func newMergeTable(n int) mergeTable {
	t := mergeTable{slots: make([]mergeSlot, 1<<bits.Len(uint(4*n/3+1)))}
	for i := range t.slots {
		t.slots[i].left = -1
	}
	return t
}

func (t *mergeTable) slot(left, right int32) int {
	h := (uint64(uint32(left))<<32 | uint64(uint32(right))) * 0x9E3779B97F4A7C15
	return int(h >> (64 - uint(bits.Len(uint(len(t.slots)-1)))))
}

// set adds a merge; a later one of the same pair replaces it.
func (t *mergeTable) set(left, right, rank, id int32) {
	for i := t.slot(left, right); ; i = (i + 1) & (len(t.slots) - 1) {
		s := &t.slots[i]
		if s.left < 0 {
			t.count++
		} else if s.left != left || s.right != right {
			continue
		}
		*s = mergeSlot{left, right, rank, id}
		return
	}
}

// get returns noRank if the pair does not merge.
func (t *mergeTable) get(left, right int32) (rank, id int32) {
	for i := t.slot(left, right); ; i = (i + 1) & (len(t.slots) - 1) {
		switch s := &t.slots[i]; {
		case s.left == left && s.right == right:
			return s.rank, s.id
		case s.left < 0:
			return noRank, 0
		}
	}
}

// Below shortPiece symbols, looking through all pairs for the lowest rank is faster than a heap.
const shortPiece = 32

// merge merges symbols in place and returns how many are left.
func (t *mergeTable) merge(symbols []int32) int {
	if t.count == 0 || len(symbols) < 2 {
		return len(symbols)
	}
	if len(symbols) <= shortPiece {
		return t.mergeShort(symbols)
	}
	return t.mergeLong(symbols)
}

func (t *mergeTable) mergeShort(symbols []int32) int {
	var ranks, ids [shortPiece]int32 // of the pairs (i, i+1)
	n := len(symbols)
	for i := range n - 1 {
		ranks[i], ids[i] = t.get(symbols[i], symbols[i+1])
	}
	for n > 1 {
		best := 0
		for i := 1; i < n-1; i++ {
			if ranks[i] < ranks[best] {
				best = i
			}
		}
		if ranks[best] == noRank {
			break
		}
		symbols[best] = ids[best]
		copy(symbols[best+1:n-1], symbols[best+2:n])
		copy(ranks[best:n-2], ranks[best+1:n-1])
		copy(ids[best:n-2], ids[best+1:n-1])
		n--
		if best > 0 {
			ranks[best-1], ids[best-1] = t.get(symbols[best-1], symbols[best])
		}
		if best < n-1 {
			ranks[best], ids[best] = t.get(symbols[best], symbols[best+1])
		}
	}
	return n
}

// mergeWork holds the links of a long piece's symbols and the heap of its pairs.
type mergeWork struct {
	prev, next []int32
	heap       []uint64 // rank<<32 | index of the left symbol: the order of merging
}

var mergeWorks = sync.Pool{New: func() any { return new(mergeWork) }}

// mergeLong costs O(n log n). A heap entry is stale unless the pair now at its place has its rank;
// one that is not stale by coincidence of rank is as good as new.
func (t *mergeTable) mergeLong(symbols []int32) int {
	w := mergeWorks.Get().(*mergeWork)
	defer func() {
		if cap(w.next) <= 1<<20 {
			mergeWorks.Put(w)
		}
	}()
	n := int32(len(symbols))
	w.prev, w.next, w.heap = slices.Grow(w.prev[:0], int(n))[:n], slices.Grow(w.next[:0], int(n))[:n], w.heap[:0]
	for i := range n {
		w.prev[i], w.next[i] = i-1, i+1
		if i+1 < n {
			if rank, _ := t.get(symbols[i], symbols[i+1]); rank != noRank {
				w.heap = append(w.heap, uint64(rank)<<32|uint64(i))
			}
		}
	}
	slices.Sort(w.heap) // a sorted list is a heap
	for len(w.heap) > 0 {
		top := w.pop()
		i := int32(top & 0xFFFFFFFF)
		right := w.next[i]
		if right < 0 || right == n { // merged into its left neighbour, or last
			continue
		}
		rank, id := t.get(symbols[i], symbols[right])
		if rank != int32(top>>32) {
			continue
		}
		symbols[i] = id
		after := w.next[right]
		w.next[i], w.next[right] = after, -1
		if after < n {
			w.prev[after] = i
			if rank, _ := t.get(id, symbols[after]); rank != noRank {
				w.push(uint64(rank)<<32 | uint64(i))
			}
		}
		if left := w.prev[i]; left >= 0 {
			if rank, _ := t.get(symbols[left], id); rank != noRank {
				w.push(uint64(rank)<<32 | uint64(left))
			}
		}
	}
	kept := 0
	for i := int32(0); i < n; i = w.next[i] {
		symbols[kept] = symbols[i]
		kept++
	}
	return kept
}

func (w *mergeWork) push(x uint64) {
	w.heap = append(w.heap, x)
	h, i := w.heap, len(w.heap)-1
	for i > 0 && h[(i-1)/2] > x {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = x
}

func (w *mergeWork) pop() uint64 {
	h := w.heap
	top, x := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	w.heap = h
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if h[child] >= x {
			break
		}
		h[i] = h[child]
		i = child
	}
	if len(h) > 0 {
		h[i] = x
	}
	return top
}
