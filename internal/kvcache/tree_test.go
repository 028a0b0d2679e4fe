package kvcache

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
)

func TestMatchIsOfWholePages(t *testing.T) {
	w := newWorld(t, plain, 16, 0, 2, TreeOptions{})
	w.keep("abcd")
	abcd := w.spell("abcd")
	almost := slices.Clone(abcd)
	almost[2*w.pool.PageSize()+31] = 'x' // the last of page c
	for _, test := range []struct {
		name, namespace string
		tokens          []int32
		want            int
	}{
		{"all of it", "", abcd, 4},
		{"more than it", "", w.spell("abcdef"), 4},
		{"less than it", "", w.spell("ab"), 2},
		{"a token less", "", abcd[:len(abcd)-1], 3},
		{"a token more", "", abcd[:2*32+1], 2},
		{"less than a page", "", abcd[:31], 0},
		{"nothing", "", nil, 0},
		{"other tokens inside a page", "", almost, 2},
		{"other tokens at once", "", w.spell("bcd"), 0},
		{"another namespace", "other", abcd, 0},
	} {
		if p := w.tree.Match(test.namespace, test.tokens); p.Ready != 32*test.want || p.Known != p.Ready {
			t.Errorf("%s: %d positions ready, %d known, want %d pages", test.name, p.Ready, p.Known, test.want)
		}
	}
	w.check()
}

func TestSplitsAndLocks(t *testing.T) {
	w := newWorld(t, plain, 32, 0, 4, TreeOptions{})
	one, two, three := w.sequences[0], w.sequences[1], w.sequences[2]
	w.begin(one, "abcd")
	w.want("abcd1")
	w.begin(two, "abef") // leaves in the middle: the lock of the first is on both halves
	w.want("ab2(cd1 ef1)")
	w.begin(three, "ab") // ends there
	w.want("ab3(cd1 ef1)")
	w.release(one)
	w.want("ab2(cd ef1)")
	if s := w.tree.Stats(); s != (Stats{Pages: 6, Evictable: 2}) {
		t.Errorf("%+v, want 6 pages, 2 of them evictable", s)
	}
	w.begin(one, "abc")
	w.want("ab3(c1(d) ef1)")
	for _, s := range w.sequences {
		w.read(s)
		w.release(s)
	}
	w.want("ab(c(d) ef)")
	if free := w.pool.Free(); free != 32-6 {
		t.Errorf("%d pages are free, want 26", free)
	}
}

// What one sequence decodes is one node, until somebody else uses a part.
func TestDecodingExtendsANode(t *testing.T) {
	w := newWorld(t, plain, 32, 0, 3, TreeOptions{})
	one, two := w.sequences[0], w.sequences[1]
	w.begin(one, "ab")
	for _, letter := range []string{"c", "d", "e"} {
		if err := w.compute(one, w.spell(letter)...); err != nil {
			t.Fatal(err)
		}
		w.insert(one)
	}
	w.want("abcde1")
	w.begin(two, "abcde")
	if err := w.compute(one, w.spell("f")...); err != nil {
		t.Fatal(err)
	}
	w.insert(one)
	w.want("abcde2(f1)")
	w.tree.Insert(one.table, "", w.spell("ab")) // of a part of what is there nothing is new
	w.want("abcde2(f1)")
	w.read(one)
	w.read(two)
}

// Two sequences compute the same at the same time: one copy is kept, and both
// read it.
func TestDuplicatesAreFreed(t *testing.T) {
	w := newWorld(t, plain, 32, 0, 2, TreeOptions{})
	one, two := w.sequences[0], w.sequences[1]
	for _, s := range w.sequences {
		w.attach(s, "", w.spell("abc"))
		if err := w.compute(s, w.spell("abc")...); err != nil {
			t.Fatal(err)
		}
	}
	w.insert(one)
	if free := w.pool.Free(); free != 26 {
		t.Fatalf("%d pages free, want 26", free)
	}
	w.insert(two)
	if free := w.pool.Free(); free != 29 || !slices.Equal(one.table.pages, two.table.pages) {
		t.Errorf("%d pages free, want 29; %v and %v", free, one.table.pages, two.table.pages)
	}
	w.want("abc2")
	w.read(two)
}

func TestNamespacesShareNothing(t *testing.T) {
	w := newWorld(t, plain, 32, 0, 2, TreeOptions{})
	for i, namespace := range []string{"", "lora"} {
		if n := w.attach(w.sequences[i], namespace, w.spell("ab")); n != 0 {
			t.Fatalf("%d positions of another namespace", n)
		}
		if err := w.compute(w.sequences[i], w.spell("ab")...); err != nil {
			t.Fatal(err)
		}
		w.insert(w.sequences[i])
	}
	w.want("ab1, lora: ab1")
	w.read(w.sequences[0])
	w.read(w.sequences[1])
	w.release(w.sequences[1])
	w.tree.Evict(2)
	w.want("ab1")
}

