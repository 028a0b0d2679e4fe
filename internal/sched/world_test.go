package sched

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// A world runs the plans of a scheduler as an engine would, without a model:
// every step is checked.
type world struct {
	s     *Scheduler
	cache *trie
	cost  Cost
	truth Cost // what a step really takes; a second if nil
	now   time.Time
	steps int
	seqs  map[uint64]*client
	plan  *Plan
	took  time.Duration

	accept func(drafts int) int          // how many drafts of a span are accepted; none if nil
	stops  func(id uint64, out int) bool // whether a sequence stops early; never if nil
}

// A client is the engine's side of a sequence.
type client struct {
	Request
	family, shared           int
	tokens                   []int32
	computed                 int
	submitted, started, done int // step
	running                  bool
}

// token is the token at position i; where a whole prompt is a family's, so is
// what follows.
func (q *client) token(i int) int32 {
	if i < q.shared || q.Prompt <= q.shared {
		return -int32(q.family)<<16 - int32(i)
	}
	return int32(q.ID)<<16 + int32(i)
}

func (q *client) out() int { return len(q.tokens) - q.Prompt }

func newWorld(c Config) (*world, error) {
	s, err := New(c)
	if err != nil {
		return nil, err
	}
	w := &world{s: s, now: time.Unix(0, 0), seqs: map[uint64]*client{}}
	w.cache = newTrie(c.Pages, c.PageSize, func(id uint64) []int32 { return w.seqs[id].tokens })
	w.cost = Curve{Step: 1}
	return w, nil
}

// submit submits a request whose first shared tokens are those of a family.
func (w *world) submit(r Request, family, shared int) error {
	q := &client{Request: r, family: family, shared: shared, submitted: w.steps, started: -1, done: -1}
	for i := range r.Prompt {
		q.tokens = append(q.tokens, q.token(i))
	}
	if min(r.Prompt, shared) >= InBatchPrefix {
		q.Prefix = uint64(family)
	}
	if err := w.s.Submit(w.now, q.Request); err != nil {
		return err
	}
	w.seqs[r.ID] = q
	return nil
}

// abort ends a request before its time.
func (w *world) abort(id uint64) {
	w.end(w.seqs[id])
}

func (w *world) end(q *client) {
	w.s.Finish(q.ID)
	w.cache.release(q.ID)
	q.done, q.running = w.steps, false
}

// live are the requests that have not ended, by id.
func (w *world) live() []*client {
	var l []*client
	for _, id := range slices.Sorted(maps.Keys(w.seqs)) {
		if q := w.seqs[id]; q.done < 0 {
			l = append(l, q)
		}
	}
	return l
}

// elder is the running request that was submitted first.
func (w *world) elder() *client {
	var e *client
	for _, q := range w.live() {
		if q.running && (e == nil || w.s.seqs[q.ID].arrival < w.s.seqs[e.ID].arrival) {
			e = q
		}
	}
	return e
}

// retract takes a sequence's memory.
func (w *world) retract(id uint64) {
	w.cache.release(id)
	w.seqs[id].running, w.seqs[id].computed = false, 0
}

// step plans and runs one step.
func (w *world) step() error {
	elder := w.elder()
	w.plan = w.s.Plan(w.now, w.cache, w.cost)
	w.steps++
	if err := w.s.Check(); err != nil {
		return err
	}
	for _, id := range w.plan.Retracted {
		q := w.seqs[id]
		if !q.running || q == elder {
			return fmt.Errorf("sequence %d is retracted: running %v, elder %v", id, q.running, q == elder)
		}
		w.retract(id)
	}
	for _, a := range w.plan.Admitted {
		q := w.seqs[a.ID]
		if q.running {
			return fmt.Errorf("sequence %d is admitted twice", a.ID)
		}
		if q.computed = w.cache.attach(a.ID); q.computed != a.Cached {
			return fmt.Errorf("sequence %d: %d tokens cached, planned with %d", a.ID, q.computed, a.Cached)
		}
		q.running = true
		if q.started < 0 {
			q.started = w.steps
		}
	}
	for _, s := range w.plan.Spans {
		q := w.seqs[s.ID]
		if !q.running || s.Rows > len(q.tokens)-q.computed {
			return fmt.Errorf("sequence %d: running %v, %d rows planned, %d tokens left", s.ID, q.running, s.Rows, len(q.tokens)-q.computed)
		}
		if err := w.cache.grow(s.ID, q.computed+s.Rows+s.Draft); err != nil {
			return err
		}
	}
	if err := w.checkShape(); err != nil {
		return err
	}
	if err := w.checkProgress(elder); err != nil {
		return err
	}
	w.took = time.Second
	if w.truth != nil {
		w.took = w.truth.StepTime(w.plan.Shape)
	}
	w.now = w.now.Add(w.took)
	for _, s := range w.plan.Spans {
		w.advance(s)
	}
	if n, most := w.s.Stats().Partial, w.s.cfg.MaxPartial; n > most {
		return fmt.Errorf("%d prompts are in the middle, at most %d may be", n, most)
	}
	if err := w.s.Check(); err != nil {
		return err
	}
	return w.cache.check()
}

// advance is what the forward and the sampler do for a span.
func (w *world) advance(s Span) {
	q := w.seqs[s.ID]
	q.computed += s.Rows
	if q.computed == len(q.tokens) {
		made := 1
		if w.accept != nil {
			made += w.accept(s.Draft)
		}
		for range min(made, q.MaxNew-q.out()) {
			q.tokens = append(q.tokens, q.token(len(q.tokens)))
		}
		q.computed = max(len(q.tokens)-1, q.computed)
		w.cache.insert(s.ID, q.computed)
		w.s.Update(s.ID, q.computed, len(q.tokens))
		if q.out() >= q.MaxNew || w.stops != nil && w.stops(q.ID, q.out()) {
			w.end(q)
		}
		return
	}
	w.cache.insert(s.ID, q.computed)
	w.s.Update(s.ID, q.computed, len(q.tokens))
}

// checkShape recomputes the plan's shape from its spans.
func (w *world) checkShape() error {
	var want Shape
	for _, s := range w.plan.Spans {
		q := w.seqs[s.ID]
		if len(q.tokens)-q.computed == 1 && q.out() > 0 {
			want.Decode++
			want.DecodeContext += int64(len(q.tokens))
		} else {
			for i := range s.Rows {
				want.PrefillContext += int64(q.computed + i + 1)
			}
			want.Prefill += s.Rows
		}
	}
	got := w.plan.Shape
	// The last row of a prompt that was cut before it counts as decoding.
	if got.Decode+got.Prefill != want.Decode+want.Prefill || got.DecodeContext+got.PrefillContext != want.DecodeContext+want.PrefillContext {
		return fmt.Errorf("shape %+v of a plan whose spans have %+v", got, want)
	}
	return nil
}

// checkProgress holds that the oldest running request is in every step; if
// prompts and decoding take turns, in every other one; and that a step is
// empty only if nothing runs or waits.
func (w *world) checkProgress(elder *client) error {
	if len(w.plan.Spans) == 0 && len(w.live()) > 0 {
		return fmt.Errorf("nothing is planned while %d requests are there", len(w.live()))
	}
	has := func(q *client) bool {
		return slices.ContainsFunc(w.plan.Spans, func(s Span) bool { return s.ID == q.ID })
	}
	if elder != nil && !w.s.cfg.Separate && !has(elder) {
		return fmt.Errorf("the oldest request, %d, has no rows", elder.ID)
	}
	return nil
}
