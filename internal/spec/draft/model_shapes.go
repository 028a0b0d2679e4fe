package draft

import (
	"math"

	"github.com/foretoken/foretoken/internal/spec"
)

// chain drafts one token after another.
type chain struct{}

func (chain) start(d *spec.Draft)   { d.ResetChain() }
func (chain) drawn() bool           { return true }
func (chain) wanted(*work, int) int { return 1 }

func (chain) frontier(w *work, _ int) {
	last := w.Draft.Len() - 1
	if last >= 0 && w.Draft.Len() < w.Nodes && !w.ends(w.Draft.Tokens[last]) {
		w.frontier = append(w.frontier, int32(last))
	}
}

func (chain) grow(w *work, _ int) {
	if len(w.tops[0]) == 0 {
		w.done = true
		return
	}
	add(w.Draft, w.tops[0][0], w.Draft.Len()-1, w.peaks[0])
}

func (chain) node(w *work, node int) (token int32, parent int) {
	return w.Draft.Tokens[node], node - 1
}

// ends reports whether nothing comes after a token.
func (w *work) ends(token int32) bool { return w.Row.Params.Ends(token, w.Row.EOG) }

// static drafts the trees of a template. Where tokens are drawn, siblings are;
// else the first of them is the sample that the target is coupled to, the others
// the likeliest.
type static struct{ *spec.Template }

func (static) start(d *spec.Draft) { d.Reset() }
func (static) drawn() bool         { return true }

func (s static) wanted(w *work, node int) int {
	if node >= 0 {
		node = int(w.template[node])
	}
	return s.Children(node + 1)
}

func (s static) frontier(w *work, depth int) {
	if depth > s.Depth() || w.Draft.Len() >= w.Nodes {
		return
	}
	for node, at := range w.template {
		first, end := s.Level(depth - 1)
		if int(at) >= first && int(at) < end && s.Children(int(at)+1) > 0 && !w.ends(w.Draft.Tokens[node]) {
			w.frontier = append(w.frontier, int32(node))
		}
	}
}

func (s static) grow(w *work, depth int) {
	first, end := s.Level(depth)
	for i, node := range w.frontier {
		at := -1
		if node >= 0 {
			at = int(w.template[node])
		}
		for child := first; child < end; child++ {
			parent, rank := s.Node(child)
			if parent == at && rank < len(w.tops[i]) && w.Draft.Len() < w.Nodes {
				add(w.Draft, w.tops[i][rank], int(node), w.peaks[i])
				w.template = append(w.template, int32(child))
			}
		}
	}
}

func (static) node(w *work, node int) (token int32, parent int) {
	return w.Draft.Tokens[node], w.Draft.Parent(node)
}

// dynamic drafts the trees of EAGLE-2: children are the likeliest tokens, and
// the best nodes of each level are computed. It takes no more of them than leave
// places for the levels to come.
type dynamic struct{ topK int }

func (dynamic) start(d *spec.Draft)     { d.Reset() }
func (dynamic) drawn() bool             { return false }
func (s dynamic) wanted(*work, int) int { return s.topK }

// width is how many nodes of a level are computed.
func (s dynamic) width(w *work) int {
	return max(1, min(s.topK, w.slots/max(w.Depth-1, 1)))
}

func (s dynamic) frontier(w *work, _ int) {
	for _, node := range w.dynamic.Frontier() {
		token, _ := w.dynamic.Node(node)
		if len(w.frontier) < s.width(w) && !w.ends(token) {
			w.frontier = append(w.frontier, node)
		}
	}
}

func (s dynamic) grow(w *work, depth int) {
	tops := w.tops[:len(w.frontier)]
	if depth == 1 {
		w.heights = append(w.heights[:0], w.peaks[0])
		w.dynamic.Start(tops[0])
	} else {
		for i, node := range w.frontier {
			for len(w.heights) < int(node)+2 {
				w.heights = append(w.heights, math.NaN())
			}
			w.heights[node+1] = w.peaks[i]
		}
		w.dynamic.Extend(w.aligned(tops), s.width(w))
	}
	d := w.Draft
	w.dynamic.Draft(d, w.Nodes)
	for _, node := range w.dynamic.Kept() {
		_, parent := w.dynamic.Node(node)
		d.Peak = append(d.Peak, w.heights[parent+1])
	}
}

// aligned returns tops with nothing for nodes of the dynamic frontier that were
// not computed.
func (w *work) aligned(tops [][]spec.Candidate) [][]spec.Candidate {
	w.lined = w.lined[:0]
	next := 0
	for _, node := range w.dynamic.Frontier() {
		if next < len(w.frontier) && w.frontier[next] == node {
			w.lined = append(w.lined, tops[next])
			next++
		} else {
			w.lined = append(w.lined, nil)
		}
	}
	return w.lined
}

func (dynamic) node(w *work, node int) (token int32, parent int) {
	token, up := w.dynamic.Node(int32(node))
	return token, int(up)
}
