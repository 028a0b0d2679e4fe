package serve

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// By hand, and as numpy.mean, median, std and percentile say.
func TestSummarise(t *testing.T) {
	ints := func(n int) (d []time.Duration) {
		for i := n; i > 0; i-- { // in any order
			d = append(d, time.Duration(i)*step)
		}
		return d
	}
	for _, c := range []struct {
		name string
		d    []time.Duration
		want *Summary
	}{
		{"none", nil, nil},
		{"one", ints(1), &Summary{Mean: 1, Median: 1, P90: 1, P99: 1, Min: 1, Max: 1}},
		{"two", ints(2), &Summary{Mean: 1.5, Median: 1.5, Std: 0.5, P90: 1.9, P99: 1.99, Min: 1, Max: 2}},
		{"1 to 5", ints(5), &Summary{Mean: 3, Median: 3, Std: math.Sqrt2, P90: 4.6, P99: 4.96, Min: 1, Max: 5}},
		{"1 to 101", ints(101), &Summary{Mean: 51, Median: 51, Std: math.Sqrt(850), P90: 91, P99: 100, Min: 1, Max: 101}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, summarise(newSamples(c.d)), near); diff != "" {
				t.Errorf("samples: %s", diff)
			}
			// A histogram knows mean, deviation, least and greatest, and others nearly.
			h := &histogram{}
			for _, d := range c.d {
				h.add(d)
			}
			got := summarise(h)
			if c.want == nil {
				if got != nil {
					t.Errorf("histogram: %+v", got)
				}
				return
			}
			for _, v := range []struct{ got, want, tolerance float64 }{
				{got.Mean, c.want.Mean, 1e-12},
				{got.Std, c.want.Std, 1e-12},
				{got.Min, c.want.Min, 0},
				{got.Max, c.want.Max, 0},
				{got.Median, c.want.Median, resolution},
				{got.P90, c.want.P90, resolution},
				{got.P99, c.want.P99, resolution},
			} {
				if math.Abs(v.got-v.want) > v.tolerance*v.want {
					t.Errorf("histogram: %+v, want %+v", got, c.want)
				}
			}
		})
	}
}

const resolution = 1.0 / (1 << (subBits + 1))

// Any duration is in the bucket whose bounds it lies in, and those are close.
func TestBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, math.MaxInt64>>rapid.IntRange(0, 62).Draw(t, "shift")).Draw(t, "duration"))
		from, to := bounds(bucket(d))
		if d < from || uint64(d) >= uint64(to) || uint64(to-from) > max(1, uint64(from)>>subBits) {
			t.Errorf("%d is in the bucket from %d to %d", d, from, to)
		}
		if before := bucket(max(d, 1) - 1); bucket(d)-before > 1 || bucket(d) < before {
			t.Errorf("%d is in bucket %d, and what is less in %d", d, bucket(d), before)
		}
	})
}

// A histogram says of any values what sorting them says, but for its resolution.
func TestHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SliceOfN(rapid.Map(rapid.Int64Range(-5, 1<<40), func(v int64) time.Duration { return time.Duration(v) }), 1, 50).Draw(t, "durations")
		h := &histogram{}
		for i := range d {
			h.add(d[i])
			d[i] = max(d[i], 0) // a clock that went back
		}
		s := newSamples(d)
		if h.len() != s.len() {
			t.Fatalf("%d of %d values", h.len(), s.len())
		}
		for k := range s {
			if got, want := h.at(k), s.at(k); math.Abs(got-want) > resolution*want+1e-6 {
				t.Errorf("value %d is %v, want %v", k, got, want)
			}
		}
		mean, std := h.moments()
		wantMean, wantStd := s.moments()
		if math.Abs(mean-wantMean) > 1e-9*wantMean || math.Abs(std-wantStd) > 1e-6*(wantMean+1) {
			t.Errorf("mean %v and deviation %v, want %v and %v", mean, std, wantMean, wantStd)
		}
		if v := s.at(len(s) / 2); below(s, v) > len(s)/2 || below(s, math.Nextafter(v, math.Inf(1))) <= len(s)/2 {
			t.Errorf("%d of %v are below %v", below(s, v), s, v)
		}
	})
}

func TestLimits(t *testing.T) {
	var l Limits
	for _, s := range []string{"ttft:200", "tpot:50.5", "e2el:3000"} {
		if err := l.Set(s); err != nil {
			t.Error(err)
		}
	}
	if want := (Limits{200, 50.5, 3000}); l != want || l.String() != "ttft:200 tpot:50.5 e2e:3000" {
		t.Errorf("%+v, %v", l, l)
	}
	for _, s := range []string{"", "ttft", "ttft:", "ttft:x", "itl:5", "tpot:0", "tpot:-1", "e2e:NaN", "e2e:inf", "e2e:1:2"} {
		if err := l.Set(s); err == nil {
			t.Errorf("%q is a limit", s)
		}
	}
	// TTFT 100 ms, then 4 tokens of 10 ms each.
	r := &record{ttft: 100 * step, e2e: 140 * step, output: 5}
	for _, c := range []struct {
		limits Limits
		want   bool
	}{
		{Limits{}, true},
		{Limits{100, 10, 140}, true},
		{Limits{TTFT: 99}, false},
		{Limits{TTFT: 200, TPOT: 9.9}, false},
		{Limits{TTFT: 200, TPOT: 10, E2E: 139}, false},
	} {
		if got := c.limits.keeps(r); got != c.want {
			t.Errorf("within %v: %v", c.limits, got)
		}
	}
	if !(Limits{TPOT: 1}).keeps(&record{ttft: step, e2e: step, output: 1}) {
		t.Error("one token is late")
	}
}
