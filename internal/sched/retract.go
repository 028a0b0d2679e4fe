package sched

import "slices"

// preemptGap is by how much a request's priority must exceed that of the
// sequences it takes the place of (A2).
const preemptGap = 10

// elder is the running sequence that arrived first. It is never retracted, so
// it comes to an end, and then the next one does: no memory is so small that
// sequences retract each other for ever.
func (p *step) elder() *sequence {
	return slices.MinFunc(p.running, byArrival)
}

// reclaim retracts sequences until the others have memory for this step (A5).
// If one has to go, enough do that the rest can decode for a while.
func (p *step) reclaim() {
	for len(p.running) > 1 {
		headroom := 1
		if len(p.plan.Retracted) > 0 {
			headroom = retractSteps
		}
		elder := p.elder()
		if p.need(elder, headroom) <= p.pages {
			break
		}
		p.retract(p.victim(elder))
	}
	if len(p.plan.Retracted) == 0 {
		return
	}
	p.ratio.retracted(p.running)
	if len(p.running) == 1 {
		// Pages that sequences share were exclusive to none of those that went.
		p.pages = p.cfg.Pages - p.pagesFor(p.running[0].computed)
	}
}

// need is the number of pages for so many tokens of every decoding sequence,
// and for the first rows of the elder if it is in its prompt.
func (p *step) need(elder *sequence, tokens int) int {
	n := 0
	for _, q := range p.running {
		if q.left() == 1 {
			n += p.growth(q.computed, max(1, min(tokens, q.unborn())))
		} else if q == elder {
			n += p.growth(q.computed, min(q.left(), p.cfg.MinChunk))
		}
	}
	return n
}

// victim is the running sequence to retract: the one that loses least, with
// the fewest tokens generated, of those the one with the longest prompt, which
// frees most. Under Priority the lowest goes first.
func (p *step) victim(elder *sequence) *sequence {
	var worst *sequence
	for _, q := range p.running {
		if q != elder && (worst == nil || p.before(q, worst)) {
			worst = q
		}
	}
	return worst
}

// before reports whether a is retracted before b.
func (p *step) before(a, b *sequence) bool {
	switch {
	case p.cfg.Policy == Priority && a.Priority != b.Priority:
		return a.Priority < b.Priority
	case a.out() != b.out():
		return a.out() < b.out()
	case a.Prompt != b.Prompt:
		return a.Prompt > b.Prompt
	}
	return a.arrival > b.arrival
}

// retract sends a running sequence back to the queue. What it has computed and
// cached is found again when it returns, unless it was evicted.
func (p *step) retract(q *sequence) {
	p.pages += p.cache.Exclusive(q.ID)
	i := slices.Index(p.running, q)
	p.running = slices.Delete(p.running, i, i+1)
	p.wait(q)
	p.plan.Retracted = append(p.plan.Retracted, q.ID)
}

// wait queues a sequence that has run.
func (s *Scheduler) wait(q *sequence) {
	s.waiting = append(s.waiting, q)
	q.running, q.returned, q.computed, q.grant = false, true, 0, 0
}

// RetractAll sends all running sequences back to the queue, between steps, and
// returns them. The caller releases their memory.
func (s *Scheduler) RetractAll() (ids []uint64) {
	for _, q := range s.running {
		s.wait(q)
		ids = append(ids, q.ID)
	}
	s.running = s.running[:0]
	return ids
}

// preempt makes room for the first of the queue under Priority: sequences of
// far lower priority are retracted if that lets it run. The elder, and those
// whose patience has ended, stay.
func (p *step) preempt() {
	if p.cfg.Policy != Priority || len(p.waiting) == 0 || len(p.running) == 0 {
		return
	}
	p.sortWaiting()
	q := p.waiting[p.next()]
	pages, seqs, partial := p.pages-p.reserved(), len(p.running), p.partial()
	if seqs < p.cfg.MaxSeqs && p.fits(q, pages) {
		return
	}
	elder := p.elder()
	var victims []*sequence
	for _, v := range p.running {
		if v != elder && v.Priority < q.Priority-preemptGap && !p.impatient(v) {
			victims = append(victims, v)
		}
	}
	slices.SortFunc(victims, func(a, b *sequence) int {
		if p.before(a, b) {
			return -1
		}
		return 1
	})
	// The victims may be all that holds its prefix now.
	m := p.match(q)
	q.match.Unlocked = m.Tokens / p.cfg.PageSize
	for i, v := range victims {
		pages += p.cache.Exclusive(v.ID) + p.reserve(v)
		seqs--
		if v.left() > 1 {
			partial--
		}
		if seqs < p.cfg.MaxSeqs && partial < p.cfg.MaxPartial && p.fits(q, pages) {
			for _, v := range victims[:i+1] {
				p.retract(v)
			}
			p.only = q
			return
		}
	}
	q.match = m
}
