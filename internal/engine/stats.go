package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Stats are figures of an engine. Counters count from when it was opened.
type Stats struct {
	Waiting, Running int     // sequences
	CacheUsage       float64 // share of the cache that running sequences hold, 0 to 1
	CacheTokens      int     // that the cache can hold
	SharedTokens     int     // that the prefix cache keeps, held or not

	Steps         uint64
	PromptTokens  uint64 // computed, of prompts
	OutputTokens  uint64
	PrefixQueries uint64 // tokens of prompts that were looked up
	PrefixHits    uint64 // of them, those found
	Evicted       uint64 // pages
	Retractions   uint64 // sequences that gave their memory back and were computed again

	Speculation map[string]SpeculationStats // by method
	Predicted   float64                     // tokens per second over those without speculation, as the controller expects; 0: unknown
	Measured    float64                     // likewise, as it is

	Stage string        // what the loop does: idle, plan, step of 3 rows, …
	For   time.Duration // how long it has been doing that

	queued int // sequences in the scheduler's queue, those that were retracted included
}

// stageIdle is the stage of a loop that waits for requests.
const stageIdle = "idle"

// A RequestState is a line of the table of requests.
type RequestState struct {
	ID       string
	Key      string
	State    string // waiting, prefill or decode
	Priority int
	Prompt   int // tokens
	Cached   int // of them, those that were taken from the cache
	Computed int // tokens
	Output   int // tokens
	Drafted  int // tokens of all choices that were verified
	Accepted int // of them
	Age      time.Duration
}

// board is what others may read of the loop.
type board struct {
	mu    sync.Mutex
	stats Stats
	arms  []SpeculationStats // of the speculator's, in order
	stage string
	count int // of rows, or of what the stage works on
	since time.Time
}

// enter says what the loop does from now on.
func (e *Engine) enter(stage string, count int) {
	b := &e.board
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stage, b.count, b.since = stage, count, time.Now()
}

// publish puts the figures on the board.
func (e *Engine) publish() {
	s := e.loop.sched.Stats()
	e.stats.Running = s.Running
	held := e.cache.Capacity()/e.cache.PageSize() - e.cache.Free()
	if e.tree != nil {
		t := e.tree.Stats()
		held -= t.Evictable
		e.stats.SharedTokens, e.stats.Evicted = t.Pages*e.cache.PageSize(), t.Evicted
	}
	e.stats.CacheTokens = e.cache.Capacity()
	e.stats.CacheUsage = float64(held*e.cache.PageSize()) / float64(e.cache.Capacity())
	e.stats.queued = s.Waiting
	b := &e.board
	b.mu.Lock()
	defer b.mu.Unlock()
	if sp := e.speculator; sp != nil {
		e.stats.Predicted, e.stats.Measured = sp.ctl.Speedup()
		for i, a := range sp.arms {
			b.arms[i].copy(&a.stats)
		}
	}
	b.stats = e.stats
}

// Stats returns the figures as they were after the last step.
func (e *Engine) Stats() Stats {
	waiting := e.loop.inbox.count()
	b := &e.board
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	if e.speculator != nil {
		s.Speculation = make(map[string]SpeculationStats, len(b.arms))
		for i, a := range e.speculator.arms {
			s.Speculation[a.Name] = b.arms[i].clone()
		}
	}
	s.Waiting, s.Stage, s.For = max(s.queued, waiting), b.stage, time.Since(b.since)
	if b.count > 0 {
		s.Stage = fmt.Sprintf("%s of %d rows", b.stage, b.count)
	}
	return s
}

// Requests lists the requests that wait or run, between two steps, the oldest
// first.
func (e *Engine) Requests(ctx context.Context) (list []RequestState, err error) {
	err = e.exclusive(ctx, func() error {
		list = e.list()
		return nil
	})
	return list, err
}

func (e *Engine) list() (list []RequestState) {
	e.accept()
	for _, id := range slices.Sorted(maps.Keys(e.loop.seqs)) {
		list = append(list, e.loop.seqs[id].state())
	}
	return list
}

func (s *sequence) state() RequestState {
	progress := s.out.Progress()
	r := RequestState{
		Drafted: int(progress.Speculation.Drafted), Accepted: int(progress.Speculation.Accepted),
		ID: s.ID, Key: s.Key, State: "waiting", Priority: s.Priority, Prompt: s.prompt, Cached: s.cached,
		Computed: s.computed, Output: s.generated(), Age: time.Since(progress.Submitted),
	}
	if r.ID == "" {
		r.ID = fmt.Sprint(s.id)
	}
	switch {
	case s.computed >= s.prompt:
		r.State = "decode"
	case s.computed > 0:
		r.State = "prefill"
	}
	return r
}

// watch logs what the loop does if that takes longer than timeout.
func (e *Engine) watch(timeout time.Duration) {
	tick := time.NewTicker(max(timeout/4, time.Millisecond))
	defer tick.Stop()
	var said time.Time // begin of what was logged last
	for {
		select {
		case <-e.loop.done:
			return
		case <-tick.C:
		}
		e.board.mu.Lock()
		since := e.board.since
		e.board.mu.Unlock()
		if s := e.Stats(); s.Stage != stageIdle && s.For > timeout && since != said {
			e.log.Error("the engine is stuck", "stage", s.Stage, "for", s.For.Round(time.Millisecond).String(), "running", s.Running, "waiting", s.Waiting)
			said = since
		}
	}
}
