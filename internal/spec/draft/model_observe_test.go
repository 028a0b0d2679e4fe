package draft

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/spec"
)

// A prompt is computed with the target's rows, or in pieces by several
// proposals, or comes with a prefix that others have computed: the drafts are
// the same. Until all is computed there are none.
func TestCatchUp(t *testing.T) {
	w := others(t)
	prompt := text(100, 5)
	first := w.drafter(ModelOptions{})
	s := w.start(greedy(), prompt, first)
	if n := w.cache.Marked(s.Table); n != 100 {
		t.Errorf("%d positions are computed with the target's, expected 100", n)
	}
	want := w.propose(first, s, 4, 4)
	if want.Len() != 4 || w.cache.Marked(s.Table) != 101 {
		t.Fatalf("drafted %v, %d positions are computed", want.Tokens, w.cache.Marked(s.Table))
	}

	pieces := w.drafter(ModelOptions{CatchUp: 30})
	late := w.start(greedy(), prompt, nil)
	beside := w.start(greedy(), prompt[:40], nil)
	for i, computed := range []int{30, 60, 90} {
		asks := []Ask{w.ask(late, 4, 4), w.ask(beside, 4, 4)}
		propose(t, pieces, asks...)
		if n := w.cache.Marked(late.Table); asks[0].Draft.Len() > 0 || n != computed {
			t.Errorf("proposal %d: drafted %v, %d positions are computed, expected %d", i, asks[0].Draft.Tokens, n, computed)
		}
		if n := w.cache.Marked(beside.Table); n > 0 {
			t.Errorf("proposal %d: %d positions are computed of the second, expected none before the first is done", i, n)
		}
	}
	asks := []Ask{w.ask(late, 4, 4), w.ask(beside, 4, 4)}
	propose(t, pieces, asks...)
	if diff := cmp.Diff(want, asks[0].Draft, exactly); diff != "" {
		t.Errorf("in pieces:\n%s", diff)
	}
	if n := w.cache.Marked(beside.Table); n != 19 {
		t.Errorf("%d positions are computed of the second, expected the 19 that were left", n)
	}

	w.tree.Insert(s.Table, "", s.Tokens[:s.computed])
	shared := w.begin(greedy(), prompt)
	if shared.computed != 96 || w.cache.Marked(shared.Table) != 96 {
		t.Fatalf("%d positions are shared, %d computed by the draft model", shared.computed, w.cache.Marked(shared.Table))
	}
	fresh := w.drafter(ModelOptions{CatchUp: 1})
	w.prefill(shared, 16, fresh)
	if diff := cmp.Diff(want, w.propose(fresh, shared, 4, 4), exactly); diff != "" {
		t.Errorf("with the prefix of another sequence:\n%s", diff)
	}
}

// A prompt of which the model lacks the beginning is left for proposals, which
// compute so much at a time.
func TestObserveDoesNotCatchUp(t *testing.T) {
	w := others(t)
	prompt := text(150, 5)
	first := w.start(greedy(), prompt[:100], nil)
	w.tree.Insert(first.Table, "", first.Tokens[:first.computed])
	s := w.start(greedy(), prompt, w.drafter(ModelOptions{}))
	if n := w.cache.Marked(s.Table); n != 0 {
		t.Errorf("%d positions are computed, of 96 that came with a prefix and 54 that came with the target's", n)
	}
}

// Of drafts that were not verified nothing is kept, be they what the target
// then takes: their memory may have been given back.
func TestDraftsThatWereNotVerified(t *testing.T) {
	for form, o := range forms {
		w := twins(t)
		d := w.drafter(o)
		s := w.start(greedy(), text(40, 1), d)
		base := len(s.Tokens)
		w.propose(d, s, 4, 25)
		for range 3 {
			w.verify(s, new(spec.Draft), d)
			if n := w.cache.Marked(s.Table); n != base {
				t.Errorf("%s: %d positions are computed, expected %d", form, n, base)
			}
		}
	}
}

