package kvcache

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// ringed has a ring of less than a page, so that snapshots are taken of parts
// of it.
var ringed = []LayerSpec{
	{{Kind: "window", Layout: Rows, Heads: 1, KeyDim: 3, Ring: 20}, {Kind: "keys", Heads: 1, KeyDim: 5}},
	{{Kind: "inputs", Layout: Rows, Heads: 1, KeyDim: 2, Ring: 70}},
}

// Sequences attach, compute, draft, insert, rewind, end and are evicted in any
// order. After every step the books balance, every sequence reads what it
// should, byte for byte, and the tree has what a map of prefixes has.
func TestTreeAgainstMap(t *testing.T) {
	for _, test := range []struct {
		name            string
		layers          []LayerSpec
		pages, pageSize int
		o               TreeOptions
	}{
		{"plain", plain, 12, 0, TreeOptions{}},
		{"plain, larger pages", plain, 8, 96, TreeOptions{}},
		{"plain, lfu", plain, 9, 0, TreeOptions{Policy: LFU}},
		{"plain, fifo", plain, 9, 0, TreeOptions{Policy: FIFO}},
		{"rings", ringed, 12, 0, TreeOptions{Snapshots: 3}},
		{"rings, larger pages, one snapshot", ringed, 8, 64, TreeOptions{Snapshots: 1}},
		{"all stores", mixed, 6, 0, TreeOptions{Snapshots: 4, Policy: LFU}},
	} {
		t.Run(test.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				w := newWorld(rt, test.layers, test.pages, test.pageSize, 4, test.o)
				m := model{world: w, rapid: rt, used: map[string]int{}, shared: make([]int, 4)}
				rt.Repeat(map[string]func(*rapid.T){
					"attach": m.attach, "compute": m.compute, "draft": m.draft, "insert": m.insert,
					"rewind": m.rewind, "release": m.release, "evict": m.evict, "": m.compare,
				})
				for _, s := range w.sequences {
					w.read(s)
				}
			})
		})
	}
}

// model knows of every prefix in the tree when it was used last. Where there
// are rings, or eviction goes by something else, it follows the tree in what was
// evicted and sees only that it was nobody's.
type model struct {
	*world
	rapid  *rapid.T
	used   map[string]int
	clock  int
	shared []int // pages, by sequence
}

func (m *model) follows() bool { return m.tree.ringed() || m.tree.policy != LRU }

// draw returns n tokens of which few differ.
func (m *model) draw(rt *rapid.T, n int) (tokens []int32) {
	for len(tokens) < n {
		token := rapid.SampledFrom([]int32{1, 1, 1, 1, 2}).Draw(rt, "token")
		tokens = append(tokens, run(token, m.pool.pagePositions/2)...)
	}
	return tokens[:n]
}

func (m *model) sequence(rt *rapid.T) *sequence {
	return m.sequences[rapid.IntRange(0, len(m.sequences)-1).Draw(rt, "sequence")]
}

func (m *model) prefixes(s *sequence, n int) (paths []string) {
	for end := m.pool.pagePositions; end <= n; end += m.pool.pagePositions {
		paths = append(paths, pathOf(s.namespace, s.tokens[:end]))
	}
	return paths
}

// touch returns how many of the pages of tokens are known, and uses them.
func (m *model) touch(s *sequence) (known int) {
	m.clock++
	for _, path := range m.prefixes(s, len(s.tokens)) {
		if _, ok := m.used[path]; !ok {
			break
		}
		m.used[path] = m.clock
		known++
	}
	return known
}

func (m *model) locked() map[string]bool {
	locked := map[string]bool{}
	for i, s := range m.sequences {
		for _, path := range m.prefixes(s, m.shared[i]*m.pool.pagePositions) {
			locked[path] = true
		}
	}
	return locked
}

// evicts so many pages: always a leaf that nobody shares, used longest ago.
func (m *model) evicts(pages int) {
	if m.follows() {
		return
	}
	locked := m.locked()
	for range pages {
		oldest := ""
		for path, used := range m.used {
			leaf := !slices.ContainsFunc(slices.Collect(maps.Keys(m.used)), func(other string) bool {
				return len(other) > len(path) && other[:len(path)] == path
			})
			if leaf && !locked[path] && (oldest == "" || used < m.used[oldest]) {
				oldest = path
			}
		}
		delete(m.used, oldest)
	}
}

func (m *model) attach(rt *rapid.T) {
	s := m.sequence(rt)
	if len(s.tokens) > 0 {
		m.release(rt)
		return
	}
	want := &sequence{namespace: rapid.SampledFrom([]string{"", "other"}).Draw(rt, "namespace")}
	want.tokens = m.draw(rt, rapid.IntRange(1, 5*m.pool.pagePositions).Draw(rt, "prompt"))
	match := m.tree.Match(want.namespace, want.tokens)
	ready, known := match.Ready, match.Known
	if got := m.touch(want) * m.pool.pagePositions; got != known || ready > known || ready < known && !m.tree.ringed() {
		rt.Fatalf("%d ready and %d known, want %d", ready, known, got)
	}
	if rings := m.pool.rings.available(); m.tree.ringed() && rings == 0 {
		ready, match.Unlocked = 0, 0
	}
	evictable := m.tree.evictable
	if n := m.world.attach(s, want.namespace, want.tokens); n != ready || evictable-m.tree.evictable != match.Unlocked {
		rt.Fatalf("%d attached, %d ready; of %d evictable pages %d are left, %d were unlocked", n, ready, evictable, m.tree.evictable, match.Unlocked)
	}
	m.touch(want)
	m.shared[s.number] = ready / m.pool.pagePositions
}

