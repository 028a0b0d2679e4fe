package sched

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// A trie is a paged prefix cache without contents, to run plans against: it
// fails where a plan takes a page that is not there.
type trie struct {
	pages, pageSize int
	free            int
	root            *page
	byNode          map[uint64]*page
	clock, nodes    uint64
	tables          map[uint64]*table
	tokens          func(id uint64) []int32
}

// A page is a node of the trie.
type page struct {
	node     uint64
	parent   *page
	key      string
	children map[string]*page
	holders  int // running sequences below or at it
	used     uint64
}

// A table is the pages of a running sequence: a path in the trie, and pages
// behind it that are the sequence's own.
type table struct {
	path []*page
	own  int
}

func newTrie(pages, pageSize int, tokens func(uint64) []int32) *trie {
	c := &trie{pages: pages, pageSize: pageSize, free: pages, root: &page{children: map[string]*page{}}, byNode: map[uint64]*page{}, tables: map[uint64]*table{}, tokens: tokens}
	return c
}

func (c *trie) key(tokens []int32, i int) string {
	b, _ := binary.Append(nil, binary.LittleEndian, tokens[i*c.pageSize:(i+1)*c.pageSize])
	return string(b)
}

// find is the path of whole pages that the trie has of tokens.
func (c *trie) find(tokens []int32, n int) []*page {
	var path []*page
	at := c.root
	for i := range n / c.pageSize {
		if at = at.children[c.key(tokens, i)]; at == nil {
			break
		}
		path = append(path, at)
	}
	return path
}

func (c *trie) Available() int {
	n := c.free
	for _, p := range c.byNode {
		if p.holders == 0 {
			n++
		}
	}
	return n
}

func (c *trie) Match(id uint64) Match {
	tokens := c.tokens(id)
	path := c.find(tokens, len(tokens)-1)
	m := Match{Tokens: len(path) * c.pageSize}
	for _, p := range path {
		if p.holders == 0 {
			m.Unlocked++
		}
	}
	return m
}

func (c *trie) Path(id uint64) (nodes []uint64) {
	tokens := c.tokens(id)
	for _, p := range slices.Backward(c.find(tokens, len(tokens)-1)) {
		nodes = append(nodes, p.node)
	}
	return nodes
}

func (c *trie) Exclusive(id uint64) int {
	t := c.tables[id]
	n := t.own
	for _, p := range t.path {
		if p.holders == 1 {
			n++
		}
	}
	return n
}

// attach gives a sequence the pages of its match.
func (c *trie) attach(id uint64) int {
	tokens := c.tokens(id)
	t := &table{path: c.find(tokens, len(tokens)-1)}
	for _, p := range t.path {
		p.holders++
	}
	c.tables[id] = t
	return len(t.path) * c.pageSize
}

// grow gives a sequence memory for n tokens; pages are evicted for it, those
// that were not used for longest first and children before their parents.
func (c *trie) grow(id uint64, n int) error {
	t := c.tables[id]
	for ; (len(t.path)+t.own)*c.pageSize < n; t.own++ {
		if c.free == 0 {
			var oldest *page
			for _, p := range c.byNode {
				if p.holders == 0 && len(p.children) == 0 && (oldest == nil || p.used < oldest.used) {
					oldest = p
				}
			}
			if oldest == nil {
				return fmt.Errorf("no page for sequence %d, which has %d and grows to %d tokens", id, len(t.path)+t.own, n)
			}
			delete(oldest.parent.children, oldest.key)
			delete(c.byNode, oldest.node)
			c.free++
		}
		c.free--
	}
	return nil
}

// insert moves a sequence's own whole pages of computed tokens into the trie
// and frees what it holds beyond them.
func (c *trie) insert(id uint64, computed int) {
	t, tokens := c.tables[id], c.tokens(id)
	c.clock++
	for i := len(t.path); i < computed/c.pageSize; i++ {
		at := c.root
		if i > 0 {
			at = t.path[i-1]
		}
		key := c.key(tokens, i)
		p := at.children[key]
		if p == nil {
			c.nodes++
			p = &page{node: c.nodes, parent: at, key: key, children: map[string]*page{}}
			at.children[key] = p
			c.byNode[p.node] = p
		} else {
			c.free++ // another sequence computed it too
		}
		p.holders++
		t.path = append(t.path, p)
		t.own--
	}
	for _, p := range t.path {
		p.used = c.clock
	}
	keep := (computed+c.pageSize-1)/c.pageSize - len(t.path)
	c.free += t.own - keep
	t.own = keep
}

func (c *trie) release(id uint64) {
	t := c.tables[id]
	if t == nil {
		return
	}
	for _, p := range slices.Backward(t.path) {
		p.holders--
	}
	c.free += t.own
	delete(c.tables, id)
}

func (c *trie) check() error {
	own := 0
	for _, t := range c.tables {
		own += t.own
	}
	if c.free+len(c.byNode)+own != c.pages {
		return fmt.Errorf("%d pages free, %d cached and %d held of %d", c.free, len(c.byNode), own, c.pages)
	}
	return nil
}
