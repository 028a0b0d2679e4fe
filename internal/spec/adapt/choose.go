package adapt

import "math"

const (
	// bins of survival, by which a plan says where it ends. Admit, which sees the
	// drafts, decides exactly.
	bins = 32
	// margin is how much better a plan that drafts at a cost has to be: what it is
	// worth is an estimate, its cost is sure.
	margin = 1.005
)

// An offered is the free draft of an ask that is worth most.
type offered struct {
	arm   int // -1: none
	first int // of its nodes in Controller.survivals
	end   int
	value float64 // tokens, less those that its rows' time is worth
}

// A plan is who drafts, and how deep, for all asks of a step: the arm that
// costs, for those to whom it is worth more than what is free, and the survival
// below which nothing is expected to be verified.
type plan struct {
	arm    int // -1: only what is free
	costly []bool
	reach  []float64 // survival of each depth, [asks][maxDepth], of those that are costly
	rate   float64   // tokens per second of the batch
	took   float64   // seconds of the step
	least  int       // bin
	depth  int
	rows   int
	free   int // of them, without those of the arm
}

// best finds the plan of the most tokens per second, in the manner of
// Dinkelbach: what a second is worth in tokens is what the best plan so far
// makes of it.
func (c *Controller) best(asks []Ask) {
	now := &c.now
	plain := now.plain
	if len(asks) == 0 {
		return
	}
	c.fit(asks)
	step := c.seconds(plain)
	now.rate = float64(plain) / step
	now.row = (c.seconds(plain+len(asks)) - step) / float64(len(asks))
	c.offers(asks)
	best, other, try := &c.plans[0], &c.plans[1], &c.plans[2]
	c.try(best, asks, -1)
	now.rate, other.rate = best.rate, 0
	for arm := range c.arms {
		if c.arms[arm].Free {
			continue
		}
		c.try(try, asks, arm)
		switch {
		case try.rate > best.rate*margin:
			if best, try = try, best; try.arm >= 0 {
				other, try = try, other
			}
			now.rate = best.rate
		case try.rate > other.rate:
			other, try = try, other
		}
	}
	probed := c.explore(best, other)
	if probed {
		best = other
	}
	now.passes, now.free = best.depth, best.free
	if best.rows > plain {
		if !probed {
			c.probing.vain = 0
		}
		now.row = (c.seconds(best.rows) - step) / float64(best.rows-plain)
	}
	for r := range asks {
		c.choices[r] = c.chosen(best, &asks[r], r)
		asks[r].Request.must = probed && c.choices[r].Arm == best.arm
	}
	if !probed {
		c.probe(asks, best)
	}
	for r := range asks {
		asks[r].Request.depth = c.choices[r].Depth
	}
}

// fit corrects what is usual of each arm for each request, and learns how far
// requests are from it (a step of expectation maximisation).
func (c *Controller) fit(asks []Ask) {
	for i := range c.arms {
		a := &c.arms[i]
		squares, n := anyShift*anyShifts, anyShifts
		for r := range asks {
			q := asks[r].Request.of(i, len(c.arms))
			square := q.fit(a.of(asks[r].Temperature), a.shifts)
			if len(q.tested) > 0 {
				squares += square
				n++
			}
		}
		if n > anyShifts {
			a.shifts += shiftRate * (squares/float64(n) - a.shifts)
		}
	}
}

// chosen is what a plan says of an ask.
func (c *Controller) chosen(p *plan, ask *Ask, r int) Choice {
	if p.arm >= 0 && p.costly[r] {
		a := &c.arms[p.arm]
		most := min(a.most(ask), maxDepth)
		depth := 0
		for depth < min(most, p.depth) && bin(p.reach[r*maxDepth+depth]) >= p.least {
			depth++
		}
		switch {
		case depth > 0 && a.Block:
			return Choice{p.arm, depth}
		case depth > 0:
			// What is drafted may promise more than usual: More knows.
			return Choice{p.arm, min(a.most(ask), 2*depth)}
		}
	}
	if o := &c.free[r]; o.arm >= 0 {
		return Choice{o.arm, c.arms[o.arm].most(ask)}
	}
	return Choice{Arm: -1}
}

// offers finds the best free draft of every ask.
func (c *Controller) offers(asks []Ask) {
	c.free, c.survivals = c.free[:0], c.survivals[:0]
	row := c.now.row * c.now.rate
	for r := range asks {
		ask := &asks[r]
		ask.Request.must = false
		best := offered{arm: -1}
		for arm := range c.arms {
			d := ask.offer(arm)
			if d == nil || !c.arms[arm].Free {
				continue
			}
			o := offered{arm: arm, first: len(c.survivals)}
			p := Proposal{ask.Request, arm, ask.Temperature, d}
			c.survivals = c.estimates(c.survivals, &p)
			o.end = len(c.survivals)
			nodes := c.survivals[o.first:]
			for i := range nodes {
				if parent := d.Parent(i); parent >= 0 {
					nodes[i] *= nodes[parent]
				}
				o.value += max(nodes[i]-row, 0)
			}
			if best.arm < 0 || o.value > best.value {
				best = o
			}
		}
		c.free = append(c.free, best)
	}
}

