package sched

import (
	"fmt"
	"slices"
	"time"
)

// A Request is what has to be known of a request to schedule it.
type Request struct {
	ID     uint64 // unique among the requests in the scheduler
	Prompt int    // tokens, at least 1
	MaxNew int    // the most tokens that are generated; 0 if only the prompt is computed

	// Key is whose request it is: keys get equal shares of the engine.
	Key string
	// Priority orders requests under the Priority policy, the highest first.
	Priority int
	// Prefix is a hash of the first InBatchPrefix tokens, and of the namespace
	// they are cached in; 0 if there are fewer. LPM lets the first request of
	// a new prefix compute it for the others.
	Prefix uint64
}

// A Scheduler decides what runs. It is a state machine without clock, memory
// or model of its own; one goroutine owns it.
type Scheduler struct {
	cfg   Config
	ratio ratio

	seqs     map[uint64]*sequence
	waiting  []*sequence // hold no memory; sorted when a plan looks for the next
	running  []*sequence // hold memory; in order of admission
	accounts map[string]*account
	arrivals uint64

	prompted bool // the last step had prompt rows

	// The plan, and what it is made of. The memory is used again.
	plan              Plan
	decoding, prompts []*sequence
}

// New returns an empty scheduler, or an error that names the field of c that
// cannot be.
func New(c Config) (*Scheduler, error) {
	if err := c.complete(); err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	return &Scheduler{
		cfg: c, ratio: newRatio(c.Conservativeness),
		seqs: make(map[uint64]*sequence), accounts: make(map[string]*account),
	}, nil
}

// Unservable reports a request that the cache could not hold even if nothing
// else ran.
type Unservable struct{ Tokens, Capacity int }

func (e *Unservable) Error() string {
	return fmt.Sprintf("prompt and answer may take %d tokens, the cache holds %d: shorten the prompt or lower max_tokens", e.Tokens, e.Capacity)
}

// Submit queues r, or returns *Unservable for a request that could never run.
// How many wait is the caller's to bound.
func (s *Scheduler) Submit(now time.Time, r Request) error {
	switch {
	case r.Prompt < 1:
		return fmt.Errorf("prompt of %d tokens, expected at least 1", r.Prompt)
	case r.MaxNew < 0:
		return fmt.Errorf("max_tokens is %d, expected at least 0", r.MaxNew)
	case s.seqs[r.ID] != nil:
		return fmt.Errorf("request %d was submitted before", r.ID)
	}
	// The last token is not computed. Compared so that no sum overflows.
	if c := s.cfg.Pages * s.cfg.PageSize; r.Prompt > c || r.MaxNew-1 > c-r.Prompt {
		return &Unservable{Tokens: r.Prompt + r.MaxNew, Capacity: c}
	}
	q := &sequence{Request: r, arrival: s.arrivals, since: now, length: r.Prompt, account: s.join(r.Key)}
	s.arrivals++
	s.seqs[r.ID] = q
	s.waiting = append(s.waiting, q)
	return nil
}

// Update says how far a running sequence has come after a step: how many of
// its tokens are computed and how many there are. Between steps of decoding
// one token is left to compute. Of a sequence that is not there nothing is
// changed: it may have been aborted while the step ran.
func (s *Scheduler) Update(id uint64, computed, length int) {
	q := s.seqs[id]
	if q == nil {
		return
	}
	q.account.served += outputWeight * int64(length-q.length)
	q.computed, q.length, q.grant = computed, length, 0
}

// Finish forgets a request: it is done, aborted or has failed; in the queue,
// in its prompt or while decoding. The caller releases its memory.
func (s *Scheduler) Finish(id uint64) {
	q := s.seqs[id]
	if q == nil {
		return
	}
	delete(s.seqs, id)
	q.account.requests--
	list := &s.waiting
	if q.running {
		list = &s.running
	}
	i := slices.Index(*list, q)
	*list = slices.Delete(*list, i, i+1)
	if len(s.seqs) == 0 {
		s.ratio = newRatio(s.cfg.Conservativeness) // A4: idle
		clear(s.accounts)
	}
}

// Stats are figures for metrics and logs.
type Stats struct {
	Waiting, Running int
	Partial          int     // running, with more of their prompt to come
	NewTokenRatio    float64 // of the tokens that running sequences may still generate, those that memory is kept for
}

// Stats returns the state in figures.
func (s *Scheduler) Stats() Stats {
	return Stats{Waiting: len(s.waiting), Running: len(s.running), Partial: s.partial(), NewTokenRatio: s.ratio.now}
}

func (s *Scheduler) partial() int {
	n := 0
	for _, q := range s.running {
		if q.left() > 1 && q.grant < q.left() {
			n++
		}
	}
	return n
}

// A sequence is a request on its way.
type sequence struct {
	Request
	arrival uint64 // number
	since   time.Time
	account *account

	running  bool
	returned bool // ran before and was retracted
	length   int  // tokens: the prompt and what was generated
	computed int  // tokens whose keys and values are in the cache

	// Of the plan that is being made.
	grant   int   // rows given
	match   Match // of a waiting sequence, if it was looked up
	matched bool
	rank    int  // of a waiting sequence within its policy, the least first
	class   int  // of a waiting sequence under Priority, the highest first
	overdue bool // has waited for Patience
}

// left is the number of tokens to compute: 1 decodes, more are a prompt.
func (q *sequence) left() int { return q.length - q.computed }

// out is the number of generated tokens.
func (q *sequence) out() int { return q.length - q.Prompt }

// unborn is how many tokens may still be generated.
func (q *sequence) unborn() int { return max(q.MaxNew-q.out(), 0) }

// pagesFor is the number of pages that hold n tokens.
func (s *Scheduler) pagesFor(n int) int { return (n + s.cfg.PageSize - 1) / s.cfg.PageSize }

// growth is the number of pages that n more tokens take after the first c.
func (s *Scheduler) growth(c, n int) int { return s.pagesFor(c+n) - s.pagesFor(c) }
