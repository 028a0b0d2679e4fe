package engine

import "github.com/foretoken/foretoken/internal/spec/draft"

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

// switchOff ends the use of a drafter that has failed, and drops it: what it holds is
// anybody's guess. Nothing is lost but time.
func (sp *speculator) switchOff(e *Engine, a *arm, err error) {
	a.off, a.drafter = true, nil
	e.log.Error("a drafter failed and is switched off", "method", a.Name, "error", err)
}

// learn tells drafters of a sequence that has come to its end, if they were allowed
// to draft for it.
func (e *Engine) learn(s *sequence) {
	if e.speculator == nil {
		return
	}
	for i, a := range e.speculator.arms {
		if a.off || s.allowed>>i&1 == 0 {
			continue
		}
		if err := e.protect(func() error { a.drafter.Ended(s.look(e)); return nil }); err != nil {
			e.speculator.switchOff(e, a, err)
		}
	}
}

// forget tells drafters of a sequence that has no memory any more.
func (e *Engine) forget(s *sequence) {
	if e.speculator == nil {
		return
	}
	for _, a := range e.speculator.arms {
		if !a.off {
			a.drafter.Forget(s.id)
		}
	}
}
