package main

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestSlope(t *testing.T) {
	for _, tc := range []struct {
		points []point
		want   float64
	}{
		{nil, 0},
		{[]point{{1, 5}}, 0},
		{[]point{{1, 5}, {3, 9}}, 2},
		{[]point{{1, 5}, {1, 9}}, 0},
		{[]point{{0, 1}, {1, -1}, {2, 1}, {3, -1}}, -0.4}, // noise about a falling line
		{[]point{{1e6, 7}, {2e6, 7}}, 0},
	} {
		if got := slope(tc.points); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("slope of %v is %v, want %v", tc.points, got, tc.want)
		}
	}
}

func TestWithin(t *testing.T) {
	took := []time.Duration{3 * time.Millisecond, time.Millisecond, 2 * time.Millisecond}
	if f := within("g", 3*time.Millisecond, took); f.missed || f.measured != "median 2.0 ms, slowest of 3 3.0 ms" {
		t.Errorf("%+v", f)
	}
	if f := within("g", 2*time.Millisecond, took); !f.missed {
		t.Errorf("%+v is not missed", f)
	}
	many := append(slices.Repeat([]time.Duration{time.Millisecond}, 198), 5*time.Second, 7*time.Second)
	if f := within("g", 2*time.Millisecond, many); !f.missed { // 1 in 100 may be slower
		t.Errorf("%+v is not missed", f)
	}
	if f := within("g", 2*time.Millisecond, many[:199]); f.missed || f.measured != "median 1.0 ms, p99 1.0 ms, slowest of 199 5000.0 ms" {
		t.Errorf("%+v", f)
	}
	if got := quantile(took, 0.99); got != 3*time.Millisecond {
		t.Errorf("the 99th percentile is %v", got)
	}
}
