package moe

import (
	"math"
	"slices"
)

// A router chooses the experts of tokens and weighs them. What it computes of a
// token depends on nothing but the token.
type router struct {
	*Config
	bias  []float32 // [Experts] or nil
	table []int32   // [Vocab, Active] or nil
}

// route chooses the experts of a token from the gate's logits [Experts], which it
// turns into scores: experts [Active], ascending, and weights [Active]. spare is
// memory for Experts + Groups values.
//
// Where two scores are equal the lower expert is chosen. If some are not numbers,
// or infinite, nothing can be chosen: weights are NaN then, of the first experts,
// so that the token and no other is lost.
func (r *router) route(logits, spare []float32, token int32, experts []int32, weights []float32) {
	scores := logits
	r.score(scores)
	if r.table != nil {
		copy(experts, r.table[int(token)*r.Active:])
	} else if choice := r.choice(scores, spare); !finite(choice) {
		for i := range experts {
			experts[i], weights[i] = int32(i), float32(math.NaN())
		}
		return
	} else {
		top(choice, experts)
	}
	slices.Sort(experts)
	r.weigh(scores, experts, weights)
}

// score turns logits into scores. Whether a score rounds up or down can decide
// which expert is chosen; as in the models' own code they are float32.
func (r *router) score(x []float32) {
	switch r.Scoring {
	case Softmax:
		high, sum := float64(slices.Max(x)), 0.0
		for _, v := range x {
			sum += math.Exp(float64(v) - high)
		}
		for i, v := range x {
			x[i] = float32(math.Exp(float64(v)-high) / sum)
		}
	case Sigmoid:
		for i, v := range x {
			x[i] = float32(1 / (1 + math.Exp(-float64(v))))
		}
	case SqrtSoftplus:
		for i, v := range x {
			softplus := max(float64(v), 0) + math.Log1p(math.Exp(-math.Abs(float64(v))))
			x[i] = float32(math.Sqrt(softplus))
		}
	}
}

// choice is what experts are chosen by: scores with the bias, and -∞ in groups
// that are not chosen from.
func (r *router) choice(scores, spare []float32) []float32 {
	if r.bias == nil && !r.grouped() {
		return scores
	}
	choice, groups := spare[:r.Experts], spare[r.Experts:]
	copy(choice, scores)
	for i, b := range r.bias {
		choice[i] += b
	}
	if r.grouped() && finite(choice) {
		r.mask(choice, groups)
	}
	return choice
}

// mask leaves the best groups, and of equal ones the first. groups is memory for
// their scores.
func (r *router) mask(choice, groups []float32) {
	size := r.Experts / r.Groups
	for g := range groups {
		groups[g] = r.groupScore(choice[g*size : (g+1)*size])
	}
	for g, own := range groups {
		better := 0
		for h, other := range groups {
			if other > own || other == own && h < g {
				better++
			}
		}
		if better < r.ActiveGroups {
			continue
		}
		for i := range size {
			choice[g*size+i] = float32(math.Inf(-1))
		}
	}
}

// groupScore is the largest score of a group, or the sum of the two largest.
func (r *router) groupScore(scores []float32) float32 {
	best, second := float32(math.Inf(-1)), float32(math.Inf(-1))
	for _, v := range scores {
		switch {
		case v > best:
			best, second = v, best
		case v > second:
			second = v
		}
	}
	if r.GroupTop == 1 {
		return best
	}
	return best + second
}

// finite reports whether values can be compared: none is NaN or +∞. -∞ is a
// choice, never to take an expert.
func finite(x []float32) bool {
	return !slices.ContainsFunc(x, func(v float32) bool { return !(v <= math.MaxFloat32) })
}

// top finds the largest values of x, as many as best has room for; of equal ones
// the first.
func top(x []float32, best []int32) {
	n := 0
	for i, v := range x {
		if n == len(best) {
			if !(v > x[best[n-1]]) {
				continue
			}
			n--
		}
		at := n
		for ; at > 0 && v > x[best[at-1]]; at-- {
			best[at] = best[at-1]
		}
		best[at] = int32(i)
		n++
	}
}

// weigh gives chosen experts their weights.
func (r *router) weigh(scores []float32, experts []int32, weights []float32) {
	scale := r.Scale
	if r.Normalize {
		sum := 1e-20 // all scores can be 0
		for _, e := range experts {
			sum += float64(scores[e])
		}
		scale /= sum
	}
	for i, e := range experts {
		weights[i] = float32(float64(scores[e]) * scale)
	}
}
