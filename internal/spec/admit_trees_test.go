package spec

import (
	"fmt"
	"hash/fnv"
	"testing"

	"github.com/foretoken/foretoken/internal/spec/exact"
)

// drawWithNoiseOfDepths draws a tree as Siblings does: the noise of a depth and
// rank serves all rows of the depth.
func (m toy) drawWithNoiseOfDepths(b *branches, fanout []int) *Draft {
	d := new(Draft)
	d.Reset()
	level := []int{0}
	for _, n := range fanout {
		noise := make([]float64, n)
		for i := range noise {
			// A row's first child is one of three outcomes, the second, of what is
			// left, one of six.
			if i == 0 {
				noise[i] = (float64(b.Pick(0, weights(1, 1, 1))) + 0.5) / 3
			} else {
				noise[i] = (float64(b.Pick(0, weights(1, 1, 1, 1, 1, 1))) + 0.5) / 6
			}
		}
		var below []int
		for _, row := range level {
			q := m.q(history(nil, d, row))
			d.Q = append(d.Q, make([]Row, row+1-len(d.Q))...)
			d.Q[row] = q
			for i := 0; i < n && q.Total > 0; i++ {
				x := q.pick(noise[i])
				below = append(below, d.Add(x, row-1)+1)
				var rest Row
				rest.without(q, x)
				q = rest
			}
		}
		level = below
	}
	return d
}

// thirds is a toy of two tokens whose rows have weights of three in all.
func thirds(seed uint64) toy {
	row := func(of byte) func([]int32) Row {
		return func(h []int32) Row {
			one := float64(hash(seed, of, h) % 4)
			return weights(one, 3-one)
		}
	}
	return toy{row('p'), row('q')}
}

func hash(of ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, of...)
	return h.Sum64() >> 7
}

// cutTree is the law of a round with a tree that algorithm 1 cuts. Confidences
// read the tokens before a node, siblings before it included; perSecond is any
// function. seen are the distributions that the admission knows to be drawn
// from.
func cutTree(t exact.Failer, seed uint64, seen func(d *Draft) *Draft) law {
	m := thirds(seed)
	perSecond := func(rows int) float64 { return float64(1 + hash(seed, "rows", rows)%8) }
	return outcomes(t, func(b *branches) []int32 {
		d := m.drawWithNoiseOfDepths(b, []int{2, 1, 1})
		confidence := make([]float64, d.Len())
		for i := range confidence {
			var before []int32
			for j := range i {
				if d.Parent(j) == d.Parent(i) {
					before = append(before, d.Tokens[j])
				}
			}
			confidence[i] = float64(hash(seed, history(nil, d, d.Parent(i)+1), before)%5) / 4
		}
		a := new(Admission)
		a.Begin(0)
		a.Add(seen(d), confidence, 0)
		a.Greedy(perSecond)
		d.Keep(a.Keep(0))
		v, err := new(Verifier).Rejection(d, m.rows(nil, d), b)
		out := verify(d, v, err)
		for len(out) < 3 {
			out = append(out, b.Pick(0, m.p(out)))
		}
		return out[:3]
	})
}

// A drawn tree may be cut by the confidences of all its nodes, though the noise
// of one depth serves all of its rows. To cut it in order of survival alone, as
// a chosen tree, is lossy.
func TestAdmissionOfDrawnTreesIsLossless(t *testing.T) {
	lossy := 0
	for seed := range uint64(20) {
		want := thirds(seed).target(t, 3)
		if diff := cutTree(t, seed, func(d *Draft) *Draft { return d }).Differs(want); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		if cutTree(t, seed, func(d *Draft) *Draft { return &Draft{Tree: d.Tree} }).Differs(want) != "" {
			lossy++
		}
	}
	if lossy == 0 {
		t.Error("no tree says that the order of survival is lossy")
	}
}
