package engine

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/foretoken/foretoken/internal/exec"
	"github.com/foretoken/foretoken/internal/sched"
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
	start := time.Now()
	if e.compute(plan.Spans) {
		l.cost = l.cost.Observe(plan.Shape, time.Since(start))
	}
}

// compute runs spans as one step. If the step fails, the spans run one by one,
// so that whoever is at fault fails alone; rewind undoes what the step has
// written of rows that it did not finish. It reports whether all ran in one: else
// the time that it took says nothing of what such a step costs.
func (e *Engine) compute(spans []sched.Span) (whole bool) {
	l := &e.loop
	l.step.Reset()
	l.planned = l.planned[:0]
	for _, span := range spans {
		s := l.seqs[span.ID]
		if s == nil {
			continue // another choice of its request has failed
		}
		if err := e.cache.Grow(&s.table, s.computed+span.Rows); err != nil {
			e.fail(s, fmt.Errorf("%d tokens, %d computed: %w", len(s.tokens), s.computed, err))
			continue
		}
		l.step.Add(&s.table, s.computed, s.tokens[s.computed:s.computed+span.Rows])
		l.planned = append(l.planned, s)
	}
	if len(l.planned) == 0 {
		return false
	}
	e.enter("step", l.step.Rows())
	err := e.protect(func() error { return e.runner.Run(&l.step, l.abandoned) })
	switch {
	case err == nil:
		e.commit()
		return len(l.planned) == len(spans)
	case errors.Is(err, exec.ErrStopped): // those who waited for it are dropped next
	case len(l.planned) > 1:
		for i, span := range spans {
			if s := l.seqs[span.ID]; s != nil {
				if rewound := e.rewind(s); rewound != nil {
					e.fail(s, fmt.Errorf("step of %d rows: %w, and %w", span.Rows, err, rewound))
					continue
				}
			}
			e.compute(spans[i : i+1])
		}
	default:
		e.fail(l.planned[0], fmt.Errorf("step of %d rows: %w", l.step.Rows(), err))
	}
	return false
}

// commit takes what the step has computed: rows become part of sequences and
// of the prefix cache, and those that have caught up get their next token.
func (e *Engine) commit() {
	l := &e.loop
	l.ready, l.rows = l.ready[:0], l.rows[:0]
	e.stats.Steps++
	for i, s := range l.planned {
		if l.seqs[s.id] == nil {
			continue // another choice of its request has failed, and its memory is gone
		}
		span := l.step.Spans[i]
		if row, ok := e.runner.Finite(span.From, span.To); !ok {
			// Nothing of it is cached, and no other row has read it.
			e.fail(s, fmt.Errorf("the model's state at position %d is not finite", s.computed+row-span.From))
			continue
		}
		if err := e.protect(func() error { return e.readPrompt(s, span.From, span.To) }); err != nil {
			e.fail(s, err)
			continue
		}
		e.stats.PromptTokens += uint64(max(0, min(s.computed+span.To-span.From, s.prompt)-s.computed))
		s.computed += span.To - span.From
		e.share(s)
		if s.computed == len(s.tokens) {
			l.ready, l.rows = append(l.ready, s), append(l.rows, span.To-1)
		} else {
			l.sched.Update(s.id, s.computed, len(s.tokens))
		}
	}
	if len(l.ready) > 0 {
		e.sample()
	}
}

// sample gives the sequences that are ready their next token.
func (e *Engine) sample() {
	l := &e.loop
	var logits []float32
	generates := false
	for _, s := range l.ready {
		generates = generates || !s.group.PromptOnly
	}
	if generates {
		if err := e.protect(func() error { logits = e.runner.Logits(l.rows); return nil }); err != nil {
			for _, s := range l.ready {
				e.fail(s, err)
			}
			return
		}
	}
	e.enter("sample", len(l.ready))
	vocab := e.Config().Vocab
	for i, s := range l.ready {
		e.prompted(s.group)
		if l.seqs[s.id] == nil {
			continue // another choice of its request has failed
		}
		ended := true
		var err error
		if !s.group.PromptOnly {
			e.stats.OutputTokens++
			err = e.protect(func() error { ended, err = s.next(e, logits[i*vocab:(i+1)*vocab]); return err })
		}
		switch {
		case err != nil:
			e.fail(s, err)
		case ended:
			e.finish(s)
		default:
			l.sched.Update(s.id, s.computed, len(s.tokens))
		}
	}
}

// protect runs f and turns a fault of a mapped file, or a panic, into an error:
// a request that breaks an invariant ends alone.
func (e *Engine) protect(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a broken invariant: %v", p)
			e.log.Error("a request broke an invariant", "panic", p, "stack", string(debug.Stack()))
			e.runner = exec.NewRunner(e.model, e.pool, e.cache, 0) // what is taken of the old one's workspace is anybody's guess
		}
	}()
	return e.checkpoint.Guard(f)
}
