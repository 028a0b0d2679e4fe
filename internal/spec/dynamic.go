package spec

import (
	"cmp"
	"math"
	"slices"
)

// A Candidate is a token that a drafter thinks of, with the natural logarithm
// of its probability.
type Candidate struct {
	Token   int32
	LogProb float32
}

// A Dynamic grows the tree of EAGLE-2 (2406.16858, section 4): every expansion
// computes the best nodes of the level before and notes the best children of
// each; at the end the best of all noted nodes make the draft. A node is as good
// as its path is probable.
type Dynamic struct {
	nodes    []expanded
	frontier []int32
	order    []int32
	kept     []int32
}

type expanded struct {
	token  int32
	parent int32   // index of nodes, -1 for the anchor
	score  float64 // log of the path's probability
}

// Start begins a tree with the candidates for the first level, best first. All
// of them are the frontier, but for impossible ones, which are never noted.
func (g *Dynamic) Start(top []Candidate) {
	g.nodes, g.frontier = g.nodes[:0], g.frontier[:0]
	g.note(-1, 0, top)
	for i := range g.nodes {
		g.frontier = append(g.frontier, int32(i))
	}
}

func (g *Dynamic) note(parent int32, score float64, top []Candidate) {
	for _, c := range top {
		if s := score + float64(c.LogProb); !math.IsInf(s, -1) {
			g.nodes = append(g.nodes, expanded{c.Token, parent, s})
		}
	}
}

// Frontier returns the nodes to compute next, by number in order of their
// probability; valid until the next call.
func (g *Dynamic) Frontier() []int32 { return g.frontier }

// Node returns the token and the parent of a node that was noted, -1 for the
// anchor.
func (g *Dynamic) Node(i int32) (token, parent int32) {
	return g.nodes[i].token, g.nodes[i].parent
}

// Extend notes the candidates after each node of the frontier, in the
// frontier's order, best first, and makes the best k of them the frontier. Ties
// go to the lower number.
func (g *Dynamic) Extend(tops [][]Candidate, k int) {
	first := len(g.nodes)
	for i, parent := range g.frontier {
		g.note(parent, g.nodes[parent].score, tops[i])
	}
	g.frontier = g.best(g.frontier[:0], first, k)
}

// Kept returns the nodes that the last Draft chose, by number in order.
func (g *Dynamic) Kept() []int32 { return g.kept }

// best appends the best n of the nodes from first on to dst, best first.
func (g *Dynamic) best(dst []int32, first, n int) []int32 {
	g.order = g.order[:0]
	for i := first; i < len(g.nodes); i++ {
		g.order = append(g.order, int32(i))
	}
	slices.SortFunc(g.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(g.nodes[b].score, g.nodes[a].score), cmp.Compare(a, b))
	})
	return append(dst, g.order[:min(n, len(g.order))]...)
}

// Draft makes dst the best n of all nodes, in the order that they were noted.
// A parent is there if its child is: its path is as probable at least, and its
// number lower, which is why ties go that way.
func (g *Dynamic) Draft(dst *Draft, n int) {
	g.kept = g.best(g.kept[:0], 0, n)
	slices.Sort(g.kept)
	dst.Reset()
	for _, i := range g.kept {
		node, score, parent := g.nodes[i], 0.0, -1
		if node.parent >= 0 {
			score = g.nodes[node.parent].score
			parent, _ = slices.BinarySearch(g.kept, node.parent)
		}
		dst.Add(node.token, parent)
		dst.Confidence = append(dst.Confidence, math.Exp(min(node.score-score, 0)))
	}
}
