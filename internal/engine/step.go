package engine

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/foretoken/foretoken/internal/exec"
	"github.com/foretoken/foretoken/internal/sched"
	"github.com/foretoken/foretoken/internal/spec"
)

// advance runs one step: the scheduler's plan, carried out.
func (e *Engine) advance() {
	defer e.settle()
	l := &e.loop
	e.enter("plan", 0)
	plan := l.sched.Plan(time.Now(), (*memory)(e), &l.cost)
	for _, id := range plan.Retracted {
		e.release(l.seqs[id])
		e.stats.Retractions++
	}
	for _, a := range plan.Admitted {
		e.admit(l.seqs[a.ID], a.Cached)
	}
	if len(plan.Spans) == 0 {
		return
	}
	slots, shape := e.speculate(plan), plan.Shape
	start, before := time.Now(), e.stats.OutputTokens
	if !e.compute(plan.Spans, slots) {
		return
	}
	took := time.Since(start)
	if e.speculator != nil {
		e.speculator.stepped(shape, l.step.Rows(), int(e.stats.OutputTokens-before), took)
	}
	for _, p := range l.planned {
		if p.draft != nil {
			shape.Decode += p.draft.Len()
			shape.DecodeContext += int64(p.draft.Len() * len(p.tokens))
		}
	}
	l.cost = l.cost.Observe(shape, took)
}

// A planned is a sequence with rows in the step at hand.
type planned struct {
	*sequence
	draft  *spec.Draft // behind its last row; nil: none
	arm    int         // that proposed it
	anchor int         // the last of its rows that are not drafted
	from   int         // position of the first
	path   []int32     // accepted nodes of draft
	ended  bool        // it has its last token
}

// compute runs spans as one step, with the drafts of some. If the step fails, the
// spans run one by one and without drafts, so that whoever is at fault fails
// alone; rewind undoes what the step has written of rows that it did not finish. It
// reports whether all ran in one: else the time that it took says nothing of what
// such a step costs.
func (e *Engine) compute(spans []sched.Span, slots []*slot) (whole bool) {
	l := &e.loop
	l.step.Reset()
	l.planned = l.planned[:0]
	for i, span := range spans {
		s := l.seqs[span.ID]
		p := planned{sequence: s}
		if len(slots) > 0 && slots[0].span == i {
			p.draft, p.arm, slots = slots[0].draft(), slots[0].decision.Arm, slots[1:]
		}
		if s == nil {
			continue // another choice of its request has failed
		}
		p.from = s.computed
		if err := e.cache.Grow(&s.table, s.computed+span.Rows); err != nil {
			e.fail(s, fmt.Errorf("%d tokens, %d computed: %w", len(s.tokens), s.computed, err))
			continue
		}
		l.step.Add(&s.table, s.computed, s.tokens[s.computed:s.computed+span.Rows])
		p.anchor = l.step.Rows() - 1
		if p.draft != nil {
			l.step.Draft(p.draft.Parents, p.draft.Tokens)
		}
		l.planned = append(l.planned, p)
	}
	if len(l.planned) == 0 {
		return false
	}
	e.enter("step", l.step.Rows())
	e.renew()
	err := e.protect(func() error { return e.runner.Run(&l.step, l.abandoned) })
	switch {
	case err == nil:
		e.commit()
		return len(l.planned) == len(spans)
	case errors.Is(err, exec.ErrStopped): // those who waited for it are dropped next
	case len(l.planned) > 1 || l.planned[0].draft != nil:
		for i, span := range spans {
			if s := l.seqs[span.ID]; s != nil && !e.rewind(s) {
				e.replay(s, s.computed+span.Rows)
				continue
			}
			e.compute(spans[i:i+1], nil)
		}
	default:
		e.fail(l.planned[0].sequence, fmt.Errorf("step of %d rows: %w", l.step.Rows(), err))
	}
	return false
}

