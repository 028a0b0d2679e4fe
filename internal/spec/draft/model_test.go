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

// Of a model that is sure of what comes, confidences are 1, and numbers.
func TestSureDrafts(t *testing.T) {
	sure := testmodel.New(subject(1))
	norm := sure.Tensor("model.norm.weight").Values
	for i := range norm {
		norm[i] *= 1e4
	}
	for form, o := range forms {
		w := newWorld(t, testmodel.New(subject(1)), sure)
		d := w.drafter(o)
		for _, drawn := range []bool{false, true} {
			a := w.ask(w.start(heated(1), text(40, 3), d), 4, 25)
			a.Drawn = drawn
			propose(t, d, a)
			if err := a.Draft.Check(testmodel.Tokens); err != nil || a.Draft.Len() == 0 {
				t.Errorf("%s, drawn %v: %d tokens, %v", form, drawn, a.Draft.Len(), err)
			} else if a.Draft.Peak[0] != 1 || a.Draft.Confidence[0] != 1 {
				t.Errorf("%s, drawn %v: a peak of %v and a confidence of %v, expected 1", form, drawn, a.Draft.Peak[0], a.Draft.Confidence[0])
			}
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
