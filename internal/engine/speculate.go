package engine

import (
	"fmt"
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
	free      []*slot // not in use
	asks      []draft.Ask
	offers    []adapt.Ask
	proposals []adapt.Proposal
	drafting  time.Duration // by arms that are not free
	passes    int
	costly    int // the arm that made them

	// Of a verification.
	verifier spec.Verifier
	rows     []*spec.Row // of the target
	raw      []float32   // logits before anything changed them
	depths   []int32     // of rows
	taken    []int32
}

// An arm is a drafter of the engine.
type arm struct {
	adapt.Arm
	drafter    draft.Drafter
	watches    bool // it observes
	whole      bool // and sequences that it does not draft for: it keeps something in every page
	off        bool // it has failed
	stats      SpeculationStats
	acceptance float64 // in the self-check
}

// A slot is a sequence that may have a draft in the step at hand.
type slot struct {
	*sequence
	span   int           // index in the plan
	room   int           // for drafted tokens
	drafts []spec.Draft  // of each arm
	offers []*spec.Draft // those of arms that have something
	arm    int           // whose draft is verified; -1: none
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
	var beside time.Duration
	if plan.Shape.Prefill > 0 {
		decode := plan.Shape
		decode.Prefill, decode.PrefillContext = 0, 0
		beside = max(0, e.loop.cost.StepTime(plan.Shape)-e.loop.cost.StepTime(decode))
	}
	sp.choose(e, plain, beside)
	sp.ctl.Admit(sp.propositions(), plain, beside)
	return sp.settle(e)
}