// grow computes tokens, or fails as it should.
func (m *model) grow(rt *rapid.T, s *sequence, tokens []int32) bool {
	want := m.pool.pagesFor(len(s.tokens)+len(tokens)) - len(s.table.pages)
	short := want - m.pool.Free()
	evictable := 0
	for path := range m.used {
		if !m.locked()[path] {
			evictable++
		}
	}
	ring := !m.tree.ringed() || len(s.table.ring) > 0 || m.pool.rings.available() > 0
	err := m.world.compute(s, tokens...)
	if full := (*ErrFull)(nil); errors.As(err, &full) {
		if ring && short <= evictable {
			rt.Fatalf("%v: but %d pages can be evicted", err, evictable)
		}
		return false
	} else if err != nil || short > evictable || !ring {
		rt.Fatalf("%d pages wanted, %d evictable: %v", short, evictable, err)
	}
	m.evicts(max(short, 0))
	return true
}

func (m *model) compute(rt *rapid.T) {
	m.grow(rt, m.sequence(rt), m.draw(rt, rapid.IntRange(1, 2*m.pool.pagePositions).Draw(rt, "chunk")))
}

// draft writes tokens that are rejected.
func (m *model) draft(rt *rapid.T) {
	s := m.sequence(rt)
	n := len(s.tokens)
	if n > 0 && m.grow(rt, s, run(9, rapid.IntRange(1, Slack).Draw(rt, "drafts"))) {
		if err := m.world.rewind(s, n); err != nil && !m.tree.ringed() {
			rt.Fatal(err)
		} else if err != nil { // drafts before this had gone further
			m.drop(s)
		}
	}
}

func (m *model) insert(rt *rapid.T) {
	s := m.sequence(rt)
	if len(s.tokens) == 0 {
		return
	}
	m.world.insert(s)
	n := m.touch(s)
	pages := len(s.tokens) / m.pool.pagePositions
	if pages*m.pool.pagePositions >= s.table.least() {
		for _, path := range m.prefixes(s, len(s.tokens)) {
			m.used[path] = m.clock
		}
		n = pages
		if p := m.tree.Match(s.namespace, s.tokens); p.Ready != p.Known || p.Ready/m.pool.pagePositions != n {
			rt.Fatalf("%d pages inserted, %d positions are ready of %d", n, p.Ready, p.Known)
		}
		m.touch(s)
	}
	if m.shared[s.number] < n {
		m.shared[s.number] = n
	}
}

func (m *model) rewind(rt *rapid.T) {
	s := m.sequence(rt)
	n := rapid.IntRange(0, len(s.tokens)).Draw(rt, "to")
	copies := n < m.pool.Shared(s.table) && n%m.pool.pagePositions > 0 && len(s.table.pages) == s.table.shared && m.pool.Free() == 0
	evictable := m.tree.evictable
	least := s.table.least()
	switch err := m.world.rewind(s, n); {
	case err == nil && (n == 0 || n >= least):
		if copies {
			m.evicts(1)
		}
		m.shared[s.number] = min(m.shared[s.number], n/m.pool.pagePositions)
	case errors.As(err, new(*ErrRewind)) && n > 0 && n < least:
	case errors.As(err, new(*ErrFull)) && copies && evictable == 0:
	default:
		rt.Fatalf("rewinding to %d, least %d: %v", n, least, err)
	}
	m.world.read(s)
}

func (m *model) release(rt *rapid.T) { m.drop(m.sequence(rt)) }

func (m *model) drop(s *sequence) {
	available := func() int { return m.pool.Free() + m.tree.evictable }
	want := available() + m.tree.Exclusive(s.table)
	m.world.release(s)
	// What cannot be attached for want of a snapshot is freed, not kept.
	if got := available(); got != want {
		panic(fmt.Sprintf("%d pages are available after a release, expected %d", got, want))
	}
	m.shared[s.number] = 0
}

func (m *model) evict(rt *rapid.T) {
	n := rapid.IntRange(1, 4).Draw(rt, "pages")
	evictable := m.tree.evictable
	freed := m.tree.Evict(n)
	if freed < min(n, evictable) || freed > n && !m.tree.ringed() {
		rt.Fatalf("%d pages evicted of %d, want %d", freed, evictable, n)
	}
	m.evicts(freed)
}

func (m *model) compare(rt *rapid.T) {
	m.check()
	paths, locked := m.paths(), m.locked()
	for path := range m.used {
		if paths[path] {
			continue
		}
		if !m.follows() || locked[path] {
			rt.Fatalf("a prefix of %d bytes is gone", len(path))
		}
		delete(m.used, path)
	}
	for path := range paths {
		if _, ok := m.used[path]; !ok {
			rt.Fatal(fmt.Sprintf("a prefix of %d bytes should be gone", len(path)))
		}
	}
	for i, s := range m.sequences {
		if s.table.shared != m.shared[i] {
			rt.Fatalf("sequence %d shares %d pages, want %d", i, s.table.shared, m.shared[i])
		}
		m.read(s)
	}
}
