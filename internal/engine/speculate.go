package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/foretoken/foretoken/internal/sched"
	"github.com/foretoken/foretoken/internal/spec"
	"github.com/foretoken/foretoken/internal/spec/adapt"
	"github.com/foretoken/foretoken/internal/spec/draft"
)

// A speculator drafts for the loop.
type speculator struct {
	Speculation
	arms      []*arm // as the controller numbers them
	ctl       *adapt.Controller
	simulated *draft.Simulated // nil: nothing is simulated

	// The step at hand; the memory is used again.
	slots     []*slot
	chosen    []*slot // those that have something to verify
	spare     []*slot // not in use
	asks      []draft.Ask
	offers    []adapt.Ask
	proposals []adapt.Proposal
	drafting  time.Duration // by the arm that costs: a step has passes of one only
	passes    int
	costly    int     // that arm
	paths     []int32 // accepted nodes of all sequences

	// Of a verification.
	verifier spec.Verifier
	rows     []spec.Row // of the target
	raw      []float32  // logits before anything changed them
	depths   []int32    // of nodes, or of rows
	taken    []int32    // tokens of rows that the history holds for now
}

// An arm is a drafter of the engine.
type arm struct {
	adapt.Arm
	drafter draft.Drafter
	watches bool // it observes
	whole   bool // and sequences that it does not draft for: it keeps something in every page
	off     bool // it has failed
	stats   SpeculationStats
}

// A slot is a sequence that may have a draft in the step at hand.
type slot struct {
	*sequence
	span     int           // index in the plan
	room     int           // for drafted tokens
	drafts   []spec.Draft  // of each arm
	offers   []*spec.Draft // those of arms that have something
	decision adapt.Choice  // whose draft is verified
}

// draft is the one that is verified; nil: none.
func (s *slot) draft() *spec.Draft {
	if s.decision.Arm < 0 {
		return nil
	}
	return &s.drafts[s.decision.Arm]
}

// draftState is what speculation keeps of a sequence.
type draftState struct {
	view    draft.Sequence
	request adapt.Request
	allowed uint64 // bit i: arm i may draft; 0: nothing is drafted
	most    int    // tokens one after another
}

// speculate drafts for the sequences of a plan that decode. It returns the slots
// of those that have something to verify, in the order of spans.
func (e *Engine) speculate(plan *sched.Plan) []*slot {
	sp := e.speculator
	if sp == nil {
		return nil
	}
	plain := sp.begin(e, plan.Spans)
	if len(sp.slots) == 0 {
		return nil
	}
	e.enter("draft", len(sp.slots))
	for i, a := range sp.arms {
		if a.Free {
			sp.propose(e, i, func(s *slot) int { return min(s.room, s.most, a.Depth) }, nil)
		}
	}
	sp.choose(e, adapt.Batch{Plain: plain, Prompt: plan.Shape.Prefill, Context: plan.Shape.DecodeContext})
	sp.ctl.Admit(sp.propositions())
	return sp.settle(e)
}

// begin gives every sequence that decodes, and may have drafts, a slot. It
// returns how many others decode.
func (sp *speculator) begin(e *Engine, spans []sched.Span) (plain int) {
	sp.spare = append(sp.spare, sp.slots...)
	sp.slots, sp.paths, sp.drafting, sp.passes = sp.slots[:0], sp.paths[:0], 0, 0
	for i, span := range spans {
		s := e.loop.seqs[span.ID]
		if s.computed+1 < len(s.tokens) {
			continue // its prompt
		}
		// Without memory for a draft a sequence decodes plainly: that is no error.
		if span.Draft == 0 || s.allowed == 0 || e.cache.Grow(&s.table, len(s.tokens)+span.Draft) != nil {
			plain++
			continue
		}
		var t *slot
		if n := len(sp.spare); n > 0 {
			t, sp.spare = sp.spare[n-1], sp.spare[:n-1]
		} else {
			t = &slot{drafts: make([]spec.Draft, len(sp.arms)), offers: make([]*spec.Draft, len(sp.arms))}
		}
		t.sequence, t.span, t.room, t.decision = s, i, span.Draft, adapt.Choice{Arm: -1}
		for k := range t.drafts {
			t.drafts[k].Reset()
		}
		s.look(e)
		sp.slots = append(sp.slots, t)
	}
	return plain
}

