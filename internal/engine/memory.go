package engine

import (
	"slices"
	"time"

	"github.com/foretoken/foretoken/internal/sched"
)

// memory answers the scheduler's questions about the cache.
type memory Engine

func (m *memory) Available() int {
	n := m.cache.Free()
	if m.tree != nil {
		n += m.tree.Stats().Evictable
	}
	return n
}

func (m *memory) Match(id uint64) sched.Match {
	s := m.loop.seqs[id]
	if m.tree == nil || !s.shares() {
		return sched.Match{}
	}
	p := m.tree.Match(s.Namespace, s.lookup())
	return sched.Match{Tokens: p.Ready, Unlocked: p.Unlocked}
}

func (m *memory) Path(id uint64) []uint64 {
	s := m.loop.seqs[id]
	if m.tree == nil || !s.shares() {
		return nil
	}
	return m.tree.Path(s.Namespace, s.lookup())
}

func (m *memory) Exclusive(id uint64) int {
	s := m.loop.seqs[id]
	if m.tree == nil {
		return m.cache.Held(&s.table) / m.cache.PageSize()
	}
	return m.tree.Exclusive(&s.table)
}

// lookup is what may be found of s in the prefix cache: one token is left to
// compute, whose logits are those of the next.
func (s *sequence) lookup() []int32 { return s.tokens[:len(s.tokens)-1] }

// shares reports whether s can begin with a cached prefix: not if every row of
// its prompt is asked for something.
func (s *sequence) shares() bool {
	return s.group.prompted || !s.ScorePrompt && s.Pooling != MeanPooling
}

// admit gives a sequence that begins to run its cached prefix.
func (e *Engine) admit(s *sequence, planned int) {
	if e.tree != nil && s.shares() {
		s.computed = e.tree.Attach(&s.table, s.Namespace, s.lookup())
		e.stats.PrefixQueries += uint64(len(s.lookup()))
		e.stats.PrefixHits += uint64(s.computed)
	}
	if s.computed != planned {
		e.loop.sched.Update(s.id, s.computed, len(s.tokens))
	}
	g := s.group
	if g.begun {
		return
	}
	g.begun, s.cached = true, s.computed
	e.loop.inbox.begun()
	g.out.update(func() { g.out.progress.Started, g.out.progress.Cached = time.Now(), s.cached })
}

// rewind makes s what it was before a step that failed. What pages hold of the
// step is written again, but in rings it may have taken the place of what its
// first rows read: then s attaches its own prefix anew, if that is shared. It
// reports whether s is what it was.
func (e *Engine) rewind(s *sequence) bool {
	if e.cache.Rewind(&s.table, s.computed) == nil {
		return true
	}
	e.cache.Release(&s.table)
	return e.tree != nil && e.tree.Attach(&s.table, s.Namespace, s.tokens[:s.computed]) == s.computed
}

// share puts the whole pages that s has computed into the prefix cache.
func (e *Engine) share(s *sequence) {
	page := e.cache.PageSize()
	if e.tree != nil && s.computed/page*page > e.cache.Shared(&s.table) {
		e.tree.Insert(&s.table, s.Namespace, s.tokens[:s.computed])
	}
}

// release takes a sequence's memory.
func (e *Engine) release(s *sequence) {
	e.cache.Release(&s.table)
	s.computed = 0
	e.forget(s)
	if !s.group.prompted {
		clear(s.group.pool)
	}
}

// retractAll takes the memory of all sequences, for a job between steps.
func (e *Engine) retractAll() {
	for _, id := range e.loop.sched.RetractAll() {
		e.release(e.loop.seqs[id])
		e.stats.Retractions++
	}
}

// remove forgets a sequence.
func (e *Engine) remove(s *sequence) {
	if e.loop.seqs[s.id] == s {
		e.loop.sched.Finish(s.id)
		delete(e.loop.seqs, s.id)
		e.cache.Release(&s.table)
		e.forget(s)
	}
}

// finish ends a sequence that has its last token.
func (e *Engine) finish(s *sequence) {
	e.learn(s)
	e.remove(s)
	if s.live--; s.live == 0 {
		e.end(s.group, nil)
	}
}

// fail ends the request of s, in all its choices.
func (e *Engine) fail(s *sequence, err error) {
	g := s.group
	for _, choice := range g.choices {
		e.remove(choice)
	}
	if !g.begun {
		g.begun = true
		e.loop.inbox.begun()
	}
	e.end(g, err)
}

// end notes that g has ended; settle tells its client.
func (e *Engine) end(g *group, err error) {
	e.loop.ended = append(e.loop.ended, ending{g.out, err})
}

// An ending is a request that has ended, and why if it failed.
type ending struct {
	out *Generation
	err error
}

// settle publishes the figures and then tells the clients of requests that have
// ended: what a client sees as ended, the figures no longer count.
func (e *Engine) settle() {
	e.publish()
	for _, g := range e.loop.ended {
		g.out.end(g.err)
	}
	clear(e.loop.ended)
	e.loop.ended = e.loop.ended[:0]
}

// prompted says that the prompt of g is computed: its other choices begin, and
// what was asked for of the prompt is there.
func (e *Engine) prompted(g *group) {
	if g.prompted {
		return
	}
	g.prompted = true
	g.out.update(func() {
		g.out.progress.Prompted = time.Now()
		g.out.prompt, g.out.pooled = g.scores, normalized(g.pool)
	})
	if waiting := slices.DeleteFunc(slices.Clone(g.choices), func(s *sequence) bool { return s.id != 0 }); len(waiting) > 0 {
		e.schedule(waiting)
	}
}