// replay computes the first n tokens of a sequence anew, alone, where a step that
// failed has overwritten what they read.
func (e *Engine) replay(s *sequence, n int) {
	e.release(s)
	if e.tree != nil && s.shares() {
		s.computed = e.tree.Attach(&s.table, s.Namespace, s.tokens[:n-1])
	}
	for before := -1; e.loop.seqs[s.id] == s && before < s.computed && s.computed < n; {
		before = s.computed
		e.compute([]sched.Span{{ID: s.id, Rows: min(e.stepRows, n-s.computed)}}, nil)
	}
	e.loop.sched.Update(s.id, s.computed, len(s.tokens))
}

// commit takes what the step has computed: rows become part of sequences and
// of the prefix cache, and those that have caught up get their next token.
func (e *Engine) commit() {
	l := &e.loop
	l.ready, l.rows = l.ready[:0], l.rows[:0]
	e.stats.Steps++
	for i := range l.planned {
		p := &l.planned[i]
		s := p.sequence
		if l.seqs[s.id] == nil {
			continue // another choice of its request has failed, and its memory is gone
		}
		from, to := l.step.Spans[i].From, p.anchor+1
		if row, ok := e.runner.Finite(from, to); !ok {
			// Nothing of it is cached, and no other row has read it.
			e.fail(s, fmt.Errorf("the model's state at position %d is not finite", s.computed+row-from))
			continue
		}
		if err := e.protect(func() error { return e.readPrompt(s, from, to) }); err != nil {
			e.fail(s, err)
			continue
		}
		e.stats.PromptTokens += uint64(max(0, min(s.computed+to-from, s.prompt)-s.computed))
		s.computed += to - from
		if s.computed == len(s.tokens) {
			l.ready = append(l.ready, p)
			for row := p.anchor; row < l.step.Spans[i].To; row++ {
				l.rows = append(l.rows, row)
			}
		} else {
			l.sched.Update(s.id, s.computed, len(s.tokens))
		}
	}
	if len(l.ready) > 0 {
		e.sample()
	}
	e.observe() // before pages are shared, which have a place for what drafters keep
	for i := range l.planned {
		if p := &l.planned[i]; l.seqs[p.id] == p.sequence {
			e.share(p.sequence)
			if p.ended {
				e.finish(p.sequence)
			}
		}
	}
}

// sample gives the sequences that are ready their next tokens.
func (e *Engine) sample() {
	l := &e.loop
	var logits []float32
	generates := false
	for _, p := range l.ready {
		generates = generates || !p.group.PromptOnly
	}
	if generates {
		if err := e.protect(func() error { logits = e.runner.Logits(l.rows); return nil }); err != nil {
			for _, p := range l.ready {
				e.fail(p.sequence, err)
			}
			return
		}
	}
	e.enter("sample", len(l.ready))
	vocab, row := e.Config().Vocab, 0
	for _, p := range l.ready {
		s, first := p.sequence, row
		row++
		if p.draft != nil {
			row += p.draft.Len()
		}
		e.prompted(s.group)
		if l.seqs[s.id] == nil {
			continue // another choice of its request has failed
		}
		p.ended = true
		if s.group.PromptOnly {
			continue
		}
		if err := e.protect(func() (err error) { p.ended, err = e.verify(p, logits[first*vocab:row*vocab]); return err }); err != nil {
			e.fail(s, err)
		} else if !p.ended {
			l.sched.Update(s.id, s.computed, len(s.tokens))
		}
	}
}

// renew replaces the runner if something has panicked since it ran: what is taken
// of its workspace is anybody's guess. Until then others read what its last step
// has left of their rows.
func (e *Engine) renew() {
	if e.spoiled {
		e.runner, e.spoiled = exec.NewRunner(e.model, e.pool, e.cache, 0), false
	}
}

// protect runs f and turns a fault of a mapped file, or a panic, into an error:
// a request that breaks an invariant ends alone.
func (e *Engine) protect(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a broken invariant: %v", p)
			e.log.Error("a request broke an invariant", "panic", p, "stack", string(debug.Stack()))
			e.spoiled = true
		}
	}()
	if c := e.drafting.checkpoint; c != nil {
		return e.checkpoint.Guard(func() error { return c.Guard(f) })
	}
	return e.checkpoint.Guard(f)
}
