package moe

import (
	"cmp"
	"math"
	"slices"
)

// reference chooses and weighs experts in float64, as the papers write it.
// mistake is what a wrong implementation would do instead; "": nothing.
type reference struct {
	Config
	mistake string
}

// route returns the weights of the chosen experts of a token.
func (r *reference) route(logits, bias []float32, chosen []int32) map[int]float64 {
	c := r.Config
	scores := make([]float64, c.Experts)
	total := 0.0
	for _, v := range logits {
		total += math.Exp(float64(v))
	}
	for e, v := range logits {
		switch x := float64(v); c.Scoring {
		case Softmax:
			scores[e] = math.Exp(x) / total
		case Sigmoid:
			scores[e] = 1 / (1 + math.Exp(-x))
		case SqrtSoftplus:
			scores[e] = math.Sqrt(math.Log(1 + math.Exp(x)))
		}
	}
	choice := slices.Clone(scores)
	for e, b := range bias {
		choice[e] += float64(b)
	}
	if c.Groups > 1 {
		r.limit(choice)
	}
	order := descending(choice)[:c.Active]
	if c.Hash {
		order = order[:0]
		for _, e := range chosen {
			order = append(order, int(e))
		}
	}
	if r.mistake == "bias in weights" {
		scores = choice
	}
	weights, sum := map[int]float64{}, 0.0
	for _, e := range order {
		sum += scores[e]
	}
	for _, e := range order {
		weights[e] = scores[e] * c.Scale
		if c.Normalize {
			weights[e] /= sum
		}
	}
	return weights
}

// limit leaves the experts of the best groups.
func (r *reference) limit(choice []float64) {
	size := r.Experts / r.Groups
	var scores []float64
	for group := range slices.Chunk(choice, size) {
		best, score := descending(group), 0.0
		for _, e := range best[:r.GroupTop] {
			score += group[e]
		}
		if r.mistake == "mean of groups" {
			score = 0
			for _, v := range group {
				score += v
			}
		}
		scores = append(scores, score)
	}
	for _, g := range descending(scores)[r.ActiveGroups:] {
		for i := range size {
			choice[g*size+i] = math.Inf(-1)
		}
	}
}

// descending lists the indices of x from the largest value to the smallest.
func descending(x []float64) []int {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(x[b], x[a]) })
	return order
}

// network is a gated network: its matrices, row after row.
type network struct{ gate, up, down []float32 }

// forward is Σ w_e · expert_e(x) + shared(x).
func (r *reference) forward(x []float32, weights map[int]float64, experts []network, shared *network) []float64 {
	y := make([]float64, len(x))
	add := func(n *network, weight float64) {
		gate, up := product(n.gate, wide(x)), product(n.up, wide(x))
		for i, g := range gate {
			if r.Limit > 0 && !(r.mistake == "shared expert not clamped" && n == shared) {
				g, up[i] = min(g, r.Limit), max(min(up[i], r.Limit), -r.Limit)
			}
			gate[i] = g / (1 + math.Exp(-g)) * up[i]
		}
		for i, v := range product(n.down, gate) {
			y[i] += weight * v
		}
	}
	for e, w := range weights {
		add(&experts[e], w)
	}
	if shared != nil {
		add(shared, 1)
	}
	return y
}

func product(w []float32, x []float64) (y []float64) {
	for row := range slices.Chunk(w, len(x)) {
		sum := 0.0
		for i, v := range row {
			sum += float64(v) * x[i]
		}
		y = append(y, sum)
	}
	return y
}

func wide(x []float32) (y []float64) {
	for _, v := range x {
		y = append(y, float64(v))
	}
	return y
}
