package sched

import (
	"testing"
	"time"
)

// Four sequences decode while a prompt of 32k is computed. With a slowdown of
// 2.5 and a cost curve that is learned on the way from a wrong start, no step
// takes thrice as long as one without the prompt, but for one in a hundred
// while it is learned, and the prompt takes about as long as those steps allow.
func TestLongPromptDoesNotStall(t *testing.T) {
	for _, tt := range []struct {
		name    string
		machine Cost
	}{
		{"a machine that is like the curve", truth},
		{"a machine that reads weights or computes, whichever takes longer", roofline{}},
	} {
		t.Run(tt.name, func(t *testing.T) { longPrompt(t, tt.machine) })
	}
}

// A roofline takes 12 ms to read its weights, and 0.5 ms to compute a row.
type roofline struct{}

func (roofline) StepTime(s Shape) time.Duration {
	rows := time.Duration(s.Decode+s.Prefill) * 500 * time.Microsecond
	return max(12*time.Millisecond, rows) + time.Duration(60*s.DecodeContext+20*s.PrefillContext)
}

func longPrompt(t *testing.T, machine Cost) {
	w, err := newWorld(Config{Pages: 1000, PageSize: 64, MaxRows: 256, Slowdown: 2.5, MinChunk: 4})
	if err != nil {
		t.Fatal(err)
	}
	est := NewEstimator(scaled(truth, 0.5, 3, 0.3, 2, 0.3))
	w.cost, w.truth = &est, machine
	for id := range uint64(4) {
		if err := w.submit(Request{ID: id, Prompt: 100, MaxNew: 4000}, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	const long = 9
	var took, most, ideal time.Duration // ideal: what the prompt may take in each step is 1.5 times the rest
	steps, over := 0, 0
	for ; w.seqs[long] == nil || w.seqs[long].done < 0; steps++ {
		if steps == 50 {
			if err := w.submit(Request{ID: long, Prompt: 32 << 10, MaxNew: 1}, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.step(); err != nil {
			t.Fatal(err)
		}
		est = est.Observe(w.plan.Shape, w.took)
		if w.seqs[long] == nil {
			continue
		}
		alone := w.plan.Shape
		alone.Prefill, alone.PrefillContext = 0, 0
		if w.took > 3*machine.StepTime(alone) {
			over++
		}
		took, most, ideal = took+w.took, max(most, w.took), ideal+machine.StepTime(alone)*5/2
	}
	t.Logf("%d steps, the longest %v, %d over; %v, of %v allowed", steps, most, over, took, ideal)
	if over > steps/100 {
		t.Errorf("%d of %d steps took more than three times as long as without the prompt", over, steps)
	}
	if took < ideal*3/4 {
		t.Errorf("the steps took %v, %v were allowed: the prompt had fewer rows than it could have had", took, ideal)
	}
}

// A decode step allocates nothing.
func TestDecodeStepDoesNotAllocate(t *testing.T) {
	s, err := New(Config{Pages: 1 << 20, PageSize: 16, MaxRows: 64, MaxDraft: 2, Slowdown: 2})
	if err != nil {
		t.Fatal(err)
	}
	for id := range uint64(20) {
		if err := s.Submit(time.Time{}, Request{ID: id, Prompt: 2, MaxNew: 10000}); err != nil {
			t.Fatal(err)
		}
	}
	est := NewEstimator(truth)
	length := 2
	step := func() {
		p := s.Plan(time.Time{}, roomy{}, &est)
		if len(p.Spans) != 20 {
			t.Fatalf("%d spans", len(p.Spans))
		}
		length++
		for id := range uint64(20) {
			s.Update(id, length-1, length)
		}
		est = est.Observe(p.Shape, time.Millisecond)
	}
	step()
	step()
	if n := testing.AllocsPerRun(200, step); n > 0 {
		t.Errorf("%v allocations in a step", n)
	}
}

// roomy is a cache that has room for everything and nothing in it.
type roomy struct{}

func (roomy) Available() int       { return 1 << 19 }
func (roomy) Match(uint64) Match   { return Match{} }
func (roomy) Path(uint64) []uint64 { return nil }
func (roomy) Exclusive(uint64) int { return 0 }