// Rewinding into shared pages gives them up from there on, and copies the one
// that will be written.
func TestRewindIntoSharedPages(t *testing.T) {
	w := newWorld(t, plain, 8, 0, 3, TreeOptions{})
	one, two := w.sequences[0], w.sequences[1]
	w.begin(one, "abcd")
	w.begin(two, "abcd")
	if err := w.compute(two, run('x', 40)...); err != nil {
		t.Fatal(err)
	}
	if err := w.rewind(two, 70); err != nil { // six tokens of page c
		t.Fatal(err)
	}
	w.want("ab2(cd1)")
	if shared, free := w.pool.Shared(two.table), w.pool.Free(); shared != 64 || free != 3 {
		t.Errorf("%d positions shared, %d pages free, want 64 and 3", shared, free)
	}
	if err := w.compute(two, run('y', 30)...); err != nil {
		t.Fatal(err)
	}
	w.read(one)
	w.read(two)
	if err := w.rewind(two, 64); err != nil {
		t.Fatal(err)
	}
	if err := w.rewind(two, 32); err != nil { // at a page boundary nothing is copied
		t.Fatal(err)
	}
	w.want("a2(b1(cd1))")
	if free := w.pool.Free(); free != 4 {
		t.Errorf("%d pages free, want 4", free)
	}

	if err := w.compute(two, run('z', 128)...); err != nil { // the pool is full
		t.Fatal(err)
	}
	if err := w.rewind(two, 31); err != nil { // but its last page serves
		t.Fatal(err)
	}
	w.read(two)
	w.want("a1(b1(cd1))")
	w.release(two)
	w.begin(two, "a")
	if err := w.compute(one, w.spell("efgh")...); err != nil { // full again
		t.Fatal(err)
	}
	w.insert(one)
	var full *ErrFull
	if err := w.rewind(two, 31); !errors.As(err, &full) || full.Want != 1 {
		t.Fatalf("rewinding without a page to copy to: %v", err)
	}
	w.read(two)
	w.want("a2(b1(cdefgh1))")
	w.release(one)
	if err := w.rewind(two, 31); err != nil { // page h makes room
		t.Fatal(err)
	}
	w.read(two)
	w.want("a(b(cdefg))")
}

// A sequence takes what nobody shares, and only as much as it needs.
func TestGrowEvicts(t *testing.T) {
	w := newWorld(t, plain, 8, 0, 3, TreeOptions{})
	one := w.sequences[0]
	w.keep("abcd")
	w.keep("xy")
	w.begin(one, "ab")
	if err := w.compute(one, w.spell("mno")...); err != nil {
		t.Fatal(err)
	}
	w.want("ab1(c) xy") // d is older than y
	var full *ErrFull
	if err := w.compute(one, w.spell("pqrs")...); !errors.As(err, &full) || *full != (ErrFull{Want: 4, Free: 3, PageSize: 32}) {
		t.Fatalf("growing beyond the pool: %v", err)
	}
	if want := "cache full: 4 more pages of 32 tokens wanted, 3 free"; full.Error() != want {
		t.Errorf("%q, want %q", full, want)
	}
	w.want("ab1(c) xy") // and nothing was evicted for it
	if err := w.compute(one, w.spell("pqr")...); err != nil {
		t.Fatal(err)
	}
	w.want("ab1")
	w.read(one)
	if s := w.tree.Stats(); s != (Stats{Pages: 2, Evicted: 4}) {
		t.Errorf("%+v", s)
	}
}

// Sequences that share their first pages may be more than the pool has pages,
// and so rings.
func TestRingsRunOut(t *testing.T) {
	w := newWorld(t, ringed, 3, 0, 5, TreeOptions{})
	w.keep("ab")
	for i, s := range w.sequences[:4] {
		if n, want := w.attach(s, "", w.spell("ab")), 64; n != want && i < 3 || n != 0 && i == 3 {
			t.Fatalf("sequence %d shares %d positions", i, n)
		}
	}
	if err := w.compute(w.sequences[3], 1); err == nil || err.Error() != "cache full: all 3 rings are taken" {
		t.Errorf("a fourth ring: %v", err)
	}
	w.want("ab*3")
}

func TestNewTreeRefuses(t *testing.T) {
	ring := func(s Store) []LayerSpec { return []LayerSpec{plain[0], {plain[0][0], s}} }
	for _, test := range []struct {
		layers []LayerSpec
		o      TreeOptions
		want   string
	}{
		{ring(Store{Kind: "state", Heads: 1, KeyDim: 1, Private: "it is a sum over all tokens"}), TreeOptions{}, "prefix cache: layer 1: state cannot be shared: it is a sum over all tokens"},
		{ring(Store{Kind: "keys", Heads: 1, KeyDim: 1, Ring: 32}), TreeOptions{}, "layer 1: keys cannot be shared: a ring of 1 positions an entry, expected rows of one"},
		{ring(Store{Kind: "means", Layout: Rows, Heads: 1, KeyDim: 1, Ring: 4, Every: 3}), TreeOptions{}, "layer 1: means cannot be shared: a ring of 3 positions an entry, expected rows of one"},
		{plain, TreeOptions{Snapshots: -1}, "prefix cache: -1 snapshots, expected 0 or more"},
	} {
		if _, err := NewTree(newPool(t, test.layers, tensor.F32, 64), test.o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want %q", err, test.want)
		}
	}
	pool := newPool(t, plain, tensor.F32, 64)
	_, first := NewTree(pool, TreeOptions{})
	if _, err := NewTree(pool, TreeOptions{}); first != nil || err == nil {
		t.Errorf("two trees over a pool: %v, %v", first, err)
	}
}

