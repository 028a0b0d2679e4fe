package adapt

import "github.com/foretoken/foretoken/internal/spec"

const (
	maxDepth = 16 // depths that are told apart; deeper ones are as the last
	maxRank  = 3  // children of a parent that are; later ones are as the last
	buckets  = 9  // of a confidence or peak; the last: not known

	cellPrior  = 8.0 // tokens that what is known of all depths counts as
	poolPrior  = 4.0 // that the drafter's own estimate counts as
	levelPrior = 4.0 // that the level above counts as
	cellMost   = 100 // tokens that are remembered of a cell, for each sequence that decodes
	poolMost   = 200
	unknown    = 0.6 // acceptance of a drafter that nothing is known of
)

// A survival is what is learned of an arm at a class of temperatures: how likely
// a node is accepted if its parent is. It is learned by the node's depth, its
// rank among the children of its parent, and the confidence of the drafter or,
// where it has none, the peak of the distribution, whose logarithm is minus its
// min-entropy. Few tokens tell little: what they say is mixed with what is
// known of all depths, and that with the drafter's own estimate.
type survival struct {
	cells   [maxDepth][maxRank][buckets]cell
	pool    [maxRank][buckets]cell
	levels  [maxDepth]cell    // that a path goes on to a depth, of all drafts
	width   [maxDepth]float64 // rows of a level that is verified
	memory  float64           // sequences that decode
	heat    calibration
	signed  surprise              // of first tokens, by what the cells expect
	first   surprise              // by what the first level does
	reached [maxDepth + 1]float64 // working memory, by depth
}

func newSurvival() *survival {
	s := new(survival)
	for i := range s.width {
		s.width[i] = 1
	}
	return s
}

// A cell counts tokens, and forgets the oldest.
type cell struct{ accepted, tried float64 }

func (c *cell) add(accepted, weight, most float64) {
	if c.tried > most {
		c.accepted *= most / c.tried
		c.tried = most
	}
	c.accepted += accepted * weight
	c.tried += weight
}

func (c *cell) mean(prior, weight float64) float64 {
	return (c.accepted + prior*weight) / (c.tried + weight)
}

// edges are of the buckets.
var edges = [buckets - 2]float64{0.3, 0.5, 0.65, 0.8, 0.9, 0.96, 0.99}

// A sign is what a drafter says of a node.
type sign struct {
	prior  float64 // probability that it is accepted
	bucket int
}

// sign reads the confidence of a node, calibrated, or the peak of its
// distribution.
func (s *survival) sign(d *spec.Draft, node, depth, rank int) sign {
	x, peak := -1.0, false
	switch {
	case node < len(d.Confidence):
		x = s.heat.apply(depth, d.Confidence[node])
	case node < len(d.Peak):
		x, peak = d.Peak[node], true
	}
	g := sign{x, buckets - 1}
	if x >= 0 && x <= 1 {
		g.bucket = 0
		for _, e := range edges {
			if x < e {
				break
			}
			g.bucket++
		}
	} else {
		g.prior, peak = unknown, true
	}
	if peak && rank > 0 {
		g.prior = (1 - g.prior) / float64(int(1)<<min(rank, maxRank))
	}
	return g
}

// estimate is the probability that a node is accepted if its parent is.
func (s *survival) estimate(g sign, depth, rank int) float64 {
	rank = min(rank, maxRank-1)
	pool := s.pool[rank][g.bucket].mean(g.prior, poolPrior)
	return s.cells[min(depth, maxDepth)-1][rank][g.bucket].mean(pool, cellPrior)
}

// learn takes in whether a node was accepted whose parent was.
func (s *survival) learn(g sign, depth, rank int, accepted bool, weight float64) {
	rank = min(rank, maxRank-1)
	y := 0.0
	if accepted {
		y = 1
	}
	s.pool[rank][g.bucket].add(y, weight, s.memory*poolMost)
	s.cells[min(depth, maxDepth)-1][rank][g.bucket].add(y, weight, s.memory*cellMost)
}

// averages sets dst to the probability of each depth, from 1 at [0], that a
// path that reached the one before goes on to it.
func (s *survival) averages(dst *[maxDepth]float64) {
	p := unknown
	for i := range dst {
		p = s.levels[i].mean(p, levelPrior)
		dst[i] = p
	}
}

// places are the depths and ranks of a draft's nodes.
type places struct{ depths, ranks, children []int32 }

func (p *places) of(d *spec.Draft) {
	p.depths, p.ranks = p.depths[:0], p.ranks[:0]
	if d.Parents == nil {
		for i := range d.Len() {
			p.depths, p.ranks = append(p.depths, int32(i+1)), append(p.ranks, 0)
		}
		return
	}
	p.depths = d.Depths(p.depths)
	p.children = p.children[:0]
	for range d.Len() + 1 {
		p.children = append(p.children, 0)
	}
	for i := range d.Len() {
		row := d.Parent(i) + 1
		p.ranks = append(p.ranks, p.children[row])
		p.children[row]++
	}
}

