package sched

import "math"

// maxReserve is the most generated tokens of a sequence that admission keeps
// memory for (A2): limits are often set far above what is generated.
const maxReserve = 4096

// admit lets requests of the queue run, until one does not fit. Those behind
// it wait although they might fit: a long request is not overtaken for ever.
func (p *step) admit() {
	if len(p.waiting) == 0 || len(p.running) == p.cfg.MaxSeqs || min(p.rows, p.prefill) == 0 {
		return
	}
	p.sortWaiting()
	reserved, partial := p.reserved(), p.partial()
	for len(p.running) < p.cfg.MaxSeqs {
		i := p.next()
		if i < 0 {
			return
		}
		q := p.waiting[i]
		if p.only != nil && q != p.only || !p.fits(q, p.pages-reserved) || !p.begin(q, partial) {
			return
		}
		p.enter(i)
		reserved += p.reserve(q)
		if q.grant < q.left() {
			partial++
		}
	}
}

// begin gives q its first rows, if there are any for it and, should they not
// finish its prompt, one more partial prompt may be.
func (p *step) begin(q *sequence, partial int) bool {
	m := p.match(q)
	p.pages -= m.Unlocked
	q.computed, q.grant = m.Tokens, 0
	n := p.chunk(q)
	if n == 0 || n < q.left() && partial == p.cfg.MaxPartial {
		p.pages += m.Unlocked
		q.computed = 0
		return false
	}
	p.give(q, n)
	return true
}

// enter makes the waiting sequence at index i a running one.
func (p *step) enter(i int) {
	q := p.waiting[i]
	p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
	p.running = append(p.running, q)
	p.prompts = append(p.prompts, q)
	p.plan.Admitted = append(p.plan.Admitted, Admission{ID: q.ID, Cached: q.computed})
	if !q.returned { // that it has to be computed again is nobody's fault
		q.account.served += int64(q.left())
	}
	q.running = true
}

// fits reports whether pages are enough for all that q may take (A2). When
// nothing runs they are: Submit refused what the pool cannot hold.
func (p *step) fits(q *sequence, pages int) bool {
	return len(p.running) == 0 || p.total(q) < pages
}

// total is the number of pages that admitting q takes from those available: of
// its tokens and of those it may generate, without those of its match unless
// that are available now, and one to spare.
func (p *step) total(q *sequence) int {
	m := p.match(q)
	return p.pagesFor(q.length+min(q.unborn(), maxReserve)) - m.Tokens/p.cfg.PageSize + m.Unlocked + 1
}

// reserved is the number of pages kept for running sequences.
func (p *step) reserved() int {
	n := 0
	for _, q := range p.running {
		n += p.reserve(q)
	}
	return n
}

// reserve is the number of pages kept for q after this step: for the rest of
// its prompt and, once it generates, for the new-token ratio of what may come.
func (p *step) reserve(q *sequence) int {
	n := min(q.unborn(), maxReserve)
	if q.left() == 1 {
		n = int(math.Ceil(p.ratio.now * float64(n)))
	}
	return p.growth(q.computed+q.grant, q.left()-q.grant+n)
}