// Check sees what would go wrong.
func TestCheck(t *testing.T) {
	for name, damage := range map[string]func(w *world){
		"a lock that nobody has":     func(w *world) { w.sequences[0].table.node.locks++ },
		"a lock too few":             func(w *world) { w.sequences[0].table.node.locks-- },
		"a page is lost":             func(w *world) { w.pool.pages.free = w.pool.pages.free[1:] },
		"a page is free and shared":  func(w *world) { w.pool.pages.free[0] = w.sequences[0].table.pages[0] },
		"a page is in two tables":    func(w *world) { w.tables[1].pages = w.tables[0].pages[3:] },
		"pages that do not exist":    func(w *world) { w.tables[1].pages = []int32{-1} },
		"other pages than shared":    func(w *world) { w.tables[0].shared-- },
		"a page count":               func(w *world) { w.tree.pages++ },
		"what can be evicted":        func(w *world) { w.tree.evictable++ },
		"tokens":                     func(w *world) { w.sequences[0].table.node.tokens = run(1, 64) },
		"the order of use":           func(w *world) { w.sequences[0].table.node.used = w.tree.clock + 1 },
		"a leaf that is not listed":  func(w *world) { w.tree.leaves.remove(w.tree.leaves.nodes[0]) },
		"leaves out of order":        func(w *world) { w.tree.leaves.Swap(0, 1) },
		"a ring is lost":             func(w *world) { w.tables[0].ring = nil },
		"a snapshot is lost":         func(w *world) { w.tree.marked[0].snapshot = none },
		"a snapshot is free and not": func(w *world) { w.tree.snapshots.free = []int32{0} },
		"an empty namespace":         func(w *world) { w.tree.root("empty") },
		"a mark beyond its page":     func(w *world) { w.pool.marks[0] = 33 },
		"a page without a mark":      func(w *world) { w.pool.marks = w.pool.marks[1:] },
	} {
		w := newWorld(t, ringed, 16, 0, 3, TreeOptions{})
		w.keep("ax")
		w.keep("ay")
		w.begin(w.sequences[0], "abc")
		if err := w.compute(w.sequences[0], 1); err != nil {
			t.Fatal(err)
		}
		if err := w.compute(w.sequences[1], 1); err != nil {
			t.Fatal(err)
		}
		w.release(w.sequences[1])
		w.check()
		damage(w)
		if err := w.tree.Check(w.tables...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	w := newWorld(t, plain, 64, 0, 2, TreeOptions{})
	for i := range 20 {
		w.keep("abcdef"[:1+i%6] + string(rune('g'+i)))
	}
	tokens := w.spell("abcdefl")
	if n := testing.AllocsPerRun(10, func() { w.tree.Match("", tokens) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A prompt of 8192 tokens is matched in one node, or in 256 of a page each.
func BenchmarkMatch(b *testing.B) {
	for _, every := range []int{256, 1} {
		b.Run(fmt.Sprintf("%d pages a node", every), func(b *testing.B) {
			w := newWorld(b, plain, 300, 0, 1, TreeOptions{})
			tokens := make([]int32, 256*32)
			for i := range tokens {
				tokens[i] = int32(mix(1, uint64(i)) % 100000)
			}
			if err := w.compute(w.sequences[0], tokens...); err != nil {
				b.Fatal(err)
			}
			w.insert(w.sequences[0])
			for n := every; n < 256; n += every {
				w.tree.Match("", tokens[:32*n])
			}
			b.ReportAllocs()
			for b.Loop() {
				if ready := w.tree.Match("", tokens).Ready; ready != len(tokens) {
					b.Fatal(ready)
				}
			}
		})
	}
}

// Paths of prefixes that begin alike end alike.
func TestPath(t *testing.T) {
	w := newWorld(t, plain, 32, 0, 1, TreeOptions{})
	w.keep("abcd")
	w.keep("abef")
	path := func(pages string) []uint64 { return w.tree.Path("", w.spell(pages)) }
	abc := path("abcx") // splits the node of c and d
	ab, cd, ef := path("ab"), path("abcd"), path("abef")
	if len(ab) != 1 || len(cd) != 3 || len(ef) != 2 || len(abc) != 2 {
		t.Fatalf("ab %v, abcd %v, abef %v, abc %v", ab, cd, ef, abc)
	}
	if !slices.Equal(cd[2:], ab) || !slices.Equal(ef[1:], ab) || !slices.Equal(cd[1:], abc) || ef[0] == cd[0] {
		t.Errorf("ab %v, abcd %v, abef %v, abc %v", ab, cd, ef, abc)
	}
	if p := path("xy"); len(p) > 0 {
		t.Errorf("xy, which is not there: %v", p)
	}
}
