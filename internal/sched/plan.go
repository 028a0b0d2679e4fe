package sched

import (
	"cmp"
	"slices"
	"time"
)

// A Cache answers what a plan has to know of memory. Asking changes nothing.
type Cache interface {
	// Available is the number of pages that are free or can be evicted:
	// those that no running sequence holds.
	Available() int
	// Match is the cached prefix of a waiting request.
	Match(id uint64) Match
	// Path is the nodes of that prefix in the prefix tree, the last first. Numbers
	// above 0 stand for them. Only DFSWeight asks.
	Path(id uint64) []uint64
	// Exclusive is the number of pages that would become available if this
	// running sequence alone were released.
	Exclusive(id uint64) int
}

// A Match is what the cache holds of a request's tokens.
type Match struct {
	Tokens   int // whole pages, fewer than the request's tokens
	Unlocked int // pages among them that could be evicted now
}

// A Plan is one step. It is carried out in this order: release Retracted,
// attach the cached prefixes of Admitted, give every span memory for
// computed+Rows+Draft tokens, run. What is planned fits; a plan that could not
// be run may be dropped: the next one starts from what Update said.
type Plan struct {
	Retracted []uint64 // running sequences that go back to the queue
	Admitted  []Admission
	Spans     []Span // decoding ones first
	Shape     Shape  // without drafts
}

// An Admission is a request that starts to run.
type Admission struct {
	ID     uint64
	Cached int // tokens of its match
}

// A Span is the rows of one sequence in a step.
type Span struct {
	ID    uint64
	Rows  int // tokens to compute, from the first that is not
	Draft int // rows and memory for so many drafted tokens behind them
}

// A step is a plan in the making.
type step struct {
	*Scheduler
	now   time.Time
	cache Cache
	cost  Cost

	rows    int           // left of MaxRows
	prefill int           // left of Prefill
	pages   int           // available and not given away
	limit   time.Duration // of the step; 0 is none
	share   int           // the most rows of a prompt that does not end in this step; 0 is not known yet
	sorted  bool          // the queue is
	only    *sequence     // others are not admitted: it made room by preemption
}

// Plan decides what the next step computes. The plan is valid until the next
// one; it is empty if there is nothing to do. cost is asked only if there is a
// target for latency.
func (s *Scheduler) Plan(now time.Time, cache Cache, cost Cost) *Plan {
	p := step{Scheduler: s, now: now, cache: cache, cost: cost, rows: s.cfg.MaxRows, prefill: s.cfg.Prefill, pages: cache.Available()}
	s.plan = Plan{Retracted: s.plan.Retracted[:0], Admitted: s.plan.Admitted[:0], Spans: s.plan.Spans[:0]}
	s.decoding, s.prompts = s.decoding[:0], s.prompts[:0]
	for _, q := range s.running {
		q.grant = 0
	}

	p.reclaim()
	short := len(s.plan.Retracted) > 0
	if !short {
		p.preempt()
	}
	p.sortRunning()
	p.decode()
	if !s.cfg.Separate || !s.prompted || len(s.decoding) == 0 {
		p.continuePrompts()
		if !short {
			p.admit()
		}
		p.shareOut()
	}
	p.finish(short)
	return &s.plan
}

// sortRunning tells decoding sequences, in order of admission, from prompts,
// in order of arrival: the oldest request takes its rows and pages first.
func (p *step) sortRunning() {
	for _, q := range p.running {
		if q.left() == 1 {
			p.decoding = append(p.decoding, q)
		} else if q.left() > 1 {
			p.prompts = append(p.prompts, q)
		}
	}
	slices.SortFunc(p.prompts, byArrival)
}

