package sched

import (
	"sort"
	"time"
)

// A Shape is what the time of a step depends on. Decoding rows each need
// logits and read a context of their own; the rows of a prompt share theirs.
type Shape struct {
	Decode, Prefill int // rows
	// Positions that rows attend to, summed over rows.
	DecodeContext, PrefillContext int64
}

// prompt is the shape with the n rows of a prompt that follow c positions.
func (s Shape) prompt(c, n int) Shape {
	s.Prefill += n
	s.PrefillContext += int64(n)*int64(c) + int64(n)*int64(n+1)/2
	return s
}

// A Cost is the measured cost curve: the time of a step, which never falls as
// a shape with prompt rows grows. Estimator learns one.
type Cost interface {
	StepTime(Shape) time.Duration
}

// timely is how many of n prompt rows after c positions keep the step within
// its limit.
func (p *step) timely(c, n int) int {
	if p.limit == 0 {
		return n
	}
	return sort.Search(n, func(i int) bool { return p.cost.StepTime(p.plan.Shape.prompt(c, i+1)) > p.limit })
}

// itl is the longest that the step may take, given the rows that decode.
// Where nothing decodes nobody waits for a token: 0 is no limit.
func (p *step) itl() time.Duration {
	switch {
	case p.plan.Shape.Decode == 0:
		return 0
	case p.cfg.ITLTarget > 0:
		return p.cfg.ITLTarget
	case p.cfg.Slowdown > 0:
		return max(1, time.Duration(p.cfg.Slowdown*float64(p.cost.StepTime(p.plan.Shape))))
	}
	return 0
}
