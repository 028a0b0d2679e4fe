package adapt

import (
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	"github.com/foretoken/foretoken/internal/spec"
	"github.com/foretoken/foretoken/internal/spec/exact"
)

// The proof that what the controller cuts keeps the law, as package spec's of the
// rules.

// branches are the draws of verification, and of what is drafted.
type branches struct{ *exact.Branches }

// Pick implements spec.Draws.
func (b *branches) Pick(_ int, p spec.Row) int32 { return int32(b.Index(p.W, p.Total)) }

func outcomes(t *testing.T, program func(*branches) []int32) exact.Law {
	t.Helper()
	return exact.Outcomes(t, func(b *exact.Branches) []int32 { return program(&branches{b}) })
}

func hash(of ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, of...)
	return h.Sum64() >> 7
}

// toyRow is a distribution over two tokens after a history.
func toyRow(seed uint64, of byte, request int, h []int32) spec.Row {
	one := float64(hash(seed, of, request, h) % 5)
	return spec.Row{W: []float64{one, 4 - one}, Total: 4}
}

// A stage is what of a round the drafts go through without their distributions,
// as if they had been chosen.
type stage struct{ more, admit bool }

// A setting is what a batch of two requests is drafted by.
type setting struct {
	seed       uint64 // of the models
	times      [8]time.Duration
	pass       float64                                   // of a drafter, in steps
	confidence func(request int, tokens []int32) float64 // of the token after these
	async      bool
	block      bool // verified as blocks, else token by token
}

func randomSetting(seed uint64) setting {
	s := setting{seed: seed, pass: 0.005 + 0.01*float64(hash(seed, "pass")%10)}
	total := time.Second
	for i := range s.times {
		s.times[i] = total
		total += []time.Duration{0, 100, 1000}[hash(seed, "time", i)%3] * ms
	}
	s.confidence = func(request int, tokens []int32) float64 {
		return float64(hash(seed, 'c', request, tokens)%11) / 10
	}
	return s
}

// round is the law of two requests together: what they draft is drawn from a
// model, as deep as the controller says, cut and verified.
func round(t *testing.T, set setting, blind stage) exact.Law {
	const depth, tokens = 3, 3
	seed := set.seed
	steps, err := NewSteps([]int{1, 2, 3, 4, 5, 6, 7, 8}, set.times[:])
	if err != nil {
		t.Fatal(err)
	}
	return outcomes(t, func(b *branches) (text []int32) {
		c := New(Config{Arms: []Arm{{Depth: depth}}, Async: set.async, Steps: steps})
		c.arms[0].passes = steps.unmeasured(set.pass)
		c.budgets, c.known = [2]int{int(hash(seed, "budget") % 5), 2}, 2
		requests := make([]Request, 2)
		asks := make([]Ask, 2)
		p := make([]Proposal, 2)
		for r := range asks {
			asks[r] = Ask{Request: &requests[r], Temperature: 1, Allowed: 1, Depth: depth, Nodes: depth}
			p[r] = Proposal{&requests[r], 0, 1, new(spec.Draft)}
		}
		choices := c.Choose(asks, Batch{})
		for d := 1; d <= depth; d++ {
			if !c.More(0, d, seen(p, blind.more)) {
				break
			}
			for r, x := range choices {
				if x.Arm < 0 || x.Depth < d {
					continue
				}
				f := p[r].Draft
				q := toyRow(seed, 'q', r, f.Tokens)
				f.Q = append(f.Q, q)
				f.Confidence = append(f.Confidence, set.confidence(r, f.Tokens))
				f.Tokens = append(f.Tokens, b.Pick(0, q))
			}
		}
		cut := seen(p, blind.admit)
		c.Admit(cut)
		for r := range p {
			f := p[r].Draft
			f.Truncate(cut[r].Draft.Len())
			after := func(row int) []int32 { return f.Tokens[:row] }
			rule := (*spec.Verifier).Rejection
			if set.block {
				rule = (*spec.Verifier).Block
			}
			v, err := rule(new(spec.Verifier), f, func(row int) (spec.Row, error) { return toyRow(seed, 'p', r, after(row)), nil }, b)
			if err != nil {
				t.Fatal(err)
			}
			out := append([]int32{}, f.Tokens[:len(v.Path)]...)
			out = append(out, v.Next)
			for len(out) < tokens {
				out = append(out, b.Pick(0, toyRow(seed, 'p', r, out)))
			}
			text = append(text, out[:tokens]...)
		}
		return text
	})
}

// seen are proposals, without what they were drawn from if that is not to be
// seen.
func seen(p []Proposal, blind bool) []Proposal {
	all := make([]Proposal, len(p))
	for i := range p {
		d := *p[i].Draft
		if blind {
			d.Q = nil
		}
		all[i] = p[i]
		all[i].Draft = &d
	}
	return all
}

// law is that of the target alone, of three tokens of each request.
func law(t *testing.T, seed uint64) exact.Law {
	return outcomes(t, func(b *branches) (text []int32) {
		for r := range 2 {
			var out []int32
			for range 3 {
				out = append(out, b.Pick(0, toyRow(seed, 'p', r, out)))
			}
			text = append(text, out...)
		}
		return text
	})
}

// What is chosen, drafted and cut of two requests together keeps the law of
// both together, for any curve of step times and any confidences. It would not
// if drawn drafts were cut as those that are chosen may be.
func TestTheLawIsKept(t *testing.T) {
	lossy := 0
	for seed := range uint64(30) {
		set, want := randomSetting(seed), law(t, seed)
		for _, set.async = range []bool{false, true} {
			for _, set.block = range []bool{false, true} {
				if d := round(t, set, stage{}).Differs(want); d != "" {
					t.Fatalf("seed %d, async %v, block %v: %s", seed, set.async, set.block, d)
				}
			}
		}
		set.async, set.block = false, false
		if lossy == 0 && round(t, set, stage{admit: true}).Differs(want) != "" {
			lossy++
		}
	}
	if lossy == 0 {
		t.Error("no case shows that a live global search is lossy")
	}
}

// Passes do not end by what was drawn. Here the third pass would be made if the
// second request's first token was 0; the first request's third token would then
// take the row that this token is worth.
func TestPassesDoNotEndByWhatWasDrawn(t *testing.T) {
	set := setting{pass: 0.2, confidence: func(request int, tokens []int32) float64 {
		switch {
		case request == 0:
			return 0.9
		case len(tokens) == 0:
			return 0.33
		case tokens[0] == 0:
			return 0.97
		}
		return 0
	}}
	for i := range set.times {
		set.times[i] = time.Second
		if i >= 5 {
			set.times[i] = 1100 * ms
		}
	}
	lossy := 0
	for set.seed = range 8 {
		want := law(t, set.seed)
		if d := round(t, set, stage{}).Differs(want); d != "" {
			t.Errorf("seed %d: %s", set.seed, d)
		}
		if round(t, set, stage{more: true}).Differs(want) != "" {
			lossy++
		}
	}
	if lossy == 0 {
		t.Error("passes that end by what was drawn do no harm here")
	}
}
