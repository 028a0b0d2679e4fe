package spec

import (
	"cmp"
	"slices"
)

// Admission decides how many drafts of every chain in a batch are verified
// (DSpark, appendix A and algorithm 1). confidence[r][j] is the probability that
// draft j of request r is accepted if those before it are. It must depend on
// nothing after draft j-1: then whether draft j is verified does not depend on
// its own token, and the law is kept.
type Admission struct {
	order []survival
	kept  []int
}

// A survival is the probability that a draft and all before it are accepted.
type survival struct {
	p       float64
	request int
	place   int
}

// Greedy is algorithm 1. perSecond is the measured number of steps per second
// of a batch of that many rows. Drafts are admitted in order of survival while
// the tokens per second, theta, strictly rise, and no further: to look beyond
// a step that does not pay would let a draft be cut by what comes after it. It
// returns the number of drafts to verify of every request, valid until the next
// call.
func (a *Admission) Greedy(confidence [][]float64, perSecond func(rows int) float64) (kept []int, theta float64) {
	a.sort(confidence)
	rows, tokens := len(confidence), float64(len(confidence))
	theta = tokens * perSecond(rows)
	for _, s := range a.order {
		next := (tokens + s.p) * perSecond(rows+1)
		if next <= theta {
			break
		}
		rows, tokens, theta = rows+1, tokens+s.p, next
		a.kept[s.request]++
	}
	return a.kept, theta
}

// Top admits the budget most likely drafts. It keeps the law for any budget that
// was fixed before these drafts were made, as that of an earlier step.
func (a *Admission) Top(confidence [][]float64, budget int) (kept []int) {
	a.sort(confidence)
	for _, s := range a.order[:min(max(budget, 0), len(a.order))] {
		a.kept[s.request]++
	}
	return a.kept
}

// sort orders all drafts by survival, then position, then request. Survival
// falls along a chain, so that every prefix of the order is a prefix of every
// chain.
func (a *Admission) sort(confidence [][]float64) {
	a.order, a.kept = a.order[:0], resize(a.kept, len(confidence))
	clear(a.kept)
	for r, chain := range confidence {
		p := 1.0
		for j, c := range chain {
			p *= c
			a.order = append(a.order, survival{p, r, j})
		}
	}
	slices.SortFunc(a.order, func(x, y survival) int {
		return cmp.Or(cmp.Compare(y.p, x.p), cmp.Compare(x.place, y.place), cmp.Compare(x.request, y.request))
	})
}
