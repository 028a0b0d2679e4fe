package adapt

import (
	"math"
	"testing"
	"time"
)

// What sequences read they read once, however many rows they have; what their rows
// do with it adds to each.
func TestContextsAddToSteps(t *testing.T) {
	s := profiled(t, []int{1, 8, 40}, 6*ms, 9*ms, 32*ms)
	s.Attention = Attention{Sequence: 1.5e-6, Row: 0.5e-6}
	for _, x := range []struct {
		sequences int
		positions int64
		rows      int
		want      time.Duration
	}{
		{1, 0, 1, 6 * ms},
		{1, 1000, 1, 8 * ms},                      // 1.5 ms are read, a row adds 0.5
		{8, 8000, 8, 25 * ms},                     // 12 ms and 8 · 0.5
		{8, 8000, 40, 64 * ms},                    // 12 ms and 40 · 0.5
		{8, 8000, 256, 344800 * time.Microsecond}, // beyond the last point: 204.8 ms, 12 ms and 256 · 0.5
		{2, 8000, 8, 37 * ms},                     // 12 ms and 8 · 2
		{8, 0, 40, 32 * ms},                       // nothing of the step before is left
		{0, 0, 8, 9 * ms},                         // only prompts
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
		steps.Attention = Attention{Sequence: 25e-6}
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

// Prompt rows beside decoding have contexts of their own, not the decoders': what a
// plan that was tried has lost is what it took beyond them.
func TestContextsAreNotOfPrompts(t *testing.T) {
	steps := profiled(t, []int{1, 100}, 10*ms, 109*ms) // a row adds 1 ms
	steps.Attention = Attention{Row: 1e-6}
	c := New(Config{Arms: []Arm{{Depth: 8}}, Steps: steps})
	c.now = prospect{plain: 1, tokens: 1}
	c.probing = probing{on: true, rate: 50, credit: 0.02}
	// Decoding, drafted rows, what all of them read, prompt rows and what they read.
	took := 10*ms + 4*ms + 5*4*ms + 50*ms + 25*ms
	c.Stepped(Step{Rows: 55, Prompt: 50, Sequences: 1, Context: 4000, PromptContext: 50 * 500, Tokens: 1, Took: took, Arm: -1})
	// 34 ms for a token that takes 20 ms.
	if lost := 0.02 - c.probing.credit; math.Abs(lost-0.014) > 0.002 {
		t.Errorf("a plan of %v s is booked", lost)
	}
}

// Of sequences with contexts, some take what they read and not what all do.
func TestSomeSequences(t *testing.T) {
	s := profiled(t, []int{1, 8}, 6*ms, 13*ms) // a row adds 1 ms
	s.Attention = Attention{Sequence: 1.5e-6, Row: 0.5e-6}
	s.attend(8, 8000)
	for n, want := range map[int]time.Duration{1: 8 * ms, 4: 17 * ms, 8: 29 * ms} {
		if got := s.Some(n); (got - want).Abs() > 20*time.Microsecond {
			t.Errorf("%d of 8 sequences take %v, expected %v", n, got, want)
		}
	}
	if got, want := s.Time(4), 9*ms+12*ms+2*ms; (got - want).Abs() > 20*time.Microsecond {
		t.Errorf("the step at hand takes %v with 4 rows, expected %v", got, want)
	}
}