// decode gives a row to every sequence that decodes; reclaim has seen to the
// pages, and MaxSeqs ≤ MaxRows to the rows.
func (p *step) decode() {
	for _, q := range p.decoding {
		q.grant = 1
		if !p.cfg.Separate {
			p.rows--
		}
		p.pages -= p.growth(q.computed, 1)
		p.plan.Shape.Decode++
		p.plan.Shape.DecodeContext += int64(q.length)
	}
	p.limit = p.itl()
}

// continuePrompts gives rows to prompts that were begun.
func (p *step) continuePrompts() {
	for _, q := range p.prompts {
		p.give(q, p.chunk(q))
	}
}

// shareOut gives what nobody took of the shares of a step to the prompts in
// it, the oldest first.
func (p *step) shareOut() {
	if p.cfg.MaxPartial == 1 {
		return // a share is the whole
	}
	p.share = p.cfg.MaxRows
	for _, q := range p.prompts {
		if q.grant > 0 {
			p.give(q, p.chunk(q))
		}
	}
}

// chunk is how many more rows of q's prompt fit into the step. Rows that do
// not finish the prompt end at a page if that costs less than half of them:
// what is computed can then be shared, and resumed from a page.
func (p *step) chunk(q *sequence) int {
	c, left := q.computed+q.grant, q.left()-q.grant
	free := min(p.prefill, p.rows)
	if p.share == 0 {
		p.share = max(p.cfg.MinChunk, (p.timely(c, free)+p.cfg.MaxPartial-1)/p.cfg.MaxPartial)
	}
	n := min(left, free, p.cfg.Chunk-q.grant)
	timely := p.timely(c, n)
	if p.plan.Shape.Prefill == 0 {
		timely = max(timely, min(n, p.cfg.MinChunk))
	}
	inMemory := (p.pagesFor(c)+p.pages)*p.cfg.PageSize - c
	if n = min(timely, inMemory); n == left {
		return n
	}
	n = min(n, p.share)
	rows := q.grant + n
	if whole := (c+n)/p.cfg.PageSize*p.cfg.PageSize - q.computed; whole > rows/2 {
		n = max(whole-q.grant, 0)
	}
	return n
}

// give makes n more rows of q part of the step.
func (p *step) give(q *sequence, n int) {
	c := q.computed + q.grant
	p.pages -= p.growth(c, n)
	p.rows -= n
	p.prefill -= n
	p.plan.Shape = p.plan.Shape.prompt(c, n)
	q.grant += n
}

// finish lists the spans.
func (p *step) finish(short bool) {
	s := p.Scheduler
	s.prompted = p.plan.Shape.Prefill > 0
	if s.cfg.Separate && s.prompted {
		s.decoding = s.decoding[:0]
		p.plan.Shape.Decode, p.plan.Shape.DecodeContext = 0, 0
	} else if s.cfg.Separate {
		p.rows -= len(s.decoding)
	}
	for i, q := range s.decoding {
		p.plan.Spans = append(p.plan.Spans, Span{ID: q.ID, Rows: 1, Draft: p.draft(q, len(s.decoding)-i)})
	}
	for _, q := range s.prompts {
		if q.grant > 0 {
			p.plan.Spans = append(p.plan.Spans, Span{ID: q.ID, Rows: q.grant})
		}
	}
	if len(s.decoding) > 0 && !short {
		s.ratio.decoded()
	}
}

// draft is the room for drafts behind the row of q, the first of n sequences
// that have to share what is left. A prompt row gains a token for certain, a
// draft perhaps: drafts come last. The token after the last draft is sampled,
// not drafted.
func (p *step) draft(q *sequence, n int) int {
	if q.out() == 0 {
		return 0 // its last prompt row
	}
	inMemory := (p.pagesFor(q.length)+p.pages)*p.cfg.PageSize - q.length
	d := max(0, min(p.cfg.MaxDraft, p.rows/n, q.unborn()-1, inMemory))
	p.rows -= d
	p.pages -= p.growth(q.length, d)
	return d
}

func byArrival(a, b *sequence) int { return cmp.Compare(a.arrival, b.arrival) }
