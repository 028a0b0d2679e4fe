package kvcache

import (
	"slices"
	"unsafe"
)

// A node is a run of pages that is shared as a whole up to its end: where a
// table ends inside, it is split. The root of a namespace has no pages and no
// parent.
type node struct {
	id       uint64 // from 1; never used again
	parent   *node
	children map[string]*node // by the key of their first page
	tokens   []int32          // of the pages; not written once they are here
	pages    []int32          // at least one

	locks     int    // tables that share this node, or one below
	hits      uint64 // times it was attached
	used      uint64 // clock of the last walk through here, at least that of the children
	born      uint64 // clock when it was made
	snapshot  int32  // piece of Tree.snapshots with the rings at its end, or none
	heap      int    // index in Tree.leaves, or none
	namespace string // of a root
}

const none = -1

// node makes a node of n, in no heap and without a snapshot.
func (t *Tree) node(n node) *node {
	t.ids++
	n.id, n.snapshot, n.heap = t.ids, none, none
	return &n
}

// root returns the root of a namespace, which is about to get a child.
func (t *Tree) root(namespace string) *node {
	n := t.roots[namespace]
	if n == nil {
		n = t.node(node{namespace: namespace})
		t.roots[namespace] = n
	}
	return n
}

// key makes a map's key of a page. It is the memory of tokens, not a copy.
func key(page []int32) string {
	return unsafe.String((*byte)(unsafe.Pointer(unsafe.SliceData(page))), 4*len(page))
}

// adopt makes child a child of n.
func (n *node) adopt(child *node, page int) {
	if n.children == nil {
		n.children = map[string]*node{}
	}
	child.parent = n
	n.children[key(child.tokens[:page])] = child
}

// next returns the child of n whose pages tokens begin with, nil if there is
// none. A child that begins like them, and then does not, is split.
func (t *Tree) next(n *node, tokens []int32) *node {
	page := t.pool.pagePositions
	if len(tokens) < page {
		return nil
	}
	child := n.children[key(tokens[:page])]
	if child == nil {
		return nil
	}
	same := page
	for same < len(child.tokens) && same+page <= len(tokens) && slices.Equal(child.tokens[same:][:page], tokens[same:][:page]) {
		same += page
	}
	if same < len(child.tokens) {
		return t.split(child, same/page)
	}
	return child
}

// split cuts n behind its first pages and returns the upper half. n stays the
// node in which tables end, and keeps its snapshot.
func (t *Tree) split(n *node, pages int) *node {
	page := t.pool.pagePositions
	at := pages * page
	upper := t.node(node{
		tokens: n.tokens[:at:at], pages: n.pages[:pages:pages], locks: n.locks, hits: n.hits, used: n.used, born: n.born,
	})
	n.parent.adopt(upper, page)
	n.tokens, n.pages = n.tokens[at:], n.pages[pages:]
	upper.adopt(n, page)
	return upper
}

// lock locks the nodes from n up to the one below until, or below the root.
func (t *Tree) lock(n, until *node) {
	for ; n != until && n.parent != nil; n = n.parent {
		if n.locks == 0 {
			t.evictable -= len(n.pages)
			t.leaves.remove(n)
		}
		n.locks++
	}
}

// unlock undoes lock.
func (t *Tree) unlock(n, until *node) {
	for n != until && n.parent != nil {
		parent := n.parent
		if n.locks--; n.locks == 0 {
			t.evictable += len(n.pages)
			t.settle(n)
		}
		n = parent
	}
}

// touch marks the nodes from n up as used now.
func (t *Tree) touch(n *node) {
	t.clock++
	for ; n != nil; n = n.parent {
		n.used = t.clock
		t.fix(n)
	}
}
