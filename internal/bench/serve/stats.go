package serve

import (
	"math"
	"slices"
	"sort"
	"time"
)

// A Summary describes a latency in milliseconds. The standard deviation is that
// of the population, and percentiles interpolate between neighbours, as
// NumPy's do.
type Summary struct {
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	Std    float64 `json:"std"`
	P90    float64 `json:"p90"`
	P99    float64 `json:"p99"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// A distribution is a set of values in ms, in order.
type distribution interface {
	len() int
	at(k int) float64 // of 0 ≤ k < len
	moments() (mean, std float64)
}

// summarise returns nil for no values.
func summarise(d distribution) *Summary {
	if d.len() == 0 {
		return nil
	}
	s := Summary{Median: quantile(d, 0.5), P90: quantile(d, 0.9), P99: quantile(d, 0.99), Min: d.at(0), Max: d.at(d.len() - 1)}
	s.Mean, s.Std = d.moments()
	return &s
}

// quantile is the value that a share q of d lies below.
func quantile(d distribution, q float64) float64 {
	rank := q * float64(d.len()-1)
	low := int(rank)
	v := d.at(low)
	if part := rank - float64(low); part > 0 {
		v += part * (d.at(low+1) - v)
	}
	return v
}

// below is how many values of d are less than v.
func below(d distribution, v float64) int {
	return sort.Search(d.len(), func(k int) bool { return d.at(k) >= v })
}

// samples is a distribution of sorted values in ms.
type samples []float64

func newSamples(durations []time.Duration) samples {
	s := make(samples, len(durations))
	for i, d := range durations {
		s[i] = ms(d)
	}
	slices.Sort(s)
	return s
}

func (s samples) len() int         { return len(s) }
func (s samples) at(k int) float64 { return s[k] }

func (s samples) moments() (mean, std float64) {
	for _, v := range s {
		mean += v
	}
	mean /= float64(len(s))
	for _, v := range s {
		std += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(std / float64(len(s)))
}
