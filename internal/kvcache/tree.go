package kvcache

import (
	"errors"
	"fmt"
	"slices"
)

// A Tree keeps the pages of prefixes that have been computed, so that
// sequences which begin with the same tokens share them. Equal prefixes have
// equal bits, whoever computed them; it does not matter whose pages are kept.
//
// It is a radix tree over whole pages: a node is a run of pages with their
// tokens, and its children differ in their first page. Tokens are compared,
// not hashed. Tables lock the nodes they share; what no table locks can be
// evicted, leaves first.
//
// Where layers keep rings, a prefix is of use only with the rings as they were
// at its end. A snapshot of them is taken at the page boundaries that Insert is
// called at, and only prefixes that end at one can be attached.
type Tree struct {
	pool   *Pool
	policy Policy
	roots  map[string]*node // by namespace; each has children
	leaves leaves           // what can be evicted first

	pages     int // in all nodes
	evictable int // in nodes without locks
	evicted   uint64
	clock     uint64 // ticks with every walk
	ids       uint64 // of nodes

	snapshots memory
	marked    []*node // those with snapshots
}

// TreeOptions say what a Tree keeps. The zero value is a good choice.
type TreeOptions struct {
	Policy    Policy
	Snapshots int // most snapshots of rings; 0: DefaultSnapshots
}

// DefaultSnapshots is how many snapshots of rings a Tree keeps.
const DefaultSnapshots = 32

// NewTree puts a tree over p, which has none. It fails where a layer keeps
// what cannot be shared.
func NewTree(p *Pool, o TreeOptions) (*Tree, error) {
	if p.tree != nil {
		return nil, errors.New("prefix cache: the pool has one already")
	}
	if o.Snapshots < 0 {
		return nil, fmt.Errorf("prefix cache: %d snapshots, expected 0 or more", o.Snapshots)
	}
	for i, l := range p.layers {
		if err := l.Shareable(); err != nil {
			return nil, fmt.Errorf("prefix cache: layer %d: %w", i, err)
		}
	}
	t := &Tree{pool: p, policy: o.Policy, roots: map[string]*node{}, leaves: leaves{policy: o.Policy}}
	t.snapshots = memory{bytes: p.snapshotBytes(), most: o.Snapshots}
	if o.Snapshots == 0 {
		t.snapshots.most = DefaultSnapshots
	}
	p.tree = t
	return t, nil
}

// ringed says whether prefixes need snapshots.
func (t *Tree) ringed() bool { return t.pool.rings.bytes > 0 }

// A Prefix is what the tree has of a sequence's tokens: positions of whole
// pages. Ready and Known differ where layers keep rings and there is no
// snapshot at Known: a prefill chunk that ends there, and an Insert after it,
// make it one.
type Prefix struct {
	Ready    int // that Attach would share
	Unlocked int // pages of these that no table shares: attached, they can no longer be evicted
	Known    int // that are in the tree
}

// Match looks tokens up, which counts as use. At least one token must be left
// to compute: callers leave out the last.
func (t *Tree) Match(namespace string, tokens []int32) Prefix {
	at, ready, known := t.find(namespace, tokens)
	p := Prefix{Ready: ready, Known: known}
	for ; at != nil && at.parent != nil && at.locks == 0; at = at.parent {
		p.Unlocked += len(at.pages)
	}
	return p
}

// Path returns numbers that stand for the nodes of the prefix that Attach would
// share, the last first. Prefixes of different namespaces have none in common.
func (t *Tree) Path(namespace string, tokens []int32) (path []uint64) {
	for at, _, _ := t.find(namespace, tokens); at != nil && at.parent != nil; at = at.parent {
		path = append(path, at.id)
	}
	return path
}

// Exclusive is the number of pages that would be free or evictable if table
// were released.
func (t *Tree) Exclusive(table *Table) int {
	n := len(table.pages) - table.shared
	for at := table.node; at != nil && at.parent != nil && at.locks == 1; at = at.parent {
		n += len(at.pages)
	}
	return n
}

// find walks down as far as tokens lead, splits the node in which they leave
// the tree, and touches the path. at is the last node on it that can be
// attached, nil if there is none.
func (t *Tree) find(namespace string, tokens []int32) (at *node, ready, known int) {
	n := t.roots[namespace]
	if n == nil {
		return nil, 0, 0
	}
	for child := t.next(n, tokens); child != nil; child = t.next(n, tokens) {
		n, known, tokens = child, known+len(child.tokens), tokens[len(child.tokens):]
		if n.snapshot != none || !t.ringed() {
			at, ready = n, known
		}
	}
	t.touch(n)
	return at, ready, known
}

