package adapt

import (
	"math"
	"testing"

	"github.com/foretoken/foretoken/internal/spec"
)

// rounds lets requests have a token drafted and verified in every step, as often
// accepted of ten as they are given.
func rounds(c *Controller, requests []Request, steps int, of []int) {
	asks := make([]Ask, len(requests))
	for step := range steps {
		for r := range requests {
			asks[r] = Ask{Request: &requests[r], Allowed: 1, Depth: 1, Nodes: 1, Offers: []*spec.Draft{chain(1)}}
		}
		c.Choose(asks, Batch{})
		for r := range requests {
			var path []int32
			if (step*7+r*3)%10 < of[r] {
				path = []int32{0}
			}
			c.Verified(Proposal{&requests[r], 0, 0, chain(1)}, path)
		}
		c.Stepped(Step{Rows: 2 * len(requests), Sequences: len(requests), Tokens: len(requests), Took: 11 * ms, Arm: -1})
	}
}

func learner(t *testing.T) *Controller {
	return New(Config{Arms: []Arm{{Depth: 1, Free: true}}, Steps: profiled(t, []int{1, 100}, 10*ms, 11*ms)})
}

// What was expected too much of all is not held against each: once the level is
// known, no request is unlike it, and the variance of requests shows that.
func TestRequestsAreNotBlamedForTheLevel(t *testing.T) {
	c, requests := learner(t), make([]Request, 8)
	all := []int{2, 2, 2, 2, 2, 2, 2, 2}
	rounds(c, requests, 5, all)
	early := c.arms[0].shifts
	rounds(c, requests, 200, all)
	for r := range requests {
		if k := &requests[r].arms[0]; math.Abs(k.shift) > 0.2 {
			t.Errorf("request %d, which is as all are, has a shift of %.2f", r, k.shift)
		}
	}
	if v := c.arms[0].shifts; v > 0.15 || v > early/2 {
		t.Errorf("requests that are alike have a variance of %.3f, %.3f at first", v, early)
	}
}

// Of requests that are unlike each one's acceptance is known.
func TestRequestsThatAreUnlikeAreToldApart(t *testing.T) {
	c, requests := learner(t), make([]Request, 4)
	rounds(c, requests, 200, []int{1, 9, 1, 9})
	for r := range requests {
		p := shifted(c.arms[0].of(0).levels[0].mean(unknown, levelPrior), math.Exp(requests[r].arms[0].shift))
		if want := []float64{0.1, 0.9}[r%2]; math.Abs(p-want) > 0.08 {
			t.Errorf("request %d is expected to accept %.2f, and accepts %.1f", r, p, want)
		}
	}
	if v := c.arms[0].shifts; v < 2 {
		t.Errorf("requests that accept 0.1 and 0.9 have a variance of %.2f", v)
	}
}

// A request that changes is known anew after as many tokens as are remembered.
func TestRequestsChange(t *testing.T) {
	c, requests := learner(t), make([]Request, 4)
	rounds(c, requests, 200, []int{9, 5, 5, 5})
	rounds(c, requests, remembered, []int{1, 5, 5, 5})
	if k := &requests[0].arms[0]; k.shift > -1 {
		t.Errorf("a request that accepted 0.9 and then 0.1, where others accept 0.5, has a shift of %.2f", k.shift)
	}
}

// As many rounds are remembered of all tokens, however many sequences decode.
func TestMemoryIsOfRounds(t *testing.T) {
	for _, n := range []int{1, 16} {
		c, requests := learner(t), make([]Request, n)
		good, bad := make([]int, n), make([]int, n)
		for r := range good {
			good[r], bad[r] = 9, 1
		}
		rounds(c, requests, 400, good)
		rounds(c, requests, 60, bad)
		if got := c.arms[0].of(0).levels[0].mean(unknown, levelPrior); got < 0.45 || got > 0.62 {
			t.Errorf("%d at once: after 60 bad rounds of 100 that are remembered the level is %.2f", n, got)
		}
	}
}
