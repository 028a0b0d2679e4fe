package spec

import (
	"fmt"
	"math/big"
	"testing"
)

// Negative controls: rules that look right, are found in the wild and are
// lossy. The enumeration must say so, with the law that they have.

// A control is a wrong way to draw one token.
type control func(b *branches, p, q Row) []int32

// reject accepts x if a coin falls, else draws from what is left.
func reject(b *branches, p, q Row, x int32) []int32 {
	d := &Draft{Tree: Tree{Tokens: []int32{x}}, Q: []Row{q}}
	v, err := new(Verifier).Rejection(d, func(int) (Row, error) { return p, nil }, b)
	return verify(d, v, err)[:1]
}

// A drafted token is dropped because its own probability is low.
func dropsByOwnProbability(least float64) control {
	return func(b *branches, p, q Row) []int32 {
		x := b.Pick(0, q)
		if q.Weight(x)/q.Total < least {
			return []int32{b.Pick(0, p)}
		}
		return reject(b, p, q, x)
	}
}

// The likeliest token is drafted, and tested as if it had been drawn.
func argmaxAsDrawn(b *branches, p, q Row) []int32 {
	return reject(b, p, q, ranked(q)[0])
}

// Two siblings are drawn without replacement and both tested against q.
func siblingsNotRenormalised(b *branches, p, q Row) []int32 {
	first := b.Pick(0, q)
	var rest Row
	rest.without(q, first)
	second := b.Pick(0, rest)
	for _, x := range []int32{first, second} {
		if b.Accept(0, p.Weight(x)*q.Total, q.Weight(x)*p.Total) {
			return []int32{x}
		}
		var left Row
		if left.residual(p, q, q.Total, p.Total); left.Total > 0 {
			p = left
		}
	}
	return []int32{b.Pick(0, p)}
}

// The best child is followed with its probability, and after a rejection an
// extra token is drawn from p.
func extraTokenAfterRejection(b *branches, p, q Row) []int32 {
	x := ranked(q)[0]
	if b.Accept(0, p.Weight(x), p.Total) {
		return []int32{x}
	}
	return []int32{b.Pick(0, p)}
}

// Residuals are taken of weights that were not normalised.
func residualOfWeights(b *branches, p, q Row) []int32 {
	x := b.Pick(0, q)
	if b.Accept(0, p.Weight(x)*q.Total, q.Weight(x)*p.Total) {
		return []int32{x}
	}
	var left Row
	if left.residual(p, q, 1, 1); left.Total == 0 {
		left = p
	}
	return []int32{b.Pick(0, left)}
}

// The confidence of a draft reads the draft itself (DSpark with c_k of x_k).
func confidenceOfItsOwnToken(b *branches, p, q Row) []int32 {
	x := b.Pick(0, q)
	c := p.Weight(x) / p.Total // as good an estimate as there is
	kept, _ := greedy([][]float64{{c}}, func(rows int) float64 { return []float64{0, 1, 0.7}[rows] })
	if kept[0] == 0 {
		return []int32{b.Pick(0, p)}
	}
	return reject(b, p, q, x)
}

// A biasToy is that of DSpark's appendix A: the first draft has confidence a1,
// the second one that depends on the first token, as it may.
type biasToy struct {
	a1        float64
	c2        func(x1 int32) float64
	perSecond func(rows int) float64
}

var selectionBias = biasToy{
	0.8,
	func(x int32) float64 { return []float64{0.9, 0}[x] },
	func(rows int) float64 { return []float64{0, 1, 0.5, 0.45}[rows] },
}

// draw lets admit say how many drafts are verified.
func (m biasToy) draw(admit func(c [][]float64, perSecond func(int) float64) int) control {
	return func(b *branches, p, q Row) []int32 {
		x := b.Pick(0, q)
		if admit([][]float64{{m.a1, m.c2(x)}}, m.perSecond) == 0 {
			return []int32{b.Pick(0, p)}
		}
		return reject(b, p, q, x)
	}
}

func algorithm1(c [][]float64, perSecond func(int) float64) int {
	kept, _ := greedy(c, perSecond)
	return kept[0]
}

// globalSearch looks for the best theta over all prefixes of the order.
func globalSearch(c [][]float64, perSecond func(int) float64) int {
	kept, _ := search(c, perSecond)
	return kept[0]
}

func TestLossyRulesAreCaught(t *testing.T) {
	for _, c := range []struct {
		name string
		rule control
		p, q Row
		law  []string // of each token; nil: of p
	}{
		{
			"dropped by its own probability", dropsByOwnProbability(0.4),
			weights(7, 2, 1), weights(5, 3, 2),
			[]string{"17/20", "1/10", "1/20"},
		},
		{
			"siblings tested against all of q", siblingsNotRenormalised,
			weights(5, 3, 2), weights(1, 2, 7),
			[]string{"4/15", "8/15", "1/5"},
		},
		{
			"argmax tested as if drawn", argmaxAsDrawn,
			weights(7, 3), weights(6, 4),
			[]string{"1", "0"},
		},
		{
			"extra token after a rejection", extraTokenAfterRejection,
			weights(7, 3), weights(6, 4),
			[]string{"91/100", "9/100"},
		},
		{
			"residual of weights", residualOfWeights,
			weights(5, 3, 2), weights(1, 1, 3),
			[]string{"7/15", "1/3", "1/5"},
		},
		{
			"confidence of its own token", confidenceOfItsOwnToken,
			weights(7, 3), weights(5, 5),
			[]string{"17/20", "3/20"},
		},
		{
			"live global search", selectionBias.draw(globalSearch),
			weights(7, 3), weights(5, 5),
			[]string{"17/20", "3/20"},
		},
		{
			"algorithm 1 instead", selectionBias.draw(algorithm1),
			weights(7, 3), weights(5, 5),
			nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := outcomes(t, func(b *branches) []int32 { return c.rule(b, c.p, c.q) })
			target := outcomes(t, func(b *branches) []int32 { return []int32{b.Pick(0, c.p)} })
			if lossy := got.Differs(target) != ""; lossy != (c.law != nil) {
				t.Errorf("lossy: %v, expected %v", lossy, c.law != nil)
			}
			if c.law == nil {
				return
			}
			if diff := got.Differs(lawOf(c.law)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// lawOf is the law of one token that has these probabilities.
func lawOf(probs []string) law {
	l := law{}
	for i, p := range probs {
		r, _ := new(big.Rat).SetString(p)
		l[fmt.Sprint([]int{i})] = r
	}
	return l
}
