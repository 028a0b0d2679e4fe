package sched

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// truth is a machine: 12 ms for any step, 0.3 ms for a row that decodes, 0.2 ms
// for one of a prompt, and so long for what they attend to.
var truth = Curve{Step: 12e-3, Decode: 0.3e-3, Prefill: 0.2e-3, DecodeContext: 60e-9, PrefillContext: 20e-9}

// scaled is c with each weight times the factor at its place.
func scaled(c Curve, f ...float64) Curve {
	return Curve{c.Step * f[0], c.Decode * f[1], c.Prefill * f[2], c.DecodeContext * f[3], c.PrefillContext * f[4]}
}

// randomShape is a step of a busy engine; without prompts if decodeOnly.
func randomShape(r *rand.Rand, decodeOnly bool) Shape {
	s := Shape{Decode: r.IntN(16)}
	for range s.Decode {
		s.DecodeContext += int64(1 + r.IntN(4000))
	}
	if !decodeOnly && r.IntN(3) > 0 {
		s = s.prompt(r.IntN(16000), 1+r.IntN(112))
	}
	return s
}

// worst is the largest relative error over shapes that were not learned from.
func worst(e Estimator, c Curve) float64 {
	r := rand.New(rand.NewPCG(9, 9))
	w := 0.0
	for range 500 {
		s := randomShape(r, false)
		w = max(w, math.Abs(float64(e.StepTime(s))/float64(c.StepTime(s))-1))
	}
	return w
}

// Times vary by 5 %. An error of a fifth is what lies between a slowdown of 2.5
// and steps that take three times as long; a settled curve is well within it.
func TestEstimatorLearns(t *testing.T) {
	for _, tt := range []struct {
		name  string
		prior Curve
		learn func(e Estimator, r *rand.Rand) Estimator
		most  float64 // error
	}{
		{
			"the truth from a wrong start", scaled(truth, 5, 0.2, 0.2, 4, 5),
			func(e Estimator, r *rand.Rand) Estimator { return observe(e, r, truth, 600, 0.05, false) }, 0.1,
		},
		{
			"from a start ten times too fast", scaled(truth, 0.1, 0.1, 0.1, 0.1, 0.1),
			func(e Estimator, r *rand.Rand) Estimator { return observe(e, r, truth, 600, 0.05, false) }, 0.1,
		},
		{
			"within thirty steps roughly", scaled(truth, 3, 0.3, 3, 0.3, 3),
			func(e Estimator, r *rand.Rand) Estimator { return observe(e, r, truth, 30, 0.05, false) }, 0.35,
		},
		{
			"that the machine has become twice as slow", truth,
			func(e Estimator, r *rand.Rand) Estimator {
				e = observe(e, r, scaled(truth, .5, .5, .5, .5, .5), 5000, 0.05, false)
				return observe(e, r, truth, 300, 0.05, false)
			}, 0.1,
		},
		{
			"and does not forget prompts while everything decodes", scaled(truth, 2, 2, 0.3, 0.5, 3),
			func(e Estimator, r *rand.Rand) Estimator {
				e = observe(e, r, truth, 300, 0.05, false)
				return observe(e, r, truth, 20000, 0.05, true)
			}, 0.12,
		},
		{
			"and is not misled by a step that hung", truth,
			func(e Estimator, r *rand.Rand) Estimator {
				e = observe(e, r, truth, 300, 0.05, false)
				s := randomShape(r, false)
				e = e.Observe(s, 100*truth.StepTime(s))
				return observe(e, r, truth, 10, 0.05, false)
			}, 0.2,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(5) {
				got := worst(tt.learn(NewEstimator(tt.prior), rand.New(rand.NewPCG(seed, 1))), truth)
				if !(got <= tt.most) {
					t.Errorf("seed %d: steps are misjudged by up to %.0f %%, at most %.0f %% expected", seed, 100*got, 100*tt.most)
				}
			}
		})
	}
}

// observe learns from n steps of a machine whose times vary by noise.
func observe(e Estimator, r *rand.Rand, machine Curve, n int, noise float64, decodeOnly bool) Estimator {
	for range n {
		s := randomShape(r, decodeOnly)
		e = e.Observe(s, time.Duration(float64(machine.StepTime(s))*(1+noise*(2*r.Float64()-1))))
	}
	return e
}

// A time never falls as a shape grows, whatever was observed: the search for
// the number of rows relies on it.
func TestEstimatorIsMonotone(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	e := NewEstimator(truth)
	for range 2000 {
		s := randomShape(r, false)
		e = e.Observe(s, time.Duration(r.Float64()*float64(time.Second)))
		for _, more := range []Shape{s.prompt(100, 1), {s.Decode + 1, s.Prefill, s.DecodeContext + 50, s.PrefillContext}} {
			if s.Prefill == 0 && more.Prefill > 0 {
				continue // these have curves of their own
			}
			if a, b := e.StepTime(s), e.StepTime(more); a > b || a < 0 {
				t.Fatalf("%+v takes %v, %+v takes %v", s, a, more, b)
			}
		}
	}
}

// However long steps say nothing of a weight, it becomes no less certain than
// it was at first: the first step that does would fling it.
func TestUncertaintyIsBounded(t *testing.T) {
	e := NewEstimator(truth)
	s := Shape{Decode: 4, DecodeContext: 8000}.prompt(1000, 48)
	for range 30000 {
		e = e.Observe(s, truth.StepTime(s))
	}
	for i, w := range truth.weights() {
		if sd := math.Sqrt(e.mixed.cov[i][i]); !(sd <= 1.2*w) {
			t.Errorf("weight %d is %g with a standard deviation of %g", i, w, sd)
		}
	}
}

func TestEstimatorIsAValue(t *testing.T) {
	e := NewEstimator(truth)
	before := e
	e.Observe(Shape{Decode: 3, DecodeContext: 100}, time.Second)
	if e != before {
		t.Error("Observe changed its receiver")
	}
}
