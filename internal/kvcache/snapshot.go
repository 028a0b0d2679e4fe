package kvcache

import "slices"

// A snapshot keeps of each ring the entries that the next rows read, so
// without the Slack: whoever starts from it does not rewind before it.

// eachRing calls f with the rings' parts in order, and where a snapshot has
// their entries.
func (p *Pool) eachRing(f func(a *part, offset int)) (bytes int) {
	for i := range p.parts {
		for k := range p.parts[i] {
			if a := &p.parts[i][k]; a.ring {
				f(a, bytes)
				bytes += lines((a.entries - Slack) * a.entry)
			}
		}
	}
	return bytes
}

func (p *Pool) snapshotBytes() int { return p.eachRing(func(*part, int) {}) }

// last yields where the last entries before position end lie in a ring, as at
// most two runs of bytes: one from the ring's start if they go round its end.
func (a *part) last(ring []byte, end int) (first, second []byte) {
	n := min(a.entries-Slack, end)
	from := (end - n) % a.entries
	run := min(n, a.entries-from)
	ring = ring[a.offset:][:a.entries*a.entry]
	return ring[from*a.entry:][:run*a.entry], ring[:(n-run)*a.entry]
}

// snap takes a snapshot of table's rings for the node in which it ends. If
// there are as many as may be, another is dropped.
func (t *Tree) snap(table *Table) {
	if t.snapshots.available() == 0 {
		t.drop()
	}
	n := table.node
	n.snapshot = t.snapshots.take()
	t.marked = append(t.marked, n)
	to, ring, end := t.snapshots.at(n.snapshot), t.pool.rings.at(table.ring[0]), table.shared*t.pool.pagePositions
	t.pool.eachRing(func(a *part, offset int) {
		first, second := a.last(ring, end)
		copy(to[offset+copy(to[offset:], first):], second)
	})
}

// restore fills table's rings from a snapshot that was taken at position end.
func (t *Tree) restore(table *Table, snapshot int32, end int) {
	from, ring := t.snapshots.at(snapshot), t.pool.rings.at(table.ring[0])
	t.pool.eachRing(func(a *part, offset int) {
		first, second := a.last(ring, end)
		copy(second, from[offset+copy(first, from[offset:]):])
	})
}

// drop gives up the snapshot that will be missed least. Those go first that
// decoding and chunked prefill have left behind: on the way to one child's, and
// never attached. Of them the one that is nearest to the one before; else
// the policy decides.
func (t *Tree) drop() {
	link := func(n *node) bool { return n.hits == 0 && len(n.children) == 1 }
	n := slices.MinFunc(t.marked, func(a, b *node) int {
		switch {
		case link(a) != link(b):
			if link(a) {
				return -1
			}
			return 1
		case link(a) && len(a.pages) != len(b.pages):
			return len(a.pages) - len(b.pages)
		}
		return t.policy.compare(a, b)
	})
	before := t.pages
	t.unmark(n)
	t.settle(n)
	t.evicted += uint64(before - t.pages)
}

// unmark frees the snapshot of n, if it has one.
func (t *Tree) unmark(n *node) {
	if n.snapshot != none {
		t.snapshots.put([]int32{n.snapshot})
		t.marked = slices.DeleteFunc(t.marked, func(m *node) bool { return m == n })
		n.snapshot = none
	}
}
