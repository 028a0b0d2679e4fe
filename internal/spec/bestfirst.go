package spec

import (
	"cmp"
	"math"
	"slices"
)

// A BestFirst grows trees over block drafters, whose candidates of a position
// do not depend on the path (DDTree, 2604.12989): the n likeliest paths by the
// product of their tokens' probabilities. Nodes come in that order, so the
// first m nodes are the best tree of m, and whoever knows what a row costs cuts
// where the next one is not worth it.
type BestFirst struct {
	open []path // paths whose parent is in the tree, best last; there are few
}

// A path is a node that may be added: a candidate of its position.
type path struct {
	score  float64 // log of the path's probability
	above  float64 // without the last token
	parent int
	depth  int // from 0
	rank   int // among the candidates of the position
}

// Draft makes dst the tree of n nodes, or as many as there are: positions[i]
// are the candidates for depth i+1, best first. Of equally likely paths the one
// that was opened first comes first.
func (g *BestFirst) Draft(dst *Draft, positions [][]Candidate, n int) {
	dst.Reset()
	g.open = g.open[:0]
	g.push(positions, path{parent: -1})
	for len(g.open) > 0 && dst.Len() < n {
		p := g.open[len(g.open)-1]
		g.open = g.open[:len(g.open)-1]
		c := positions[p.depth][p.rank]
		node := dst.Add(c.Token, p.parent)
		dst.Confidence = append(dst.Confidence, math.Exp(min(float64(c.LogProb), 0)))
		g.push(positions, path{above: p.above, parent: p.parent, depth: p.depth, rank: p.rank + 1})
		g.push(positions, path{above: p.score, parent: node, depth: p.depth + 1})
	}
}

// push opens a path, if there is such a candidate and it is possible.
func (g *BestFirst) push(positions [][]Candidate, p path) {
	if p.depth == len(positions) || p.rank == len(positions[p.depth]) {
		return
	}
	p.score = p.above + float64(positions[p.depth][p.rank].LogProb)
	if math.IsInf(p.score, -1) {
		return
	}
	// Before those that are equal, which were opened earlier.
	at, _ := slices.BinarySearchFunc(g.open, p.score, func(o path, score float64) int {
		return cmp.Compare(o.score, score)
	})
	g.open = slices.Insert(g.open, at, p)
}
