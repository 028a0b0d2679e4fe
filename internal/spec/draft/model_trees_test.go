package draft

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/spec"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// A dynamic tree of few nodes is as deep as it may be.
func TestDynamicIsDeep(t *testing.T) {
	w := others(t)
	d := w.drafter(ModelOptions{TopK: 3})
	s := w.start(greedy(), text(40, 1), d)
	passes := 0
	a := w.ask(s, 4, 3)
	if err := d.Propose([]Ask{a}, func(int) bool { passes++; return true }); err != nil || passes != 4 || a.Draft.Len() != 3 {
		t.Errorf("%v: %d nodes by %d passes, expected 3 by 4", err, a.Draft.Len(), passes)
	}
}

// Every node of a tree is what a lone sequence that went its way would draft.
func TestTreesAreChains(t *testing.T) {
	for form, o := range forms {
		w := others(t)
		d := w.drafter(o)
		s := w.start(greedy(), text(50, 9), d)
		draft := w.propose(d, s, 4, 20)
		if draft.Len() < 4 || form != "chain" && draft.Len() < 12 {
			t.Errorf("%s: drafted %v", form, draft.Tokens)
		}
		for node := range draft.Tokens {
			path := slices.Clone(s.Tokens)
			var up []int32
			for n := draft.Parent(node); n >= 0; n = draft.Parent(n) {
				up = append(up, draft.Tokens[n])
			}
			slices.Reverse(up)
			logits := w.logits(append(path, up...))
			peak, p := 0.0, 0.0
			sum, vocab := 0.0, 0.0
			high := slices.Max(logits)
			for i, v := range logits {
				e := math.Exp(float64(v - high))
				if sum += e; i < testmodel.Tokens {
					vocab += e
				}
			}
			peak, p = 1/sum, math.Exp(float64(logits[draft.Tokens[node]]-high))/vocab
			if form == "chain" || form == "static" && only(draft, node) {
				p = peak
			}
			if math.Abs(draft.Peak[node]-peak) > 1e-5 || math.Abs(draft.Confidence[node]-p) > 1e-3 {
				t.Errorf("%s, node %d: peak %v and confidence %v, expected %v and %v", form, node, draft.Peak[node], draft.Confidence[node], peak, p)
			}
		}
	}
}

// only reports whether a node has no siblings.
func only(d *spec.Draft, node int) bool {
	n := 0
	for i := range d.Tokens {
		if d.Parent(i) == d.Parent(node) {
			n++
		}
	}
	return n == 1
}

// Drafts that are to be verified by rejection are drawn from the distributions
// that they say, by noise of the round and the depth; those of trees that are
// chosen say that they are.
func TestDrawn(t *testing.T) {
	p := heated(4)
	p.Temperature, p.TopK = 0.8, 40
	for form, o := range forms {
		w := others(t)
		d := w.drafter(o)
		s := w.start(p, text(50, 9), d)
		a := w.ask(s, 4, 25)
		a.Drawn = true
		for range 25 { // memory that was used
			a.Draft.Q = append(a.Draft.Q, spec.Row{W: []float64{1}, Total: 1})
		}
		propose(t, d, a)
		draft := a.Draft
		if form == "dynamic" {
			if len(draft.Q) > 0 {
				t.Errorf("dynamic: %d distributions of tokens that were chosen", len(draft.Q))
			}
			continue
		}
		depths := append([]int32{0}, draft.Depths(nil)...)
		var rest spec.Row
		for row := range draft.Len() + 1 {
			var children, up []int32
			for node := range draft.Tokens {
				if draft.Parent(node) == row-1 {
					peak := draft.Peak[node]
					if c := peak * math.Pow(1-peak, float64(len(children))); math.Abs(draft.Confidence[node]-c) > 1e-6 {
						t.Errorf("%s, node %d, sibling %d: confidence %v with a peak of %v, expected %v", form, node, len(children), draft.Confidence[node], peak, c)
					}
					children = append(children, draft.Tokens[node])
				}
			}
			if len(children) == 0 {
				if row < len(draft.Q) && draft.Q[row].Total != 0 {
					t.Errorf("%s, row %d has no children and a distribution", form, row)
				}
				continue
			}
			for n := row - 1; n >= 0; n = draft.Parent(n) {
				up = append(up, draft.Tokens[n])
			}
			slices.Reverse(up)
			at := s.Row
			at.Position, at.Generated = at.Position+int(depths[row]), at.Generated+int(depths[row])
			dist, err := w.sampler.Dist(w.logits(append(slices.Clone(s.Tokens), up...)), &at)
			if err != nil {
				t.Fatal(err)
			}
			var q spec.Row
			q.Set(dist)
			if diff := cmp.Diff(q, draft.Q[row], exactly); diff != "" {
				t.Errorf("%s, row %d:\n%s", form, row, diff)
			}
			want := spec.Siblings(nil, q, len(children), spec.DraftNoise(s.Row.Key(), int(depths[row])+1), &rest)
			if !slices.Equal(children, want) {
				t.Errorf("%s, row %d: children %v, expected %v", form, row, children, want)
			}
		}
	}
}
