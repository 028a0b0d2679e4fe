package spec

import (
	"math"

	"github.com/foretoken/foretoken/internal/sample"
)

// A Row is a distribution over tokens: Weight(t) / Total. Weights are not
// normalised, and no rule divides by them: what is a ratio stays numerator and
// denominator, so that a token of no probability, or a row of little mass,
// makes no NaN.
type Row struct {
	IDs   []int32   // the tokens of W, ascending; nil: 0, 1, 2, ...
	W     []float64 // weights: finite, none negative
	Total float64   // their sum in order; positive, 0 only in the zero Row

	ids []int32 // memory for IDs
}

// Set makes r the distribution of d, in memory of its own.
func (r *Row) Set(d sample.Dist) {
	r.IDs = nil
	if d.IDs != nil {
		r.ids = append(r.ids[:0], d.IDs...)
		r.IDs = r.ids
	}
	r.W = resize(r.W, len(d.X))
	r.Total = d.Weights(r.W)
}

// Weight returns the weight of a token, 0 for one that the row does not have.
func (r *Row) Weight(token int32) float64 {
	i := int(token)
	if r.IDs != nil {
		i = r.find(token)
	}
	if i < 0 || i >= len(r.W) {
		return 0
	}
	return r.W[i]
}

// find returns the index of a token among IDs, or -1.
func (r *Row) find(token int32) int {
	low, high := 0, len(r.IDs)
	for low < high {
		if mid := (low + high) / 2; r.IDs[mid] < token {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == len(r.IDs) || r.IDs[low] != token {
		return -1
	}
	return low
}

// token returns the token of weight i.
func (r *Row) token(i int) int32 {
	if r.IDs == nil {
		return int32(i)
	}
	return r.IDs[i]
}

// set makes r hold the tokens of p, in memory of its own, with weights to be
// written.
func (r *Row) set(p Row) {
	r.IDs = nil
	if p.IDs != nil {
		r.ids = append(r.ids[:0], p.IDs...)
		r.IDs = r.ids
	}
	r.W = resize(r.W, len(p.W))
}

// residual makes r max(a·p - b·q, 0), of weights. It may be p itself. The total
// is 0 if nothing is left.
func (r *Row) residual(p, q Row, a, b float64) {
	r.set(p)
	r.Total = 0
	if p.IDs == nil && q.IDs == nil {
		n := min(len(p.W), len(q.W))
		for i, w := range p.W[:n] {
			r.W[i] = max(float64(a*w)-float64(b*q.W[i]), 0)
			r.Total += r.W[i]
		}
		for i, w := range p.W[n:] {
			r.W[n+i] = a * w
			r.Total += r.W[n+i]
		}
		return
	}
	j := 0 // among q.IDs, which ascend as p's do
	for i, w := range p.W {
		token, qw := p.token(i), 0.0
		if q.IDs == nil {
			qw = q.Weight(token)
		} else {
			for j < len(q.IDs) && q.IDs[j] < token {
				j++
			}
			if j < len(q.IDs) && q.IDs[j] == token {
				qw = q.W[j]
			}
		}
		r.W[i] = max(float64(a*w)-float64(b*qw), 0)
		r.Total += r.W[i]
	}
}

// without makes r the distribution q given that a token is not drawn. It may be
// q itself. The sum is taken anew: subtracting a weight near the total would
// leave rounding where the others' mass was.
func (r *Row) without(q Row, token int32) {
	r.set(q)
	r.Total = 0
	for i, w := range q.W {
		if q.token(i) == token {
			w = 0
		}
		r.W[i] = w
		r.Total += w
	}
}

// pick returns the token at u, in (0, 1), of the cumulated weights.
func (r *Row) pick(u float64) int32 {
	target, sum, last := u*r.Total, 0.0, 0
	for i, w := range r.W {
		if w > 0 {
			last = i
			if sum += w; sum > target {
				break
			}
		}
	}
	return r.token(last)
}

// inverse returns the power of two that brings x > 0 to [1/2, 1). A product
// with it is not rounded.
func inverse(x float64) float64 {
	_, e := math.Frexp(x)
	return math.Ldexp(1, -e)
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