// A sweep adds up a plan's tokens and rows by their survival.
type sweep struct {
	rows, tokens [bins]float64 // of free drafts
	levels       [maxDepth]struct{ rows, tokens, sequences [bins]float64 }
}

func bin(survival float64) int { return min(int(survival*bins), bins-1) }

// try fills in a plan with an arm, -1 for none.
func (c *Controller) try(p *plan, asks []Ask, arm int) {
	p.arm, p.costly = arm, p.costly[:0]
	s := &c.sums
	*s = sweep{}
	known := [classes]bool{}
	share := 0.0 // tokens that a pass's time is worth, for each ask
	if arm >= 0 {
		p.reach = append(p.reach[:0], make([]float64, len(asks)*maxDepth)...)
		n := 0
		for r := range asks {
			n += int(asks[r].Allowed >> arm & 1)
		}
		share = c.now.rate * c.arms[arm].passes.seconds(n) / float64(max(n, 1))
	}
	deepest := 0
	for r := range asks {
		ask, free := &asks[r], &c.free[r]
		costly := false
		if arm >= 0 && ask.Allowed>>arm&1 == 1 {
			a, k := &c.arms[arm], class(ask.Temperature)
			v := a.of(ask.Temperature)
			if !known[k] {
				v.averages(&c.averages[k])
				known[k] = true
			}
			most := min(a.most(ask), maxDepth)
			reach := p.reach[r*maxDepth:][:most]
			c.promise(reach, &c.averages[k], ask.Request.of(arm, len(c.arms)).odds)
			if costly = c.worth(a, v, reach, share) > free.value; costly {
				for d, x := range reach {
					level, b := &s.levels[d], bin(x)
					level.rows[b] += v.width[d]
					level.tokens[b] += x
					level.sequences[b]++
				}
				deepest = max(deepest, most)
			}
		}
		p.costly = append(p.costly, costly)
		if !costly && free.arm >= 0 {
			for _, x := range c.survivals[free.first:free.end] {
				b := bin(x)
				s.rows[b]++
				s.tokens[b] += x
			}
		}
	}
	c.solve(p, deepest)
}

// promise sets reach to the survival of each depth.
func (c *Controller) promise(reach []float64, averages *[maxDepth]float64, odds float64) {
	x := 1.0
	for d := range reach {
		x *= shifted(averages[d], odds)
		reach[d] = x
	}
}

// worth is what the best depth of an arm is worth to a request, in tokens, less
// those that its time is.
func (c *Controller) worth(a *arm, v *survival, reach []float64, share float64) (best float64) {
	best = math.Inf(-1)
	row := c.now.row * c.now.rate
	sum := 0.0
	if a.Block {
		sum = -share
	}
	for d, x := range reach {
		sum += x - row*v.width[d]
		if !a.Block {
			sum -= share
		}
		best = max(best, sum)
	}
	return best
}

// solve finds the least survival and the depth of a plan: of one with an arm
// that costs, one that drafts. Its rate is 0 if there is none.
func (c *Controller) solve(p *plan, deepest int) {
	s := &c.sums
	plain := float64(c.now.plain)
	p.rows, p.free, p.least, p.depth = c.now.plain, c.now.plain, bins, 0
	p.rate, p.took = 0, c.seconds(c.now.plain)
	if p.arm < 0 {
		p.rate = plain / p.took
	}
	var levels [maxDepth]struct{ rows, tokens, sequences float64 }
	rows, tokens := plain, plain
	for b := bins - 1; b >= 0; b-- {
		rows += s.rows[b]
		tokens += s.tokens[b]
		for d := range deepest {
			levels[d].rows += s.levels[d].rows[b]
			levels[d].tokens += s.levels[d].tokens[b]
			levels[d].sequences += s.levels[d].sequences[b]
		}
		free := int(rows + 0.5)
		rows, tokens, passes := rows, tokens, 0.0
		for d := 0; ; d++ {
			all := int(rows + 0.5)
			took := c.seconds(all) + passes
			if rate := tokens / took; rate > p.rate && (p.arm < 0 || d > 0) {
				p.rate, p.took, p.least, p.depth, p.rows, p.free = rate, took, b, d, all, free
			}
			if d == deepest || levels[d].sequences == 0 {
				break
			}
			rows += levels[d].rows
			tokens += levels[d].tokens
			if d == 0 || !c.arms[p.arm].Block {
				passes += c.arms[p.arm].passes.seconds(int(levels[d].sequences))
			}
		}
	}
}