// Attach gives table, which is empty, the longest prefix of tokens that can be
// shared, and returns its positions. They are read, never written: the next row
// is at the position that is returned.
func (t *Tree) Attach(table *Table, namespace string, tokens []int32) int {
	if len(table.pages) > 0 || len(table.ring) > 0 {
		panic("kvcache: a prefix is attached to a table that is not empty")
	}
	at, positions, _ := t.find(namespace, tokens)
	if at == nil || t.ringed() && t.pool.rings.available() == 0 {
		return 0
	}
	table.node, table.shared = at, positions/t.pool.pagePositions
	table.high, table.since = positions, positions
	table.pages = slices.Grow(table.pages[:0], table.shared)[:table.shared]
	end := table.shared
	for n := at; n.parent != nil; n = n.parent {
		end -= copy(table.pages[end-len(n.pages):], n.pages)
		n.hits++
		t.fix(n)
	}
	t.lock(at, nil)
	if t.ringed() {
		table.ring = append(table.ring, t.pool.rings.take())
		t.restore(table, at.snapshot, positions)
	}
	return positions
}

// Insert puts what table holds of tokens, all computed and committed, into the
// tree: whole pages, which table from then on shares. Pages that the tree
// has already take the place of the table's own, which are freed. tokens begin
// with what was attached or inserted before.
//
// Where layers keep rings, tokens must end less than a page and at most Slack
// positions beyond a page boundary, or nothing new is kept.
func (t *Tree) Insert(table *Table, namespace string, tokens []int32) {
	page := t.pool.pagePositions
	pages := len(tokens) / page
	if pages > len(table.pages) {
		panic(fmt.Sprintf("kvcache: %d pages are inserted of a table that has %d", pages, len(table.pages)))
	}
	if pages == 0 || pages < table.shared {
		return
	}
	at := table.node
	if at == nil {
		at = t.roots[namespace]
	}
	rest := tokens[table.shared*page : pages*page]
	held, shared := table.node, table.shared
	for at != nil {
		child := t.next(at, rest)
		if child == nil {
			break
		}
		at, rest = child, rest[len(child.tokens):]
		t.pool.pages.put(table.pages[shared:][:len(child.pages)])
		shared += copy(table.pages[shared:], child.pages)
	}
	if shared > 0 {
		t.lock(at, held)
		table.node, table.shared = at, shared
	}
	if pages*page >= table.least() {
		if len(rest) > 0 {
			t.extend(table, namespace, rest)
		}
		if t.ringed() && table.node.snapshot == none {
			t.snap(table)
		}
	}
	if table.node != nil {
		t.touch(table.node)
	}
}

// extend adds the pages of table behind those it shares, of tokens, below them.
func (t *Tree) extend(table *Table, namespace string, tokens []int32) {
	n := len(tokens) / t.pool.pagePositions
	pages := table.pages[table.shared:][:n]
	at := table.node
	if at == nil {
		at = t.root(namespace)
	}
	if at.parent != nil && at.locks == 1 && len(at.children) == 0 && at.snapshot == none {
		// Nobody else needs the place where it ends: decoding makes long nodes.
		at.tokens, at.pages = append(at.tokens, tokens...), append(at.pages, pages...)
	} else {
		child := t.node(node{tokens: slices.Clone(tokens), pages: slices.Clone(pages), locks: 1, born: t.clock})
		at.adopt(child, t.pool.pagePositions)
		at = child
	}
	t.pages += n
	table.node, table.shared = at, table.shared+n
}

// part gives up what table shares from position tokens on. It may write the
// page that the position is in: a copy, unless the position begins it.
func (t *Tree) part(table *Table, tokens int) error {
	p := t.pool
	keep := tokens / p.pagePositions
	var own []int32
	if tokens%p.pagePositions > 0 {
		if len(table.pages) > table.shared { // these go: one may serve
			own = append(own, table.pages[len(table.pages)-1])
			table.pages = table.pages[:len(table.pages)-1]
		} else if err := p.provide(1); err != nil {
			return err
		} else {
			own = append(own, p.take())
		}
		copy(p.pages.at(own[0]), p.pages.at(table.pages[keep]))
		p.marks[own[0]] = p.marks[table.pages[keep]]
	}
	p.pages.put(table.pages[table.shared:])

	at := table.node
	for end := table.shared; end > keep; at = at.parent {
		if end -= len(at.pages); end < keep {
			at = t.split(at, keep-end)
			break
		}
	}
	t.unlock(table.node, at)
	table.pages = append(table.pages[:keep], own...)
	table.node, table.shared = at, keep
	if keep == 0 {
		table.node = nil
	}
	return nil
}