// begin gives every sequence that decodes, and may have drafts, a slot. It
// returns how many others decode.
func (sp *speculator) begin(e *Engine, spans []sched.Span) (plain int) {
	sp.free = append(sp.free, sp.slots...)
	sp.slots, sp.drafting, sp.passes = sp.slots[:0], 0, 0
	for i, span := range spans {
		s := e.loop.seqs[span.ID]
		if s.computed+1 < len(s.tokens) {
			continue // its prompt
		}
		if span.Draft == 0 || s.allowed == 0 || e.cache.Grow(&s.table, len(s.tokens)+span.Draft) != nil {
			plain++
			continue
		}
		var t *slot
		if n := len(sp.free); n > 0 {
			t, sp.free = sp.free[n-1], sp.free[:n-1]
		} else {
			t = &slot{drafts: make([]spec.Draft, len(sp.arms)), offers: make([]*spec.Draft, len(sp.arms))}
		}
		t.sequence, t.span, t.room, t.arm = s, i, span.Draft, -1
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
	for _, s := range sp.slots {
		if n := depth(s); n > 0 && s.allowed>>i&1 != 0 {
			sp.asks = append(sp.asks, draft.Ask{
				Sequence: &s.view, Depth: n, Nodes: sp.nodes(i, n, s.room), Draft: &s.drafts[i],
				Drawn: sp.Verify != coupled && !s.Params.Greedy(),
			})
		}
	}
	if len(sp.asks) == 0 || a.off {
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

// nodes is the most tokens of a draft of an arm.
func (sp *speculator) nodes(i, depth, room int) int {
	if sp.Tree == "" || sp.arms[i].Free {
		return depth
	}
	return max(depth, min(sp.Nodes, room))
}

// choose decides which arm drafts for each slot, and has those draft that have
// not yet.
func (sp *speculator) choose(e *Engine, plain int, beside time.Duration) {
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
	choices := sp.ctl.Choose(sp.offers, plain, beside)
	for i, s := range sp.slots {
		s.arm = choices[i].Arm
	}
	for k, a := range sp.arms {
		if a.Free {
			continue
		}
		at := 0
		start := time.Now()
		sp.propose(e, k, func(s *slot) int {
			at++
			if choices[at-1].Arm != k {
				return 0
			}
			return min(choices[at-1].Depth, a.Depth)
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
		if s.arm >= 0 {
			sp.proposals = append(sp.proposals, adapt.Proposal{
				Request: &s.request, Arm: s.arm, Temperature: s.Params.Temperature, Draft: &s.drafts[s.arm],
			})
		}
	}
	return sp.proposals
}

// settle gives back the memory that no draft needs, and keeps the slots that
// have one.
func (sp *speculator) settle(e *Engine) (chosen []*slot) {
	for _, s := range sp.slots {
		n := 0
		if s.arm >= 0 {
			n = s.drafts[s.arm].Len()
		}
		if err := e.cache.Rewind(&s.table, len(s.tokens)+n); err != nil {
			e.fail(s.sequence, fmt.Errorf("%d drafted tokens of %d: %w", n, s.room, err))
			continue
		}
		if n > 0 {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// verified counts a round of a sequence.
func (sp *speculator) verified(p *planned, tokens int) {
	path, depth := p.path, 0
	for _, d := range p.draft.Depths(sp.depths[:0]) {
		depth = max(depth, int(d))
	}
	sp.arms[p.arm].stats.add(p.draft.Len(), depth, len(path), tokens)
	p.out.update(func() { p.out.progress.Speculation.add(p.draft.Len(), depth, len(path), tokens) })
	sp.ctl.Verified(adapt.Proposal{Request: &p.request, Arm: p.arm, Temperature: p.Params.Temperature, Draft: p.draft}, path)
}

// stepped tells the controller what a step took. One with prompts says nothing of
// what drafts cost.
func (sp *speculator) stepped(shape sched.Shape, rows, tokens int, took time.Duration) {
	if shape.Prefill > 0 {
		return
	}
	s := adapt.Step{Rows: rows, Sequences: shape.Decode, Tokens: tokens, Took: took, Arm: -1}
	if sp.passes > 0 {
		s.Arm, s.Passes, s.Drafting = sp.costly, sp.passes, sp.drafting
	}
	sp.ctl.Stepped(s)
}

// observed are the committed rows of a step; the memory is used again.
type observed struct {
	spans []draft.Observed
	rows  []int
}

// observe tells drafters of the rows of the step that are committed: of all
// sequences those that keep something in every page, others only of those that
// they may draft for.
func (e *Engine) observe() {
	if e.speculator == nil {
		return
	}
	for i, a := range e.speculator.arms {
		if a.off || !a.watches {
			continue
		}
		spans := e.committed(func(s *sequence) bool { return a.whole || s.allowed>>i&1 != 0 })
		if len(spans) == 0 {
			continue
		}
		if err := e.protect(func() error { return a.drafter.Observe(e.runner, spans) }); err != nil {
			e.speculator.switchOff(e, a, err)
		}
	}
}

// committed are the rows of the step that are committed, of some sequences.
func (e *Engine) committed(of func(*sequence) bool) []draft.Observed {
	o := &e.loop.observed
	o.spans, o.rows = o.spans[:0], o.rows[:0]
	for i := range e.loop.planned {
		p := &e.loop.planned[i]
		if e.loop.seqs[p.id] != p.sequence || !of(p.sequence) {
			continue
		}
		first := len(o.rows)
		for row := e.loop.step.Spans[i].From; row <= p.anchor; row++ {
			o.rows = append(o.rows, row)
		}
		for _, node := range p.path {
			o.rows = append(o.rows, p.anchor+1+int(node))
		}
		o.spans = append(o.spans, draft.Observed{Sequence: p.sequence.look(e), From: p.from, Rows: o.rows[first:len(o.rows):len(o.rows)]})
	}
	return o.spans
}

// look is what drafters see of a sequence now.
func (s *sequence) look(e *Engine) *draft.Sequence {
	s.view = draft.Sequence{ID: s.id, Namespace: s.Namespace, Tokens: s.tokens, Prompt: s.prompt, Table: &s.table, Row: s.sampling(e)}
	return &s.view
}

// switchOff ends the use of a drafter that has failed. Nothing is lost but time.
func (sp *speculator) switchOff(e *Engine, a *arm, err error) {
	a.off = true
	e.log.Error("a drafter failed and is switched off", "method", a.Name, "error", err)
}

// drafted tells drafters of a sequence that has come to its end.
func (e *Engine) drafted(s *sequence) {
	if e.speculator != nil && s.allowed != 0 {
		for _, a := range e.speculator.arms {
			a.drafter.Ended(s.look(e))
		}
	}
}

// forget tells drafters of a sequence that has no memory any more.
func (e *Engine) forget(s *sequence) {
	if e.speculator != nil {
		for _, a := range e.speculator.arms {
			a.drafter.Forget(s.id)
		}
	}
}