// propose has an arm draft for all slots that it may, as deep as depth says;
// 0 is not at all.
func (sp *speculator) propose(e *Engine, i int, depth func(*slot) int, more func(int) bool) {
	a := sp.arms[i]
	sp.asks = sp.asks[:0]
	if a.off {
		return
	}
	for _, s := range sp.slots {
		if n := depth(s); n > 0 && s.allowed>>i&1 != 0 {
			sp.asks = append(sp.asks, draft.Ask{
				Sequence: &s.view, Depth: n, Nodes: sp.nodes(i, n, s.room), Draft: &s.drafts[i],
				Drawn: sp.Verify != coupled && !s.Params.Greedy(),
			})
		}
	}
	if len(sp.asks) == 0 {
		return
	}
	err := e.protect(func() error { return a.drafter.Propose(sp.asks, more) })
	for _, ask := range sp.asks {
		if err == nil {
			err = ask.Draft.Check(e.Config().Vocab)
		}
	}
	if err != nil {
		sp.switchOff(e, a, err)
		for _, ask := range sp.asks {
			ask.Draft.Reset()
		}
	}
}

// nodes is the most tokens of a draft of an arm: only what costs drafts trees.
func (sp *speculator) nodes(i, depth, room int) int {
	if sp.Tree == "" || sp.arms[i].Free {
		return depth
	}
	return max(depth, min(sp.Nodes, room))
}

// choose decides which arm drafts for each slot, and has those draft that have
// not yet.
func (sp *speculator) choose(e *Engine, beside adapt.Batch) {
	sp.offers = sp.offers[:0]
	for _, s := range sp.slots {
		o := adapt.Ask{Request: &s.request, Temperature: s.Params.Temperature, Allowed: s.allowed, Depth: min(s.room, s.most), Nodes: s.room}
		for k := range s.drafts {
			s.offers[k] = nil
			if sp.arms[k].off {
				o.Allowed &^= 1 << k
			} else if s.drafts[k].Len() > 0 {
				s.offers[k] = &s.drafts[k]
			}
		}
		o.Offers = s.offers
		sp.offers = append(sp.offers, o)
	}
	for i, choice := range sp.ctl.Choose(sp.offers, beside) {
		sp.slots[i].decision = choice
	}
	for k, a := range sp.arms {
		if a.Free {
			continue
		}
		start := time.Now()
		sp.propose(e, k, func(s *slot) int {
			if s.decision.Arm != k {
				return 0
			}
			return s.decision.Depth
		}, func(depth int) bool {
			if !sp.ctl.More(k, depth, sp.propositions()) {
				return false
			}
			sp.passes++
			sp.costly = k
			return true
		})
		if len(sp.asks) > 0 {
			sp.drafting += time.Since(start)
		}
	}
}

// propositions are the drafts that were chosen.
func (sp *speculator) propositions() []adapt.Proposal {
	sp.proposals = sp.proposals[:0]
	for _, s := range sp.slots {
		if d := s.draft(); d != nil {
			sp.proposals = append(sp.proposals, adapt.Proposal{Request: &s.request, Arm: s.decision.Arm, Temperature: s.Params.Temperature, Draft: d})
		}
	}
	return sp.proposals
}

// settle gives back the memory that no draft needs, and keeps the slots that
// have one.
func (sp *speculator) settle(e *Engine) []*slot {
	sp.chosen = sp.chosen[:0]
	for _, s := range sp.slots {
		n := 0
		if d := s.draft(); d != nil {
			n = d.Len()
		}
		if err := e.cache.Rewind(&s.table, len(s.tokens)+n); err != nil {
			e.fail(s.sequence, fmt.Errorf("%d drafted tokens of %d: %w", n, s.room, err))
			continue
		}
		if n > 0 {
			sp.chosen = append(sp.chosen, s)
		}
	}
	return sp.chosen
}

// copied is a path in memory that lasts as long as the step: the verifier uses its
// own again.
func (sp *speculator) copied(path []int32) []int32 {
	first := len(sp.paths)
	sp.paths = append(sp.paths, path...)
	return sp.paths[first:len(sp.paths):len(sp.paths)]
}

// verified counts a round of a sequence, which committed so many tokens, and tells
// the controller.
func (sp *speculator) verified(p *planned, accepted []int32, tokens int) {
	sp.depths = p.draft.Depths(sp.depths[:0])
	nodes, depth := p.draft.Len(), int(slices.Max(sp.depths))
	sp.arms[p.arm].stats.round(nodes, depth, len(accepted), tokens)
	p.out.update(func() { p.out.progress.Speculation.round(nodes, depth, len(accepted), tokens) })
	sp.ctl.Verified(adapt.Proposal{Request: &p.request, Arm: p.arm, Temperature: p.Params.Temperature, Draft: p.draft}, accepted)
}

// stepped tells the controller what a step took.
func (sp *speculator) stepped(shape sched.Shape, rows, tokens int, took time.Duration) {
	s := adapt.Step{Rows: rows, Prompt: shape.Prefill, Sequences: shape.Decode, Context: shape.DecodeContext, PromptContext: shape.PrefillContext, Tokens: tokens, Took: took, Arm: -1}
	if sp.passes > 0 {
		s.Arm, s.Passes, s.Drafting = sp.costly, sp.passes, sp.drafting
	}
	sp.ctl.Stepped(s)
}
