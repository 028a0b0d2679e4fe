package kvcache

import (
	"cmp"
	"container/heap"
	"fmt"
)

// A Policy is the order in which a Tree evicts leaves.
type Policy uint8

const (
	// LRU evicts what was used longest ago.
	LRU Policy = iota
	// LFU evicts what was attached least often, of these what was used longest ago.
	LFU
	// FIFO evicts what was computed first.
	FIFO
)

var policies = [...]string{"lru", "lfu", "fifo"}

func (p Policy) String() string { return policies[p] }

// UnmarshalText reads lru, lfu or fifo.
func (p *Policy) UnmarshalText(text []byte) error {
	for i, name := range policies {
		if string(text) == name {
			*p = Policy(i)
			return nil
		}
	}
	return fmt.Errorf("eviction policy %q: expected lru, lfu or fifo", text)
}

// compare is negative if a is evicted before b.
func (p Policy) compare(a, b *node) int {
	first := 0
	switch p {
	case LRU:
	case LFU:
		first = cmp.Compare(a.hits, b.hits)
	case FIFO:
		first = cmp.Compare(a.born, b.born)
	}
	return cmp.Or(first, cmp.Compare(a.used, b.used))
}

// Stats are what a Tree holds, in pages but for Snapshots.
type Stats struct {
	Pages     int    // held by the tree, those included that tables share
	Evictable int    // of these, what no table shares
	Snapshots int    // of rings
	Evicted   uint64 // since the tree was made
}

// Stats returns what t holds. Pages that a prefix has in common with t are no
// longer evictable once it is attached.
func (t *Tree) Stats() Stats {
	return Stats{Pages: t.pages, Evictable: t.evictable, Snapshots: len(t.marked), Evicted: t.evicted}
}

// Evict frees up to so many pages that no table shares, a few more where
// layers keep rings, and returns how many. A leaf is evicted from its end as far
// as is needed; with rings as a whole, because its snapshot is of its end.
func (t *Tree) Evict(pages int) (freed int) {
	before := t.pages
	for freed < pages && len(t.leaves.nodes) > 0 {
		n := t.leaves.nodes[0]
		if spare := len(n.pages) - (pages - freed); spare > 0 && !t.ringed() {
			t.cut(n, spare)
		} else {
			t.remove(n)
		}
		freed = before - t.pages
	}
	t.evicted += uint64(freed)
	return freed
}

// cut frees the pages of a leaf without locks beyond the first.
func (t *Tree) cut(n *node, keep int) {
	t.pool.pages.put(n.pages[keep:])
	t.pages -= len(n.pages) - keep
	t.evictable -= len(n.pages) - keep
	n.tokens, n.pages = n.tokens[:keep*t.pool.pagePositions], n.pages[:keep]
}

// remove frees a leaf without locks, and settles what is above it.
func (t *Tree) remove(n *node) {
	parent := n.parent
	t.unlink(n)
	t.settle(parent)
}

func (t *Tree) unlink(n *node) {
	delete(n.parent.children, key(n.tokens[:t.pool.pagePositions]))
	t.leaves.remove(n)
	t.cut(n, 0)
	t.unmark(n)
}

// settle puts n among the leaves that can be evicted, if it is one. A leaf
// that can no longer be attached, for want of a snapshot, goes at once.
func (t *Tree) settle(n *node) {
	for len(n.children) == 0 && n.locks == 0 {
		if n.parent == nil {
			delete(t.roots, n.namespace)
			return
		}
		if n.snapshot != none || !t.ringed() {
			t.leaves.add(n)
			return
		}
		parent := n.parent
		t.unlink(n)
		n = parent
	}
}

// fix finds the place of n among the leaves again.
func (t *Tree) fix(n *node) {
	if n.heap != none {
		heap.Fix(&t.leaves, n.heap)
	}
}

// leaves is a heap of nodes without children and locks.
type leaves struct {
	nodes  []*node
	policy Policy
}

func (l *leaves) add(n *node) {
	if n.heap == none {
		heap.Push(l, n)
	}
}

func (l *leaves) remove(n *node) {
	if n.heap != none {
		heap.Remove(l, n.heap)
	}
}

// Len, Less, Swap, Push and Pop are heap.Interface's.
func (l *leaves) Len() int { return len(l.nodes) }

func (l *leaves) Less(i, j int) bool { return l.policy.compare(l.nodes[i], l.nodes[j]) < 0 }

func (l *leaves) Swap(i, j int) {
	l.nodes[i], l.nodes[j] = l.nodes[j], l.nodes[i]
	l.nodes[i].heap, l.nodes[j].heap = i, j
}

func (l *leaves) Push(x any) {
	n := x.(*node)
	n.heap = len(l.nodes)
	l.nodes = append(l.nodes, n)
}

func (l *leaves) Pop() any {
	last := len(l.nodes) - 1
	n := l.nodes[last]
	l.nodes, n.heap = l.nodes[:last], none
	return n
}
