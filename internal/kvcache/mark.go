package kvcache

// Two models may keep what they compute of a sequence in one pool: a draft
// model's layers stand behind the target's, and a position has memory in both or
// in neither. The draft model lags behind, and is not run at all where nobody
// drafts. What it has computed is therefore marked, page by page: with a prefix
// that is shared come the marks of whoever computed it.
//
// A draft model writes its part of pages that are shared, too. Equal prefixes
// have equal bits, so that nobody reads anything else than before.

// Mark notes that the draft model has computed the first positions of t.
func (p *Pool) Mark(t *Table, positions int) {
	for i, page := range t.pages {
		n := min(positions-i*p.pagePositions, p.pagePositions)
		if n <= 0 {
			break
		}
		p.marks[page] = max(p.marks[page], int32(n))
	}
}

// Marked returns how many of the first positions of t the draft model has
// computed, be it for t or for another that shares them.
func (p *Pool) Marked(t *Table) (positions int) {
	for _, page := range t.pages {
		n := int(p.marks[page])
		positions += n
		if n < p.pagePositions {
			break
		}
	}
	return positions
}

// SharePage reports whether a and b have one page at a position. A step must
// not compute it for both: one would read what the other is writing.
func (p *Pool) SharePage(a, b *Table, position int) bool {
	i := position / p.pagePositions
	return i < a.shared && i < b.shared && a.pages[i] == b.pages[i]
}

// take returns a page without a mark; there is one available.
func (p *Pool) take() int32 {
	page := p.pages.take()
	if int(page) == len(p.marks) {
		p.marks = append(p.marks, 0)
	}
	p.marks[page] = 0
	return page
}

// unmark forgets marks behind the first positions of t, of which it owns the
// page that the last is in.
func (p *Pool) unmark(t *Table, positions int) {
	if n := positions % p.pagePositions; n > 0 && positions <= p.Held(t) {
		page := t.pages[positions/p.pagePositions]
		p.marks[page] = min(p.marks[page], int32(n))
	}
}
