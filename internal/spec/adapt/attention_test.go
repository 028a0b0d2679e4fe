package adapt

import (
	"testing"
	"time"
)

// What sequences read they read once, however many rows they have; what their rows
// do with it adds to each.
func TestContextsAddToSteps(t *testing.T) {
	s := profiled(t, []int{1, 8, 40}, 6*ms, 9*ms, 32*ms)
	s.Attention = Attention{Sequence: 1500 * time.Nanosecond, Row: 500 * time.Nanosecond}
	for _, x := range []struct {
		sequences int
		positions int64
		rows      int
		want      time.Duration
	}{
		{1, 0, 1, 6 * ms},
		{1, 1000, 1, 8 * ms},   // 1.5 ms are read, a row adds 0.5
		{8, 8000, 8, 25 * ms},  // 12 ms and 8 · 0.5
		{8, 8000, 40, 64 * ms}, // 12 ms and 40 · 0.5
		{2, 8000, 8, 37 * ms},  // 12 ms and 8 · 2
		{8, 0, 40, 32 * ms},    // nothing of the step before is left
		{0, 0, 8, 9 * ms},      // only prompts
	} {
		s.attend(x.sequences, x.positions)
		if got := s.Time(x.rows); (got - x.want).Abs() > 20*time.Microsecond {
			t.Errorf("%d rows of %d sequences with %d positions take %v, expected %v", x.rows, x.sequences, x.positions, got, x.want)
		}
	}
}

// As contexts grow, decoding takes longer and a drafted row as long as it did: what
// was cut pays.
func TestContextsMakeDraftsPay(t *testing.T) {
	for _, x := range []struct {
		context int64
		left    int
	}{{0, 2}, {16 * 1000, 4}} {
		steps := profiled(t, []int{1, 100}, 10*ms, 307*ms) // a row adds 3 ms
		steps.Attention = Attention{Sequence: 25 * time.Microsecond}
		c := New(Config{Arms: []Arm{{Depth: 8}}, Steps: steps})
		d := chain(4)
		d.Peak = []float64{0.97, 0.95, 0.2, 0.99}
		c.Choose(nil, Batch{Plain: 16, Context: x.context})
		c.Admit([]Proposal{{new(Request), 0, 0, d}})
		if d.Len() != x.left {
			t.Errorf("contexts of %d positions: %d tokens are left, expected %d", x.context, d.Len(), x.left)
		}
	}
}
