package draft

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/spec"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// forms are the forms of drafts.
var forms = map[string]ModelOptions{"chain": {}, "dynamic": {TopK: 3}, "static": {Template: spec.Eagle1}}

// A draft model that is the target drafts what the target takes: at temperature
// 0 and, by the noise that both are drawn with, at any other, with every
// parameter in force at every position.
func TestTwinIsAccepted(t *testing.T) {
	penalized := heated(3)
	penalized.Temperature, penalized.TopP, penalized.RepetitionPenalty, penalized.FrequencyPenalty = 0.7, 0.9, 1.3, 1.5
	penalized.MinTokens, penalized.LogitBias, penalized.StopIDs = 12, map[int32]float32{5: 3}, []int32{7, 8, 9}
	penalized.LogProbs = 2
	repeated := greedy()
	repeated.RepetitionPenalty, repeated.PresencePenalty = 1.5, 2
	for name, p := range map[string]sample.Params{"greedy": greedy(), "temperature 1": heated(1), "penalized": penalized, "greedy, penalized": repeated} {
		for form, o := range forms {
			t.Run(name+"/"+form, func(t *testing.T) {
				w := twins(t)
				d := w.drafter(o)
				alone := w.start(p, text(70, 1), nil)
				s := w.start(p, text(70, 1), d)
				accepted, drafted := 0, 0
				for range 8 {
					draft := w.propose(d, s, 5, 25)
					longest := int(slices.Max(draft.Depths([]int32{0})))
					n := w.verify(s, draft, d)
					if form != "dynamic" && (n != longest || n == 0) {
						t.Errorf("%d of %d tokens were accepted", n, longest)
					}
					accepted, drafted = accepted+n, drafted+longest
				}
				if form == "dynamic" && p.Greedy() && accepted < drafted/2 {
					t.Errorf("%d of %d levels were accepted", accepted, drafted)
				}
				for len(alone.Tokens) < len(s.Tokens) {
					w.next(alone, w.compute(alone, 1))
				}
				if !slices.Equal(alone.Tokens, s.Tokens) {
					t.Errorf("the text is %v, without drafts %v", s.Tokens, alone.Tokens)
				}
			})
		}
	}
}

var exactly = cmp.Options{cmpopts.IgnoreUnexported(spec.Row{}), cmpopts.EquateEmpty()}

// others is a world in which the draft model is another than the target.
func others(t *testing.T) *world {
	return newWorld(t, testmodel.New(subject(1)), testmodel.New(subject(2)))
}

// A sequence's draft does not depend on who else drafts.
func TestBatchIsAlone(t *testing.T) {
	for form, o := range forms {
		t.Run(form, func(t *testing.T) {
			w := others(t)
			var asks []Ask
			for i, p := range []sample.Params{greedy(), heated(1), heated(2), heated(3)} {
				a := w.ask(w.start(p, text(20+30*i, int32(i)), nil), 2+i, 4+5*i)
				a.Drawn = i == 2
				asks = append(asks, a)
			}
			o.CatchUp = 1000
			d, lone := w.drafter(o), w.drafter(o)
			propose(t, d, asks...)
			for i, a := range asks {
				p := *a.Row.Params
				s := w.start(p, text(20+30*i, int32(i)), nil)
				b := w.ask(s, a.Depth, a.Nodes)
				b.Drawn = a.Drawn
				propose(t, lone, b)
				if a.Draft.Len() < 2 {
					t.Errorf("sequence %d: drafted %v", i, a.Draft.Tokens)
				}
				if diff := cmp.Diff(b.Draft, a.Draft, exactly); diff != "" {
					t.Errorf("sequence %d: alone and in a batch:\n%s", i, diff)
				}
			}
		})
	}
}

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

// The least number of tokens holds at every position: the end is drafted where
// it may come, and not before.
func TestMinTokensOfDrafts(t *testing.T) {
	p := greedy()
	p.MinTokens, p.StopIDs, p.LogitBias = 4, []int32{7}, map[int32]float32{7: 100}
	for form, o := range forms {
		w := others(t)
		d := w.drafter(o)
		s := w.start(p, text(40, 1), d)
		draft := w.propose(d, s, 6, 25)
		depths := draft.Depths(nil)
		ends := 0
		for node, token := range draft.Tokens {
			if token != 7 {
				continue
			}
			if ends++; depths[node] < 4 {
				t.Errorf("%s: the end is drafted at depth %d, expected 4: one token was generated", form, depths[node])
			}
		}
		if ends == 0 {
			t.Errorf("%s: the end is not drafted", form)
		}
	}
}

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