// estimates appends the conditional acceptance of every node of a draft of a
// request to dst. Its places are left in c.nodes.
func (c *Controller) estimates(dst []float64, p *Proposal) []float64 {
	s, odds := c.arms[p.Arm].of(p.Temperature), p.Request.of(p.Arm, len(c.arms)).odds
	c.nodes.of(p.Draft)
	for i, depth := range c.nodes.depths {
		rank := int(c.nodes.ranks[i])
		e := s.estimate(s.sign(p.Draft, i, int(depth), rank), int(depth), rank)
		dst = append(dst, shifted(e, odds))
	}
	return dst
}

// learned is what an arm's drafts of this step are added to.
func (c *Controller) learned(arm int, temperature float32) *survival {
	s := c.arms[arm].of(temperature)
	s.memory = float64(max(c.now.plain, 1))
	return s
}

// Verified learns what was accepted of the trimmed draft: path are its nodes,
// from the anchor's child on.
func (c *Controller) Verified(p Proposal, path []int32) {
	probe := p.Request.must
	p.Request.must = false
	c.nodes.of(p.Draft)
	if p.Draft.Len() == 0 {
		return
	}
	s, k := c.learned(p.Arm, p.Temperature), p.Request.of(p.Arm, len(c.arms))
	k.seen = c.step
	weight := 1.0
	if alone := c.arms[p.Arm].asked == 1; probe && (alone || c.probing.single) {
		e := min(max(s.begins(p.Draft, &c.nodes), 0.005), 0.995)
		s.check(e, len(path) > 0)
		k.check(e, len(path) > 0)
		if alone {
			// It stands for all that do not draft, else what they taught would stay.
			weight = min(max(s.levels[0].tried/cellMost, 1), s.memory)
		}
	}
	for i := range p.Draft.Len() {
		depth, rank := int(c.nodes.depths[i]), int(c.nodes.ranks[i])
		if tests, accepted := observed(p.Draft, i, depth, path); tests && rank == 0 {
			k.observe(tested{s.sign(p.Draft, i, depth, 0), depth, accepted})
		}
	}
	s.take(p.Draft, &c.nodes, path, weight)
	if p.Draft.Parents == nil && len(p.Draft.Confidence) > 0 {
		s.heat.add(p.Draft.Confidence, len(path))
	}
}

// observed reports whether a node's parent was accepted, so that the node was
// tested, and whether it was accepted itself.
func observed(d *spec.Draft, node, depth int, path []int32) (tested, accepted bool) {
	if depth > 1 && (depth-2 >= len(path) || int(path[depth-2]) != d.Parent(node)) {
		return false, false
	}
	return true, depth <= len(path) && int(path[depth-1]) == node
}

// begins is the probability, by what was learned so far, that one of a draft's
// first tokens is accepted.
func (s *survival) begins(d *spec.Draft, at *places) (sum float64) {
	for i := range d.Len() {
		if rank := int(at.ranks[i]); at.depths[i] == 1 {
			sum += s.estimate(s.sign(d, i, 1, rank), 1, rank)
		}
	}
	return sum
}

// take learns from what was tested.
func (s *survival) take(d *spec.Draft, at *places, path []int32, weight float64) {
	var width [maxDepth]float64
	for i := range d.Len() {
		depth, rank := int(at.depths[i]), int(at.ranks[i])
		tested, accepted := observed(d, i, depth, path)
		if tested {
			s.learn(s.sign(d, i, depth, rank), depth, rank, accepted, weight)
		}
		if depth <= maxDepth {
			width[depth-1]++
		}
	}
	for i, w := range width {
		if w == 0 {
			break
		}
		s.width[i] += 0.1 * (w - s.width[i])
		if i < len(path) {
			s.levels[i].add(1, weight, s.memory*cellMost)
		} else if i == len(path) {
			s.levels[i].add(0, weight, s.memory*cellMost)
		}
	}
}

// check forgets what was learned, but how the drafter is calibrated, if probes
// say that it is no longer true. expected is what the cells make of one's token.
func (s *survival) check(expected float64, accepted bool) {
	if s.signed.add(expected, accepted) {
		s.cells = [maxDepth][maxRank][buckets]cell{}
		s.pool = [maxRank][buckets]cell{}
	}
	if s.first.add(s.levels[0].mean(unknown, levelPrior), accepted) {
		s.levels = [maxDepth]cell{}
	}
}

// impute lets the levels of a draft that are not verified say what was expected
// of them: else averages would be those of promising drafts alone. estimates are
// of its nodes, whose places are in c.nodes.
func (s *survival) impute(d *spec.Draft, depths []int32, estimates []float64, keep []bool) {
	deepest := int32(0)
	for i, k := range keep {
		if k {
			deepest = max(deepest, depths[i])
		}
	}
	// By depth: the probability that a path comes to it.
	reached := &s.reached
	clear(reached[:])
	reached[0] = 1
	for i, depth := range depths {
		if depth > maxDepth {
			continue
		}
		if parent := d.Parent(i); parent >= 0 {
			estimates[i] *= estimates[parent]
		}
		reached[depth] += estimates[i]
	}
	for depth := int(deepest) + 1; depth <= maxDepth && reached[depth] > 0; depth++ {
		before := min(reached[depth-1], 1)
		s.levels[depth-1].add(min(reached[depth]/before, 1), before, s.memory*cellMost)
	}
}
