package adapt

import "math"

// Probing keeps an account of time for drafts that are not expected to pay, so
// that an arm which is off is seen again when it would: a share of all time goes
// in, and what probes took comes out. That bounds what speculation costs where it
// never pays.
type probing struct {
	credit float64 // seconds
	vain   int     // probes since something was expected to pay
	on     bool    // in this step
	single bool    // it is one request's; else a plan
	row    float64 // seconds that its row takes
	gain   float64 // that what is expected of it is worth, less what it replaces
	passes bool    // its passes are for the probe alone
	rate   float64 // tokens per second of what a plan replaces
}

const (
	// probeShare is the share of time, and once many probes were in vain a third of
	// it: the longer that nothing pays, the less is there to be found.
	probeShare = 0.01
	manyProbes = 32
	// leastCost of what a probe takes counts, however likely it is to pay: an arm
	// that is nearly worth it is probed often, and one that is not seldom.
	leastCost = 0.125
	mostLost  = 4 // plain steps
)

// net is what a probe costs with passes of that time.
func (p *probing) net(passes float64) float64 {
	return max(p.row+passes-p.gain, leastCost*(p.row+passes))
}

// explore reports whether a plan that is not the best is tried all the same: the
// account has what it is expected to lose. One that is nearly the best is tried
// often, so that no run of bad luck puts an arm off for long.
func (c *Controller) explore(best, other *plan) bool {
	c.probing.on, c.probing.single = false, false
	if other.rate == 0 {
		return false
	}
	lost := other.took * (1 - min(other.rate/best.rate, 1))
	if max(lost, leastCost*(other.took-c.seconds(c.now.plain))) > c.probing.credit {
		return false
	}
	c.probing.on, c.probing.rate = true, best.rate
	return true
}

// lost is what a plan that was tried has cost: its time, without that of prompt
// rows, is compared to what its tokens would have taken. A machine that stood
// still for a while is not the plan's.
func (p *probing) lost(took, plain float64, tokens int) float64 {
	return min(max(took-float64(tokens)/p.rate, leastCost*(took-plain), 0), mostLost*plain)
}

// settle closes the account of a step. decoding is its time without that of
// prompt rows.
func (p *probing) settle(took, decoding, drafting, plain float64, tokens int) {
	// What is not used is not saved up beyond a few steps.
	share := probeShare / (1 + 2*float64(min(p.vain, manyProbes))/manyProbes)
	p.credit = min(p.credit+share*took, 2*plain)
	if p.on {
		p.vain++
		switch {
		case !p.single:
			p.credit -= p.lost(decoding, plain, tokens)
		case p.passes:
			p.credit -= p.net(drafting)
		default:
			p.credit -= p.net(0)
		}
	}
	p.on = false
}

// probe lets an arm that the plan leaves off draft one token for one request, if
// the account has what it costs: of those that were not verified for longest.
func (c *Controller) probe(asks []Ask, p *plan) {
	if c.probing.credit <= 0 {
		return
	}
	request, arm := -1, -1
	oldest := c.step
	for r := range asks {
		for i := range c.arms {
			if seen := asks[r].Request.of(i, len(c.arms)).seen; seen < oldest && c.off(p, &asks[r], r, i) {
				request, arm, oldest = r, i, seen
			}
		}
	}
	if request < 0 {
		return
	}
	row, gain, passes := c.cost(p, asks, request, arm)
	c.probing.row, c.probing.gain = row, gain
	if c.probing.net(passes) > c.probing.credit {
		return
	}
	c.probing.on, c.probing.single = true, true
	c.probing.passes = !c.arms[arm].Free && (p.arm != arm || p.depth == 0)
	if c.probing.passes && p.depth > 0 {
		// The passes of one arm are all that a step has.
		p.depth = 0
		c.now.passes = 1
		for r := range asks {
			c.choices[r] = c.chosen(p, &asks[r], r)
		}
	}
	asks[request].Request.must = true
	c.choices[request] = Choice{arm, 1}
}

// off reports whether an arm could draft for an ask and is not expected to have
// a token verified.
func (c *Controller) off(p *plan, ask *Ask, r, arm int) bool {
	a := &c.arms[arm]
	switch {
	case ask.Allowed>>arm&1 == 0 || a.most(ask) < 1 || a.Free && ask.offer(arm) == nil:
		return false
	case c.choices[r].Arm != arm:
		return true
	case !a.Free:
		return false
	}
	return bin(c.survivals[c.free[r].first]) < p.least
}

// cost is the time that a probe's row takes, the time that its gain is worth,
// and that of its pass.
func (c *Controller) cost(p *plan, asks []Ask, request, arm int) (row, gain, pass float64) {
	a, q := &c.arms[arm], &asks[request]
	row = c.seconds(p.rows+1) - c.seconds(p.rows)
	first := a.of(q.Temperature).levels[0].mean(unknown, levelPrior)
	gain = shifted(first, math.Exp(q.Request.of(arm, len(c.arms)).shift)) - c.planned(p, request)
	switch {
	case a.Free:
	case p.arm == arm && p.depth > 0:
		pass = a.passes.seconds(c.probed(p)+1) - a.passes.seconds(c.probed(p))
	default:
		pass = a.passes.seconds(1)
		if p.depth > 0 {
			for r := range asks {
				if p.costly[r] && r != request {
					gain -= c.planned(p, r)
				}
			}
		}
	}
	return row, gain / c.now.rate, pass
}

// probed is the number of sequences that the plan's passes have.
func (c *Controller) probed(p *plan) (n int) {
	for _, costly := range p.costly {
		if costly {
			n++
		}
	}
	return n
}

// planned is how many tokens a plan expects to gain for a request, less those
// that the time of their rows is worth.
func (c *Controller) planned(p *plan, r int) (tokens float64) {
	survivals := c.survivals[c.free[r].first:c.free[r].end]
	if p.arm >= 0 && p.costly[r] {
		survivals = p.reach[r*maxDepth:][:p.depth]
	}
	for _, x := range survivals {
		if bin(x) >= p.least {
			tokens += max(x-c.now.row*c.now.rate, 0)
		}
	}
	return tokens
}