// A model whose numbers are not finite drafts nothing for whom they concern.
func TestNonFiniteDrafts(t *testing.T) {
	const bad = 200
	spoilt := subject(2)
	m := testmodel.New(spoilt)
	m.Tensor("model.embed_tokens.weight").Values[bad*m.Hidden] = float32(math.NaN())
	for form, o := range forms {
		w := newWorld(t, testmodel.New(subject(1)), m)
		d := w.drafter(o)
		good := slices.DeleteFunc(text(40, 1), func(token int32) bool { return token == bad })
		asks := []Ask{w.ask(w.start(greedy(), append(slices.Clone(good), bad), d), 3, 8), w.ask(w.start(heated(1), good, d), 3, 8)}
		propose(t, d, asks...)
		if asks[0].Draft.Len() > 0 || asks[1].Draft.Len() < 3 {
			t.Errorf("%s: drafted %v after NaN, and %v", form, asks[0].Draft.Tokens, asks[1].Draft.Tokens)
		}
	}
}

// What may not be drafted is not: a pass that does not pay, what comes behind an
// end, tokens that a request forbids, and more than there is memory for.
func TestBounds(t *testing.T) {
	for form, o := range forms {
		w := others(t)
		d := w.drafter(o)
		s := w.start(greedy(), text(40, 3), d)
		whole := w.propose(d, s, 5, 25)

		var asked []int
		a := w.ask(s, 5, 25)
		stop := func(depth int) bool {
			deepest := slices.Max(a.Draft.Depths([]int32{0}))
			if int(deepest) != depth-1 {
				t.Errorf("%s: asked for depth %d when the draft has %d", form, depth, deepest)
			}
			asked = append(asked, depth)
			return depth < 3
		}
		if err := d.Propose([]Ask{a}, stop); err != nil || !slices.Equal(asked, []int{1, 2, 3}) {
			t.Errorf("%s: %v, asked for depths %v", form, err, asked)
		}

		propose(t, d, w.ask(s, 5, 3))
		s.Row.EOG = []int32{whole.Tokens[0]}
		for node, draft := 0, w.propose(d, s, 5, 25); node < draft.Len(); node++ {
			if p := draft.Parent(node); p >= 0 && draft.Tokens[p] == whole.Tokens[0] {
				t.Errorf("%s: %v, parents %v: something follows the end", form, draft.Tokens, draft.Parents)
			}
		}
		s.Row.EOG = nil

		s.Row.Allowed = []uint64{1 << 5}
		if draft := w.propose(d, s, 2, 4); draft.Tokens[0] != 5 || draft.Len() < 2 || draft.Tokens[1] == 5 {
			t.Errorf("%s: drafted %v where 5 alone may come first", form, draft.Tokens)
		}
		s.Row.Allowed = []uint64{0}
		if draft := w.propose(d, s, 2, 4); draft.Len() > 0 {
			t.Errorf("%s: drafted %v where nothing may come", form, draft.Tokens)
		}
		s.Row.Allowed = nil

		if err := w.cache.Rewind(s.Table, s.computed); err != nil {
			t.Fatal(err)
		}
		a = Ask{Sequence: &s.Sequence, Depth: 60, Nodes: 60, Draft: new(spec.Draft)}
		propose(t, d, a) // no more memory than the last page has
	}
}

// A self-drafter reads and writes the target's own keys and values: the text is
// the same, and with all of the target's layers and bits all is accepted.
func TestSelfDrafters(t *testing.T) {
	m := testmodel.New(subject(1))
	for name, tc := range map[string]struct {
		model func(w *world) model.Model
		twin  bool
	}{
		"all layers": {func(w *world) model.Model { return w.subset(0, 1) }, true},
		"a layer":    {func(w *world) model.Model { return w.subset(1) }, false},
		"q4_0":       {func(w *world) model.Model { return w.load(m, quantizer) }, false},
	} {
		for form, o := range forms {
			w := newWorld(t, m, m)
			o.Model, o.Shared = tc.model(w), true
			d := w.drafter(o)
			alone, s := w.start(greedy(), text(70, 1), nil), w.start(greedy(), text(70, 1), d)
			accepted := 0
			for range 8 {
				draft := w.propose(d, s, 5, 25)
				if draft.Len() < 5 {
					t.Errorf("%s, %s: drafted %v", name, form, draft.Tokens)
				}
				accepted += w.verify(s, draft, d)
			}
			if tc.twin && form != "dynamic" && accepted != 40 {
				t.Errorf("%s, %s: %d of 40 tokens were accepted", name, form, accepted)
			}
			for len(alone.Tokens) < len(s.Tokens) {
				w.next(alone, w.compute(alone, 1))
			}
			if !slices.Equal(alone.Tokens, s.Tokens) {
				t.Errorf("%s, %s: the text is %v, without drafts %v", name, form, s.Tokens, alone.Tokens)
			}
			if n := w.cache.Marked(s.Table); n > 0 {
				t.Errorf("%s, %s: %d positions are marked as a draft model's", name, form, n)
			}
		}
	}
}

