package sched

import (
	"math"
	"time"
)

// A Curve gives the time of a step as a sum: so long for any step, so long for
// each row and each position that is attended to. In seconds.
type Curve struct {
	Step, Decode, Prefill, DecodeContext, PrefillContext float64
}

const terms = 5

func (c Curve) weights() [terms]float64 {
	return [terms]float64{c.Step, c.Decode, c.Prefill, c.DecodeContext, c.PrefillContext}
}

func (s Shape) features() [terms]float64 {
	return [terms]float64{1, float64(s.Decode), float64(s.Prefill), float64(s.DecodeContext), float64(s.PrefillContext)}
}

// StepTime is the time of a step of shape s.
func (c Curve) StepTime(s Shape) time.Duration {
	return time.Duration(dot(c.weights(), s.features()) * float64(time.Second))
}

// An Estimator learns the cost curve from the steps that were run. It is a
// value: Observe returns what is believed next.
//
// Steps that only decode have a curve of their own. What limits them is
// reading weights, what limits steps with prompts is computing: one sum fits
// either, but not the bend between them, and learning from one kind must not
// move what is believed of the other.
type Estimator struct{ decode, mixed filter }

// NewEstimator starts from a curve that may be wrong by some factor but not in
// kind: each weight above 0.
func NewEstimator(prior Curve) Estimator {
	f := newFilter(prior)
	return Estimator{f, f}
}

// StepTime is the time that a step of shape s is believed to take.
func (e *Estimator) StepTime(s Shape) time.Duration {
	f := &e.mixed
	if s.Prefill == 0 {
		f = &e.decode
	}
	return time.Duration(dot(f.w, s.features()) * float64(time.Second))
}

// Observe is what is believed after a step of shape s has taken d.
func (e Estimator) Observe(s Shape, d time.Duration) Estimator {
	if s.Prefill == 0 {
		e.decode.observe(s.features(), d.Seconds())
	} else {
		e.mixed.observe(s.features(), d.Seconds())
	}
	return e
}

// A filter is a Kalman filter whose state is the weights of a curve. They
// drift, so old steps count for less; a weight of which steps say nothing
// keeps its value and only becomes less certain, up to how uncertain it was.
type filter struct {
	w     [terms]float64
	cov   [terms][terms]float64
	prior [terms]float64 // variances at first
}

const (
	spread = 1.0  // standard deviation of a weight at first, relative
	noise  = 0.05 // of a step's time, relative
	drift  = 0.01 // of the weights in a step, in standard deviations at first
)

func newFilter(c Curve) filter {
	f := filter{w: c.weights()}
	for i, w := range f.w {
		f.prior[i] = spread * w * spread * w
		f.cov[i][i] = f.prior[i]
	}
	return f
}

// observe learns from a step of features x that took so many seconds. One that
// took far longer than believed, for a reason that is not in its shape, moves
// the weights no further than one that took twice as long.
func (f *filter) observe(x [terms]float64, seconds float64) {
	believed := dot(f.w, x)
	if seconds <= 0 || believed <= 0 {
		return
	}
	f.diffuse()
	var covx [terms]float64
	for i := range covx {
		covx[i] = dot(f.cov[i], x)
	}
	variance := dot(x, covx) + noise*believed*noise*believed
	surprise := min(seconds-believed, believed)
	for i := range terms {
		f.w[i] = max(f.w[i]+covx[i]/variance*surprise, 0) // a row is never a gain
		for j := range terms {
			f.cov[i][j] -= covx[i] * covx[j] / variance
		}
	}
}

// diffuse makes the weights less certain, but none less than it was at first,
// relative to the larger of what it was and is.
func (f *filter) diffuse() {
	for i := range terms {
		most := max(f.prior[i], spread*f.w[i]*spread*f.w[i])
		f.cov[i][i] += drift * drift * most
		if v := f.cov[i][i]; v > most {
			shrink := math.Sqrt(most / v)
			for j := range terms { // scaling a row and its column keeps it a covariance
				f.cov[i][j] *= shrink
				f.cov[j][i] *= shrink
			}
		}
	}
}

func dot(a, b [terms]float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
