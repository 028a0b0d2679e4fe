package kvcache

import (
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
)

// The words come in this order; a letter is a page. Then pages are evicted one
// at a time.
func TestEvictionOrder(t *testing.T) {
	for _, test := range []struct {
		policy Policy
		words  string
		want   []string // the tree after each eviction
	}{
		// The end of what was used longest ago goes first, a parent when it is a leaf.
		{LRU, "abc abd xy", []string{"ab(c d) xy", "ab(d) xy", "ab xy", "a xy", "xy", "x", ""}},
		{LRU, "abc abd xy abc", []string{"ab(c d) xy", "ab(c) xy", "ab(c) x", "ab(c)", "ab", "a", ""}},
		// xy is attached twice, ab by abd and abd, d once.
		{LFU, "xy xy xy abc abd abd", []string{"ab(c d) xy", "ab(d) xy", "ab xy", "ab x", "ab", "a", ""}},
		// ab, once attached as a part of abcd, has been attached three times.
		{LFU, "abcd abcd abcd abx pq pq pq", []string{"ab(cd x) pq", "ab(cd) pq", "ab(c) pq", "ab pq", "ab p", "ab", "a", ""}},
		// Use does not matter, only who came first; ab came with c.
		{FIFO, "abc xy abd abc abc", []string{"ab(c d) xy", "ab(d) xy", "ab(d) x", "ab(d)", "ab", "a", ""}},
	} {
		w := newWorld(t, plain, 16, 0, 1, TreeOptions{Policy: test.policy})
		for word := range strings.FieldsSeq(test.words) {
			w.keep(word)
		}
		for i, want := range test.want {
			if got := w.shape(); got != want {
				t.Errorf("%v, %s: after %d pages the tree is %q, want %q", test.policy, test.words, i, got, want)
			}
			w.tree.Evict(1)
		}
	}
}

// What is locked stays, and the way to it.
func TestLockedIsNotEvicted(t *testing.T) {
	w := newWorld(t, plain, 16, 0, 2, TreeOptions{})
	w.begin(w.sequences[0], "abc")
	w.keep("abd")
	w.keep("xyz")
	if freed := w.tree.Evict(2); freed != 2 {
		t.Errorf("%d pages freed, want 2", freed)
	}
	w.want("ab1(c1) xy")
	if freed := w.tree.Evict(100); freed != 2 {
		t.Errorf("%d pages freed, want 2", freed)
	}
	w.want("ab1(c1)")
	w.read(w.sequences[0])
	w.release(w.sequences[0])
	w.tree.Evict(100)
	w.want("")
	if s := w.tree.Stats(); s != (Stats{Evicted: 7}) {
		t.Errorf("%+v", s)
	}
}

// Match counts as use: what waiting requests want is not evicted for others.
func TestMatchIsUse(t *testing.T) {
	w := newWorld(t, plain, 16, 0, 1, TreeOptions{})
	w.keep("abc")
	w.keep("x")
	w.tree.Match("", w.spell("ab"))
	w.want("ab(c) x")
	w.tree.Evict(2)
	w.want("ab")
	w.keep("x")
	w.tree.Match("", w.spell("ab"))
	w.tree.Evict(1)
	w.want("ab")
}

func TestPolicyText(t *testing.T) {
	for _, p := range []Policy{LRU, LFU, FIFO} {
		var got Policy
		if err := got.UnmarshalText([]byte(p.String())); err != nil || got != p {
			t.Errorf("%v reads as %v, %v", p, got, err)
		}
	}
	var p Policy
	if err := p.UnmarshalText([]byte("mru")); err == nil || err.Error() != `eviction policy "mru": expected lru, lfu or fifo` {
		t.Errorf("mru: %v", err)
	}
}

func TestBudget(t *testing.T) {
	// A page of mixed has 128·1249 bytes, less the rounding of 1248.75 and more for
	// whole cache lines.
	pool := newPool(t, mixed, tensor.F32, 128)
	page, rings := int64(pool.pages.bytes), int64(pool.rings.bytes)
	if want := int64(128*1248.75 + 1); page < want || page > want+64 {
		t.Errorf("a page takes %d bytes, want about %d", page, want)
	}
	if want := int64(20*128 + 8*48); int64(pool.snapshotBytes()) != want { // no slack
		t.Errorf("a snapshot takes %d bytes, want %d", pool.snapshotBytes(), want)
	}
	least := page + 4*rings + 2*int64(pool.snapshotBytes())
	for _, test := range []struct {
		bytes    int64
		pageSize int
		tokens   int
	}{
		{least, 0, 128},
		{least + page - 1, 0, 128},
		{least + page, 0, 256},
		{least + page, 256, 256},
		{least + 99*page, 0, 100 * 128},
		{least - 1, 0, 0},
		{least, 256, 0},
		{-1, 0, 0},
	} {
		got, err := Budget{Bytes: test.bytes, Sequences: 4, Snapshots: 2}.Tokens(mixed, tensor.F32, test.pageSize)
		if got != test.tokens || (err == nil) != (got > 0) {
			t.Errorf("%d bytes, pages of %d: %d tokens, %v, want %d", test.bytes, test.pageSize, got, err, test.tokens)
		}
	}
	_, err := Budget{Bytes: 100, Sequences: 3}.Tokens(plain, tensor.F32, 0)
	if want := "cache of 100 bytes: expected at least 256, for a page of 32 tokens (256 bytes), rings of 3 sequences (0) and 32 snapshots of rings (0)"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