// A page that took the place of one in which drafts were computed does not have
// them, though it is marked as far.
func TestDraftsInSwappedPages(t *testing.T) {
	w := twins(t)
	d := w.drafter(ModelOptions{})
	one, two := w.start(greedy(), text(60, 1), d), w.start(greedy(), text(60, 1), d)
	short, long := w.propose(d, one, 1, 1), w.propose(d, two, 5, 5)
	w.verify(one, short, d)
	if n := w.verify(two, long, nil); n != 5 {
		t.Fatalf("%d of 5 tokens were accepted", n)
	}
	for len(one.Tokens) < len(two.Tokens) {
		w.next(one, w.compute(one, 1))
	}
	for _, s := range []*running{one, two} {
		w.tree.Insert(s.Table, "", s.Tokens[:s.computed])
	}
	w.observe(d, two, 60)
	if n := w.cache.Marked(two.Table); n != 61 {
		t.Errorf("%d positions are computed, expected 61: the anchor's", n)
	}
}

// Pages that take the place of the sequence's own may lack what was computed.
func TestPagesAreSwapped(t *testing.T) {
	w := others(t)
	d := w.drafter(ModelOptions{CatchUp: 1000})
	prompt := text(95, 6)
	one, two := w.start(greedy(), prompt, nil), w.start(greedy(), prompt, d)
	var want, got []*spec.Draft
	for range 8 {
		draft := w.propose(d, two, 4, 4)
		want = append(want, draft)
		w.verify(two, draft, d)
	}
	w.cache.Release(two.Table)
	d.Forget(two.ID)
	two = w.start(greedy(), prompt, d)
	for i := range 8 {
		draft := w.propose(d, two, 4, 4)
		got = append(got, draft)
		w.verify(two, draft, nil)
		for len(one.Tokens) < len(two.Tokens) {
			w.next(one, w.compute(one, 1))
		}
		if i == 2 {
			w.tree.Insert(one.Table, "", one.Tokens[:one.computed])
			w.tree.Insert(two.Table, "", two.Tokens[:two.computed])
			if n := w.cache.Marked(two.Table); n != 0 {
				t.Fatalf("%d positions are computed after the swap, expected 0", n)
			}
		}
		if err := d.Observe(w.runner, []Observed{{Sequence: &two.Sequence, From: two.computed}}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got, exactly); diff != "" {
		t.Error(diff)
	}
}

// What was computed of drafts that were accepted is not computed again.
func TestAcceptedRowsAreKept(t *testing.T) {
	for form, o := range forms {
		w := twins(t)
		d := w.drafter(o)
		s := w.start(greedy(), text(40, 1), d)
		for range 3 {
			base := len(s.Tokens)
			n := w.verify(s, w.propose(d, s, 4, 40), d)
			got, want := w.cache.Marked(s.Table), base+min(n, 3)
			if form == "dynamic" { // which may choose nodes that were not computed
				want = min(got, want)
			}
			if got != want || got == base || n == 0 {
				t.Errorf("%s: %d of 4 tokens behind position %d were accepted, and %d positions are computed, expected %d", form, n, base, got, want)
			}
		}
	}
}

// Of sequences that share pages one computes what they lack of it, and the
// others go on when it is done.
func TestSharedPagesAreComputedOnce(t *testing.T) {
	w := others(t)
	prompt := text(100, 5)
	first := w.start(greedy(), prompt, nil)
	w.tree.Insert(first.Table, "", first.Tokens[:first.computed])
	second, third := w.start(heated(1), prompt, nil), w.start(heated(2), slices.Concat(prompt[:64], text(36, 8)), nil)
	d := w.drafter(ModelOptions{CatchUp: 1000})
	for i, want := range [][3]int{{101, 96, 64}, {101, 101, 101}} {
		asks := []Ask{w.ask(first, 4, 4), w.ask(second, 4, 4), w.ask(third, 4, 4)}
		propose(t, d, asks...)
		for k, s := range []*running{first, second, third} {
			if n := w.cache.Marked(s.Table); n != want[k] || (asks[k].Draft.Len() == 4) != (i > 0 || k == 0) {
				t.Errorf("proposal %d, sequence %d: %d positions are computed, expected %d; drafted %v", i, k, n, want[k], asks[k].Draft.Tokens)
			}
		}
	}
}
