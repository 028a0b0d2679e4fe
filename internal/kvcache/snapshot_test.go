package kvcache

import (
	"bytes"
	"errors"
	"testing"
)

// Prefixes are shared up to where the rings are known. A chunk that ends where
// a prompt leaves the tree makes that a place to start from.
func TestSnapshotsAtPageBoundaries(t *testing.T) {
	w := newWorld(t, ringed, 32, 0, 3, TreeOptions{})
	s := w.sequences[0]
	w.keep("abcd")
	w.want("abcd*")
	prompt := w.spell("abxy")
	if p := w.tree.Match("", prompt); p.Ready != 0 || p.Known != 64 {
		t.Fatalf("%d ready, %d known, want 0 and 64", p.Ready, p.Known)
	}
	w.attach(s, "", prompt)
	for _, n := range []int{64, 64} {
		if err := w.compute(s, prompt[len(s.tokens):][:n]...); err != nil {
			t.Fatal(err)
		}
		w.insert(s)
	}
	w.want("ab*1(cd* xy*1)")
	if n := w.attach(w.sequences[1], "", w.spell("abz")); n != 64 {
		t.Errorf("%d positions shared, want 64", n)
	}
	w.want("ab*2(cd* xy*1)")
}

// An Insert that comes too late for a snapshot adds nothing, and still frees
// what the tree has.
func TestInsertTooLateForSnapshot(t *testing.T) {
	w := newWorld(t, ringed, 32, 128, 3, TreeOptions{})
	s := w.sequences[0]
	w.keep("a")
	if err := w.compute(s, append(w.spell("ab"), run('x', Slack+1)...)...); err != nil {
		t.Fatal(err)
	}
	w.insert(s)
	w.want("a*1")
	if shared, free := w.pool.Shared(s.table), w.pool.Free(); shared != 128 || free != 32-3 {
		t.Errorf("%d positions shared, %d pages free, want 128 and 29", shared, free)
	}
	w.read(s)
	w.release(s)

	if err := w.compute(s, append(w.spell("ab"), run('x', Slack)...)...); err != nil {
		t.Fatal(err)
	}
	w.insert(s)
	w.want("a*1(b*1)")
	w.read(s)
}

// From a snapshot a sequence does not rewind before it: the ring has nothing
// there.
func TestRewindToSnapshot(t *testing.T) {
	w := newWorld(t, ringed, 32, 0, 2, TreeOptions{})
	s := w.sequences[0]
	w.keep("abcd")
	w.attach(s, "", w.spell("abcd"))
	var gone *ErrRewind
	if err := w.rewind(s, 1); !errors.As(err, &gone) || *gone != (ErrRewind{To: 1, From: 128, Least: 128}) {
		t.Errorf("rewinding before the snapshot: %v", err)
	}
	if err := w.compute(s, run('x', 20)...); err != nil {
		t.Fatal(err)
	}
	if err := w.rewind(s, 127); !errors.As(err, &gone) || *gone != (ErrRewind{To: 127, From: 148, Least: 128}) {
		t.Errorf("rewinding before the snapshot: %v", err)
	}
	if err := w.rewind(s, 128); err != nil {
		t.Fatal(err)
	}
	w.read(s)
	if err := w.rewind(s, 0); err != nil {
		t.Fatal(err)
	}

	// Who computed all of it has what it takes, even below what it shares by now.
	w.begin(s, "mnop")
	if err := w.rewind(s, 128-Slack+1); err != nil {
		t.Fatal(err)
	}
	w.read(s)
	w.want("abcd* mn1(op*)")
}

// With no more snapshots to be had, those go first that decoding has left
// behind, the nearest to the one before them; then the oldest, with its leaf.
func TestSnapshotsAreDropped(t *testing.T) {
	w := newWorld(t, ringed, 32, 0, 2, TreeOptions{Snapshots: 4})
	s := w.sequences[0]
	w.keep("xy")
	w.begin(s, "abc")
	for _, step := range []struct{ letter, want string }{
		{"d", "abc*1(d*1) xy*"},
		{"e", "abc*1(d*1(e*1)) xy*"},
		{"f", "abc*1(d1(e*1(f*1))) xy*"},
		{"g", "abc*1(d1(e1(f*1(g*1)))) xy*"},
	} {
		if err := w.compute(s, w.spell(step.letter)...); err != nil {
			t.Fatal(err)
		}
		w.insert(s)
		w.want(step.want)
	}
	w.release(s)
	w.attach(s, "", w.spell("abcx")) // and so the snapshot of abc is not left behind
	w.release(s)
	w.keep("m")
	w.want("abc*(d(e(f(g*)))) m* xy*")
	w.keep("n")
	w.want("abc*(d(e(f(g*)))) m* n*")
	w.keep("o") // what leads to g is of no use without it
	w.want("abc* m* n* o*")
	if s := w.tree.Stats(); s != (Stats{Pages: 6, Evictable: 6, Snapshots: 4, Evicted: 6}) {
		t.Errorf("%+v", s)
	}
}

// A node goes with its snapshot, however few pages are wanted.
func TestEvictionWithRingsIsOfNodes(t *testing.T) {
	w := newWorld(t, ringed, 32, 0, 2, TreeOptions{})
	w.keep("abcd")
	w.keep("xy")
	if freed := w.tree.Evict(1); freed != 4 {
		t.Errorf("%d pages freed, want 4", freed)
	}
	w.want("xy*")
}

// What was attached, or was exported behind drafts, is exported with what it
// can be rewound to.
func TestExportKeepsLeast(t *testing.T) {
	w := newWorld(t, ringed, 32, 0, 3, TreeOptions{})
	w.keep("ab")
	for name, test := range map[string]struct{ high, tokens, least int }{
		"attached":         {70, 70, 64},
		"far beyond":       {200, 190, 200 - Slack},
		"rewinding begins": {150, 86, 150 - Slack},
	} {
		from, to := w.sequences[0], w.sequences[1]
		w.attach(from, "", w.spell("ab"))
		if err := w.compute(from, run('x', test.high-64)...); err != nil {
			t.Fatal(err)
		}
		if err := w.rewind(from, test.tokens); err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := w.pool.Export(from.table, test.tokens, &file); err != nil {
			t.Fatal(err)
		}
		if _, err := w.pool.Import(to.table, &file); err != nil {
			t.Fatal(err)
		}
		to.namespace, to.tokens = from.namespace, from.tokens
		w.read(to)
		if err := w.rewind(to, test.least-1); err == nil {
			t.Errorf("%s: rewound to %d", name, test.least-1)
		}
		if err := w.rewind(to, test.least); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		w.read(to)
		w.release(from)
		w.release(to)
		w.check()
	}
}
