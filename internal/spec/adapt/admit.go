package adapt

import (
	"math"
	"time"
)

// More reports whether a pass of an arm that drafts that depth pays, by the
// drafts so far: p are those of the step, with what the passes before drafted.
//
// Where tokens were drawn, a draft that goes on is there to be admitted because
// of its tokens of the depth before, and may stand before other requests'
// shallower tokens in the order of admission. Whether those are verified would
// then depend on them. So drafts that were drawn go as deep as Choose expected,
// which knew none of them, unless there is one only: its own order is that of
// depth.
func (c *Controller) More(arm, depth int, p []Proposal) bool {
	a := &c.arms[arm]
	if depth == 1 || c.Fixed || a.Block {
		return true
	}
	rows, drafts, asked, deepest := c.now.free, 0, 0, depth
	tokensDrawn := false
	for i := range p {
		if p[i].Arm != arm {
			continue
		}
		drafts++
		tokensDrawn = tokensDrawn || p[i].Draft.Drawn()
		rows += p[i].Draft.Len()
		if p[i].Request.depth >= depth {
			asked++
			deepest = max(deepest, p[i].Request.depth)
		}
	}
	if tokensDrawn && drafts > 1 {
		return depth <= c.now.passes
	}
	row := c.now.rate * c.further(rows, asked, deepest-depth+1) // tokens that the time of a row is worth
	gain := 0.0
	for i := range p {
		q := &p[i]
		if q.Arm != arm || q.Request.depth < depth {
			continue
		}
		s := a.of(q.Temperature)
		s.averages(&c.average)
		at := min(depth, maxDepth) - 1
		next := c.reached(q, depth-1) * shifted(c.average[at], q.Request.of(arm, len(c.arms)).odds)
		gain += max(next-row*s.width[at], 0)
	}
	return gain > c.now.rate*a.passes.seconds(asked)
}

// further is the time that a row adds if all that are asked draft on, for as
// many passes as make it least: a tile that is begun is worth filling.
func (c *Controller) further(rows, asked, passes int) float64 {
	least := math.Inf(1)
	now := c.seconds(rows)
	for n := asked; n <= asked*passes; n += asked {
		least = min(least, (c.seconds(rows+n)-now)/float64(n))
		if n == 0 {
			break
		}
	}
	return least
}

// reached is the probability that a path comes to a depth of a draft.
func (c *Controller) reached(p *Proposal, depth int) (sum float64) {
	c.estimate = c.estimates(c.estimate[:0], p)
	for i := range c.estimate {
		if parent := p.Draft.Parent(i); parent >= 0 {
			c.estimate[i] *= c.estimate[parent]
		}
		if int(c.nodes.depths[i]) == depth {
			sum += c.estimate[i]
		}
	}
	return min(sum, 1)
}

// Admit trims the drafts of the batch to what pays. Who asked and has no proposal
// decodes plainly.
//
// Where a token was drawn this is algorithm 1 with its break. Where none was,
// tokens are the target's own whatever is cut (spec.Verifier.Match), or are tested
// by coins that no cut knows, and the best of all prefixes of the order is
// verified, so that a step of the cost curve that does not pay is no barrier.
// With Async the number of tokens is that which was best two steps earlier.
func (c *Controller) Admit(p []Proposal) {
	c.estimate = c.estimate[:0]
	plain := max(c.now.plain-len(p), 0)
	c.now.plain = plain + len(p)
	c.admission.Begin(plain)
	for i := range p {
		q := &p[i]
		at := len(c.estimate)
		c.estimate = c.estimates(c.estimate, q)
		must := 0
		switch {
		case c.Fixed:
			must = q.Draft.Len()
		case q.Request.must:
			must = 1
		}
		c.admission.Add(q.Draft, c.estimate[at:], must)
	}
	perSecond := func(rows int) float64 { return 1 / c.seconds(rows) }
	switch {
	case c.Fixed:
	case c.Async:
		budget, _ := c.admission.Best(perSecond)
		if c.known == len(c.budgets) {
			c.admission.Top(c.budgets[0])
		} else {
			c.known++
			c.admission.Greedy(perSecond)
		}
		c.budgets[0], c.budgets[1] = c.budgets[1], budget
	case c.admission.Drawn():
		c.admission.Greedy(perSecond)
	default:
		budget, _ := c.admission.Best(perSecond)
		c.admission.Top(budget)
	}
	c.now.tokens = c.admission.Tokens()
	at := 0
	for i := range p {
		d, keep := p[i].Draft, c.admission.Keep(i)
		if a := &c.arms[p[i].Arm]; !a.Free {
			c.nodes.of(d)
			c.learned(p[i].Arm, p[i].Temperature).impute(d, c.nodes.depths, c.estimate[at:at+len(keep)], keep)
		}
		at += len(keep)
		d.Keep(keep)
	}
}

// Stepped learns what a step took. It is called after Verified. A step with
// prompt rows says nothing of what decoding takes, but what probes have taken in
// it is booked.
func (c *Controller) Stepped(s Step) {
	if s.Sequences == 0 {
		return
	}
	c.Steps.attend(s.Sequences, s.Context)
	expected := c.Steps.seconds(s.Rows)
	plain := c.Steps.seconds(s.Sequences)
	tokens := c.now.tokens
	if tokens == 0 {
		tokens = float64(s.Sequences) // nothing was to be admitted
	}
	took, drafting := s.Took.Seconds(), s.Drafting.Seconds()
	if s.Arm >= 0 && s.Passes > 0 {
		a := &c.arms[s.Arm]
		expected += float64(s.Passes) * a.passes.seconds(a.asked)
		a.passes.Observe(a.asked, s.Drafting/time.Duration(s.Passes))
	}
	if s.Prompt == 0 {
		g := &c.gains
		g.took += took + drafting
		g.plain += plain * float64(s.Tokens) / float64(s.Sequences)
		g.expected += expected
		g.expectedPlain += plain * tokens / float64(s.Sequences)
	}
	decoding := took + drafting
	if s.Prompt > 0 {
		c.Steps.attend(0, 0) // rows of prompts have contexts of their own
		decoding -= c.Steps.seconds(s.Sequences+s.Prompt) - c.Steps.seconds(s.Sequences)
		decoding -= c.Steps.Attention.Row * float64(s.PromptContext)
	}
	c.probing.settle(took+drafting, decoding, drafting, plain, s.Tokens)
	if s.Prompt == 0 {
		c.Steps.Observe(s.Rows, s.Took)
	}
	c.now = prospect{}
}
