package spec

import (
	"math"
	"slices"
)

// Admission decides which drafted tokens of a batch are verified (DSpark,
// appendix A and algorithm 1), of chains and of trees. A node's confidence is
// the probability that it is accepted if its parent is. It must depend on
// nothing after its parent: then whether a node is verified does not depend on
// its own token, and the law is kept.
//
// Use: Begin, Add for every draft, one of Greedy and Top, and Keep for every
// draft. Nodes are admitted in order of survival, then depth, then request, so
// that every prefix of the order has the parents of its nodes.
type Admission struct {
	order  []place
	sorted bool
	first  []int // node of each request
	keep   []bool
	reach  []float64 // probability that a node and all before it are accepted
	drawn  bool
	rows   int
	tokens float64
	// Working memory of one draft.
	depths   []int32
	children []int32
}

// A place is where a node comes in the order of admission, packed into one
// number, as this sorts much faster: the complement of the survival that it is
// admitted by, as a float32, then its depth, its rank among the children of its
// parent if it is of a drawn tree, and itself.
type place uint64

const (
	nodeBits  = 20
	rankBits  = 6
	depthBits = 8
)

func newPlace(survival float64, depth, rank, node int) place {
	order := uint64(^math.Float32bits(float32(survival))) & (1<<30 - 1) // of 0 to 1
	order = order<<depthBits | uint64(min(depth, 1<<depthBits-1))
	order = order<<rankBits | uint64(min(rank, 1<<rankBits-1))
	return place(order<<nodeBits | uint64(node))
}

func (p place) node() int { return int(p & (1<<nodeBits - 1)) }

// Begin starts a step in which that many sequences decode without a draft.
func (a *Admission) Begin(plain int) {
	a.order, a.first, a.keep, a.reach = a.order[:0], a.first[:0], a.keep[:0], a.reach[:0]
	a.sorted, a.drawn, a.rows, a.tokens = false, false, plain, float64(plain)
}

// Add offers the draft of a sequence, with a confidence of each node, from 0 to
// 1. The first must nodes are verified whatever comes.
func (a *Admission) Add(d *Draft, confidence []float64, must int) {
	base := len(a.keep)
	a.first = append(a.first, base)
	a.rows++
	a.tokens++
	drawn := d.Drawn()
	a.drawn = a.drawn || drawn
	if d.Parents != nil {
		a.depths = d.Depths(a.depths[:0])
	}
	at := len(a.order)
	for i, p := range confidence {
		depth := i + 1
		if d.Parents != nil {
			depth = int(a.depths[i])
		}
		if parent := d.Parent(i); parent >= 0 {
			p *= a.reach[base+parent]
		}
		a.reach = append(a.reach, p)
		a.keep = append(a.keep, i < must)
		if i < must {
			a.rows++
			a.tokens += p
			continue
		}
		a.order = append(a.order, newPlace(p, depth, 0, base+i))
	}
	if drawn && d.Parents != nil {
		a.inOrderDrawn(d, base, a.order[at:])
	}
}

// inOrderDrawn makes nodes of a drawn tree come in the order that they were
// drawn in: the first children of a level, the second ones, then the next level.
// The noise of a depth serves all rows of that depth (Siblings), so that what a
// cousin's child looks like says something of a node's own token, though neither
// is on the other's path.
func (a *Admission) inOrderDrawn(d *Draft, base int, nodes []place) {
	a.children = resize(a.children, d.Len()+1) // of each row so far
	clear(a.children)
	for i, skipped := 0, d.Len()-len(nodes); i < d.Len(); i++ {
		row := d.Parent(i) + 1
		if i >= skipped {
			nodes[i-skipped] = newPlace(1, int(a.depths[i]), int(a.children[row]), base+i)
		}
		a.children[row]++
	}
	slices.Sort(nodes)
	least := 1.0
	for i, p := range nodes {
		least = min(least, a.reach[p.node()])
		// The same, by this survival.
		nodes[i] = newPlace(least, 0, 0, 0) | p&(1<<(depthBits+rankBits+nodeBits)-1)
	}
}

// Drawn reports whether a draft of the batch has tokens that were drawn.
func (a *Admission) Drawn() bool { return a.drawn }

// Greedy is algorithm 1. perSecond is the measured number of steps per second
// of a batch of that many rows. Nodes are admitted in order while the tokens per
// second, theta, strictly rise, and no further: to look beyond a step that does
// not pay would let a draft be cut by what comes after it.
func (a *Admission) Greedy(perSecond func(rows int) float64) (theta float64) {
	a.sort()
	theta = a.tokens * perSecond(a.rows)
	for _, p := range a.order {
		next := (a.tokens + a.reach[p.node()]) * perSecond(a.rows+1)
		if next <= theta {
			break
		}
		theta = next
		a.admit(p)
	}
	return theta
}

// Best returns how many nodes give the most tokens per second, and these. To
// admit that many of the same drafts keeps the law only if nothing was drawn; of
// later drafts it always does.
func (a *Admission) Best(perSecond func(rows int) float64) (budget int, theta float64) {
	a.sort()
	tokens := a.tokens
	theta = tokens * perSecond(a.rows)
	for i, p := range a.order {
		tokens += a.reach[p.node()]
		if t := tokens * perSecond(a.rows+i+1); t > theta {
			budget, theta = i+1, t
		}
	}
	return budget, theta
}

// Top admits the budget most likely nodes. It keeps the law for any budget that
// was fixed before these drafts were made, as that of an earlier step.
func (a *Admission) Top(budget int) {
	a.sort()
	for _, p := range a.order[:min(max(budget, 0), len(a.order))] {
		a.admit(p)
	}
}

func (a *Admission) admit(p place) {
	a.rows++
	a.tokens += a.reach[p.node()]
	a.keep[p.node()] = true
}

// Keep says which nodes of the request's draft, in the order of Add, are
// verified; valid until Begin.
func (a *Admission) Keep(request int) []bool {
	end := len(a.keep)
	if request+1 < len(a.first) {
		end = a.first[request+1]
	}
	return a.keep[a.first[request]:end]
}

// Tokens returns how many tokens the step commits in expectation.
func (a *Admission) Tokens() float64 { return a.tokens }

// sort orders nodes by survival, then depth, then request. Survival falls along
// a path.
func (a *Admission) sort() {
	if !a.sorted {
		slices.Sort(a.order)
		a.sorted = true
	}
}