var quantizer = kernel.Packer{Quantize: tensor.Q4_0, Again: true}

// subset is some layers of the target.
func (w *world) subset(layers ...int) model.Model {
	w.Helper()
	m, err := model.Subset(w.target, layers)
	if err != nil {
		w.Fatal(err)
	}
	return m
}

// Models that cannot draft so are refused.
func TestNewModelRefuses(t *testing.T) {
	w := twins(t)
	for want, o := range map[string]ModelOptions{
		"the draft model keeps rings": {Model: w.load(testmodel.New(testmodel.Family("deepseek_v4")), kernel.Packer{})},
		"takes drafts as chains":      {Model: w.load(testmodel.New(testmodel.Family("deepseek_v3")), kernel.Packer{}), TopK: 2},
	} {
		if _, err := NewModel(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q in it", err, want)
		}
	}
}

// An error of the model ends the proposal.
func TestModelFails(t *testing.T) {
	w := twins(t)
	d := w.drafter(ModelOptions{})
	s := w.start(greedy(), text(20, 1), d)
	s.Tokens[len(s.Tokens)-1] = int32(testmodel.Vocab) + 1
	err := d.Propose([]Ask{w.ask(s, 2, 2)}, nil)
	if err == nil || !strings.Contains(err.Error(), "draft model: token 301 is outside the vocabulary") || errors.Unwrap(err) == nil {
		t.Errorf("error %v", err)
	}
}

// Once memory has grown, drafting allocates nothing.
func TestModelAllocatesNothing(t *testing.T) {
	for form, o := range forms {
		w := others(t)
		d := w.drafter(o)
		asks := []Ask{w.ask(w.start(greedy(), text(40, 1), d), 4, 16), w.ask(w.start(heated(1), text(50, 2), d), 4, 16), w.ask(w.start(heated(2), text(30, 3), d), 4, 16)}
		asks[2].Drawn = true
		run := func() {
			if err := d.Propose(asks, nil); err != nil {
				t.Fatal(err)
			}
		}
		run()
		if n := testing.AllocsPerRun(5, run); n > 0 {
			t.Errorf("%s: %v allocations", form, n)
		}
	}
}

// A sequence with a token that the draft model does not have gets no drafts; one
// beside it does, of tokens that both have.
func TestUnknownTokens(t *testing.T) {
	v, err := MapVocab(read(t, unchanged), read(t, func(f map[string]any) { rename(f, think, "<thought>") }), testmodel.Vocab, testmodel.Vocab)
	if err != nil {
		t.Fatal(err)
	}
	w := others(t)
	d := w.drafter(ModelOptions{Vocab: v})
	known := slices.DeleteFunc(text(40, 1), func(token int32) bool { return token == think })
	unknown := slices.Concat(known[:20], []int32{think}, known[20:])
	q := heated(1)
	q.LogitBias = map[int32]float32{think: 100, 3: 90}
	asks := []Ask{w.ask(w.start(greedy(), unknown, d), 3, 3), w.ask(w.start(greedy(), known, d), 3, 3)}
	asks[1].Row.Params = &q
	propose(t, d, asks...)
	if n := w.cache.Marked(asks[0].Table); asks[0].Draft.Len() > 0 || n != 20 {
		t.Errorf("drafted %v behind a token that is not known, %d positions are computed", asks[0].Draft.Tokens, n)
	}
	if !slices.Equal(asks[1].Draft.Tokens, []int32{3, 3, 3}) {
		t.Errorf("drafted %v, expected the likeliest of those that are known", asks[1].Draft.Tokens)
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
