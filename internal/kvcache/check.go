package kvcache

import (
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Check returns an error if the books do not balance: free + cached + held =
// pool, for pages, rings and snapshots, and nothing twice; and if locks, counts
// or orders are not what they should be. tables are all that hold something. It
// reads the whole of the books, so it is for tests and debug builds.
func (t *Tree) Check(tables ...*Table) error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("prefix cache: "+format, args...)) }
	pages := ledger{"page", &t.pool.pages, map[int32]string{}, fail}
	rings := ledger{"ring", &t.pool.rings, map[int32]string{}, fail}
	snapshots := ledger{"snapshot", &t.snapshots, map[int32]string{}, fail}

	ends := map[*node]int{}
	for i, table := range tables {
		who := fmt.Sprintf("table %d", i)
		pages.enter(who, table.pages[table.shared:]...)
		rings.enter(who, table.ring...)
		if path := table.node.path(); !slices.Equal(path, table.pages[:table.shared]) {
			fail("%s shares pages %v, the tree has %v there", who, table.pages[:table.shared], path)
		}
		if table.node != nil {
			ends[table.node]++
		}
	}
	cached, evictable, leaves := 0, 0, 0
	for n := range t.all() {
		pages.enter("the tree", n.pages...)
		cached += len(n.pages)
		locks := ends[n]
		for _, child := range n.children {
			locks += child.locks
		}
		if n.locks != locks {
			fail("a node of %d pages has %d locks, expected %d", len(n.pages), n.locks, locks)
		}
		if n.locks == 0 {
			evictable += len(n.pages)
		}
		free := n.locks == 0 && len(n.children) == 0
		if free {
			leaves++
		}
		if free != (n.heap != none) || free && t.leaves.nodes[n.heap] != n {
			fail("a node with %d locks and %d children is at %d of the leaves", n.locks, len(n.children), n.heap)
		}
		if n.snapshot != none {
			snapshots.enter("the tree", n.snapshot)
		} else if free && t.ringed() {
			fail("a leaf has no snapshot and no locks")
		}
		if n.snapshot != none != slices.Contains(t.marked, n) {
			fail("a node with snapshot %d is not where snapshots are found", n.snapshot)
		}
		size := len(n.pages) * t.pool.pagePositions
		if size == 0 || len(n.tokens) != size {
			fail("a node has %d pages and %d tokens", len(n.pages), len(n.tokens))
		} else if n.parent.children[key(n.tokens[:t.pool.pagePositions])] != n {
			fail("a node is not found by its tokens")
		}
		if n.used > n.parent.used || n.used > t.clock || n.born > t.clock {
			fail("a node was used at %d, its parent at %d, of %d", n.used, n.parent.used, t.clock)
		}
	}
	for name, root := range t.roots {
		if root.namespace != name || len(root.children) == 0 {
			fail("namespace %q has the root of %q with %d children", name, root.namespace, len(root.children))
		}
	}
	for i, n := range t.leaves.nodes {
		if above := t.leaves.nodes[max(i-1, 0)/2]; t.policy.compare(n, above) < 0 {
			fail("leaf %d comes before leaf %d", i, (i-1)/2)
		}
	}
	if cached != t.pages || evictable != t.evictable || leaves != len(t.leaves.nodes) {
		fail("%d pages, %d evictable, in %d leaves; counted are %d, %d, %d", t.pages, t.evictable, len(t.leaves.nodes), cached, evictable, leaves)
	}
	if len(t.pool.marks) != t.pool.pages.made {
		fail("%d pages have marks, %d were made", len(t.pool.marks), t.pool.pages.made)
	}
	for page, n := range t.pool.marks {
		if n < 0 || int(n) > t.pool.pagePositions {
			fail("page %d has %d positions marked, of %d", page, n, t.pool.pagePositions)
		}
	}
	pages.close()
	rings.close()
	snapshots.close()
	return errors.Join(errs...)
}

// path returns the pages from the root to the end of n.
func (n *node) path() (pages []int32) {
	for ; n != nil; n = n.parent {
		pages = slices.Insert(pages, 0, n.pages...)
	}
	return pages
}

// all yields the nodes but for roots, parents before their children.
func (t *Tree) all() iter.Seq[*node] {
	return func(yield func(*node) bool) {
		var stack []*node
		for _, root := range t.roots {
			stack = append(stack, root)
		}
		for len(stack) > 0 {
			n := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if n.parent != nil && !yield(n) {
				return
			}
			for _, child := range n.children {
				stack = append(stack, child)
			}
		}
	}
}

// A ledger says who has each piece of a memory.
type ledger struct {
	name   string
	memory *memory
	owner  map[int32]string
	fail   func(string, ...any)
}

func (l *ledger) enter(who string, pieces ...int32) {
	for _, piece := range pieces {
		if piece < 0 || int(piece) >= l.memory.made {
			l.fail("%s has %s %d, there are %d", who, l.name, piece, l.memory.made)
		} else if other, taken := l.owner[piece]; taken {
			l.fail("%s %d belongs to %s and to %s", l.name, piece, other, who)
		}
		l.owner[piece] = who
	}
}

// close enters what is free. Then each piece that was made is somebody's.
func (l *ledger) close() {
	l.enter("nobody", l.memory.free...)
	if len(l.owner) != l.memory.made || l.memory.made > l.memory.most {
		l.fail("%d of %d %ss are accounted for, %d may be made", len(l.owner), l.memory.made, l.name, l.memory.most)
	}
}
