package adapt

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/spec"
)

func chain(n int) *spec.Draft { return &spec.Draft{Tree: spec.Tree{Tokens: make([]int32, n)}} }

// Fixed takes the first arm that offers something, as deep as it may, and cuts
// nothing, however little it is worth.
func TestFixed(t *testing.T) {
	c := New(Config{
		Arms:  []Arm{{Name: "lookup", Depth: 4, Free: true}, {Name: "model", Depth: 6}, {Name: "other", Depth: 6}},
		Fixed: true,
		Steps: profiled(t, []int{1, 2, 3}, 10*ms, 100*ms, 1000*ms),
	})
	var r [5]Request
	asks := []Ask{
		{Request: &r[0], Allowed: 7, Depth: 8, Nodes: 8, Offers: []*spec.Draft{chain(3), nil, nil}},
		{Request: &r[1], Allowed: 7, Depth: 8, Nodes: 5, Offers: []*spec.Draft{chain(0), nil, nil}},
		{Request: &r[2], Allowed: 1, Depth: 8, Nodes: 8, Offers: []*spec.Draft{nil, nil, nil}},
		{Request: &r[3], Allowed: 6, Depth: 2, Nodes: 8},
		{Request: &r[4], Allowed: 4, Depth: 2, Nodes: 8}, // the model makes the passes of this step
	}
	want := []Choice{{0, 4}, {1, 5}, {-1, 0}, {1, 2}, {-1, 0}}
	if diff := cmp.Diff(want, c.Choose(asks, Batch{Plain: 3})); diff != "" {
		t.Errorf("choices (-want +got):\n%s", diff)
	}
	p := []Proposal{{&r[0], 0, 0, chain(3)}, {&r[1], 1, 0, chain(5)}, {&r[3], 1, 0, chain(2)}}
	if !c.More(1, 5, p) {
		t.Error("a fixed number of passes ends early")
	}
	c.Admit(p)
	for i, n := range []int{3, 5, 2} {
		if got := p[i].Draft.Len(); got != n {
			t.Errorf("proposal %d has %d tokens left, expected %d", i, got, n)
		}
	}
}

// A gain is measured against decoding the same sequences without drafts.
func TestSpeedup(t *testing.T) {
	c := New(Config{
		Arms:  []Arm{{Name: "lookup", Depth: 4, Free: true}, {Name: "model", Depth: 4}},
		Fixed: true,
		Steps: profiled(t, []int{1, 2, 4, 8}, 10*ms, 10*ms, 10*ms, 20*ms),
	})
	if predicted, measured := c.Speedup(); predicted != 0 || measured != 0 {
		t.Errorf("before the first step: predicted speed-up %v, measured %v", predicted, measured)
	}
	q := new(Request)
	for _, path := range [][]int32{{0, 1, 2}, {0}, {}} {
		c.Choose([]Ask{{Request: q, Allowed: 2, Depth: 4, Nodes: 4}}, Batch{})
		p := []Proposal{{q, 1, 0, chain(3)}}
		c.Admit(p)
		c.Verified(p[0], path)
		c.Stepped(Step{Rows: 4, Sequences: 1, Tokens: len(path) + 1, Took: 10 * ms, Arm: 1, Passes: 3, Drafting: 6 * ms})
	}
	c.Stepped(Step{Rows: 1, Sequences: 1, Tokens: 1, Took: 10 * ms, Arm: -1}) // nothing asked
	predicted, measured := c.Speedup()
	// Eight tokens would have taken eight steps; four were taken, and 18 ms.
	if want := 80. / 58; math.Abs(measured-want) > 0.01 {
		t.Errorf("measured speed-up %.3f, expected %.3f", measured, want)
	}
	if predicted < 1 || predicted > 2 {
		t.Errorf("predicted speed-up %.3f, expected 1 to 2", predicted)
	}
}

// Predicted and measured speed-up agree once acceptance is known.
func TestPredictionsComeTrue(t *testing.T) {
	for _, arms := range [][]drafter{{model(always(0.8))}, {lookup(always(0.7))}} {
		w := newWorld(t, 4, curves["knee"], arms...)
		w.noise = 0.1
		w.run(200)
		w.c.gains = gains{}
		w.run(1500)
		predicted, measured := w.c.Speedup()
		t.Logf("%s: predicted %.3f, measured %.3f", arms[0].Name, predicted, measured)
		if math.Abs(predicted/measured-1) > 0.04 || measured < 1.2 {
			t.Errorf("%s: predicted speed-up %.3f, measured %.3f", arms[0].Name, predicted, measured)
		}
	}
}

// Temperatures are apart: what is learned at one says nothing of another.
func TestTemperaturesAreLearntApart(t *testing.T) {
	for i, temperatures := range [][]float32{{0}, {0.1, 0.5}, {0.6, 1}, {1.1, 2}} {
		for _, x := range temperatures {
			if got := class(x); got != i {
				t.Errorf("temperature %v is of class %d, expected %d", x, got, i)
			}
		}
	}
}

// A chain whose nodes have peaks is cut where they fall, and a probe's first
// token is not.
func TestAdmitCutsByPeaks(t *testing.T) {
	steps := profiled(t, []int{1, 100}, 10*ms, 307*ms) // a row adds 3 ms
	c := New(Config{Arms: []Arm{{Depth: 8}}, Steps: steps})
	d := chain(4)
	d.Peak = []float64{0.97, 0.95, 0.2, 0.99}
	q := new(Request)
	c.Admit([]Proposal{{q, 0, 0, d}})
	if d.Len() != 2 || len(d.Peak) != 2 {
		t.Errorf("%d tokens are left, expected 2", d.Len())
	}
	d = chain(2)
	d.Peak = []float64{0.1, 0.1}
	q.must = true
	c.Admit([]Proposal{{q, 0, 0, d}})
	if d.Len() != 1 {
		t.Errorf("%d tokens of a probe are left, expected 1", d.Len())
	}
}

// A drafted row costs what one more does beside the prompt rows of its step,
// which take their time whatever is drafted.
func TestAdmitBesidePrompts(t *testing.T) {
	steps := profiled(t, []int{8, 107}, 10*ms, 307*ms) // a row adds 3 ms, but none of the first eight
	for _, beside := range []struct{ prompt, left int }{{0, 4}, {3, 4}, {32, 2}, {1000, 2}} {
		c := New(Config{Arms: []Arm{{Depth: 8}}, Steps: steps})
		d := chain(4)
		d.Peak = []float64{0.97, 0.95, 0.2, 0.99}
		c.Choose(nil, Batch{Prompt: beside.prompt})
		c.Admit([]Proposal{{new(Request), 0, 0, d}})
		if d.Len() != beside.left {
			t.Errorf("%d tokens are left beside %d prompt rows, expected %d", d.Len(), beside.prompt, beside.left)
		}
	}
}

// Steps with prompt rows teach nothing of what they take, so nothing is hoped of
// them: a drafted row is never cheaper than none.
func TestNothingIsHopedBesidePrompts(t *testing.T) {
	steps := profiled(t, []int{1, 96, 128}, 10*ms, 400*ms, 600*ms)
	for range 100 {
		steps.Observe(1, 10*ms)
	}
	c := New(Config{Arms: []Arm{{Depth: 8}}, Steps: steps})
	c.now = prospect{plain: 1, prompt: 95}
	if got, want := c.seconds(2)-c.seconds(1), steps.seconds(97)-steps.seconds(96); math.Abs(got-want) > 1e-9 || got <= 0 {
		t.Errorf("a drafted row beside 95 prompt rows is taken to need %.5f s, expected %.5f", got, want)
	}
}

// A machine that stands still while a plan is tried is not the plan's.
func TestStallsAreNotBooked(t *testing.T) {
	c := New(Config{Arms: []Arm{{Depth: 8}}, Steps: profiled(t, []int{1, 3}, 10*ms, 20*ms)})
	c.probing = probing{on: true, rate: 100}
	c.Stepped(Step{Rows: 3, Sequences: 1, Tokens: 1, Took: 10 * time.Second, Arm: -1})
	if got := c.probing.credit; got < -0.05 {
		t.Errorf("the account has %.3f s after a stall of 10 s, expected four plain steps less at most", got)
	}
}

// What a probe takes beside prompt rows is booked, and a step that decodes
// nothing changes no account.
func TestProbesBesidePromptsAreBooked(t *testing.T) {
	steps := profiled(t, []int{1, 100}, 10*ms, 307*ms)
	c := New(Config{Arms: []Arm{{Depth: 8}}, Steps: steps})
	c.probing = probing{credit: 0.015, on: true, single: true, row: 0.003, passes: true}
	before := steps.Time(2)
	c.Stepped(Step{Rows: 33, Prompt: 31, Sequences: 1, Tokens: 1, Took: 100 * ms, Arm: 0, Passes: 1, Drafting: 5 * ms})
	want := 0.015 + probeShare*0.105 - 0.008
	if math.Abs(c.probing.credit-want) > 1e-9 {
		t.Errorf("the account has %v s after a probe beside prompts, expected %v", c.probing.credit, want)
	}
	c.Stepped(Step{Rows: 32, Prompt: 32, Took: 100 * ms, Arm: -1})
	if math.Abs(c.probing.credit-want) > 1e-9 {
		t.Errorf("the account has %v s after a step of prompts, expected %v", c.probing.credit, want)
	}
	if steps.Time(2) != before {
		t.Error("steps with prompts have changed what decoding is said to take")
	}
}

// A plan that was tried is booked with what it has cost: its time less what its
// tokens would have taken, and an eighth of what it took more at least.
func TestPlansThatAreTriedAreBooked(t *testing.T) {
	for tokens, want := range map[int]float64{1: 0.015, 2: 0.005, 3: 0.125 * 0.015} {
		c := New(Config{Arms: []Arm{{Depth: 8}}, Steps: profiled(t, []int{1, 3}, 10*ms, 20*ms)})
		c.probing = probing{credit: 0.015, on: true, rate: 100}
		c.Stepped(Step{Rows: 3, Sequences: 1, Tokens: tokens, Took: 20 * ms, Arm: 0, Passes: 1, Drafting: 5 * ms})
		if got := 0.015 + probeShare*0.025 - c.probing.credit; math.Abs(got-want) > 1e-9 {
			t.Errorf("a plan that took 25 ms for %d tokens, of 10 ms each without, is booked with %.4f s, expected %.4f", tokens, got, want)
		}
	}
}

// Who asked and got no draft is a row all the same, and drafts of other arms say
// nothing of an arm's next pass.
func TestOthersOfTheStep(t *testing.T) {
	// The third row costs, those before it do not.
	c := New(Config{Arms: []Arm{{Depth: 8}, {Depth: 8, Free: true}}, Steps: profiled(t, []int{1, 2, 3, 100}, 10*ms, 10*ms, 100*ms, 100*ms)})
	admit := func(asks int) int {
		requests := make([]Request, asks)
		var a []Ask
		for r := range requests {
			a = append(a, Ask{Request: &requests[r], Allowed: 3, Depth: 1, Nodes: 1})
		}
		c.Choose(a, Batch{})
		d := chain(1)
		d.Peak = []float64{0.9}
		c.Admit([]Proposal{{&requests[0], 1, 0, d}})
		return d.Len()
	}
	if got := []int{admit(1), admit(2)}; !slices.Equal(got, []int{1, 0}) {
		t.Errorf("verified are %v tokens of one that decodes, and of one of two, expected 1 and 0", got)
	}

	c = New(Config{Arms: []Arm{{Depth: 8}, {Depth: 8, Free: true}}, Steps: profiled(t, []int{1, 100}, 10*ms, 11*ms)})
	c.arms[0].passes = c.Steps.unmeasured(0.01)
	requests := make([]Request, 8)
	asks, p := make([]Ask, 8), make([]Proposal, 8)
	for r := range requests {
		offer := chain(8)
		asks[r] = Ask{Request: &requests[r], Allowed: 2, Depth: 8, Nodes: 8, Offers: []*spec.Draft{nil, offer}}
		p[r] = Proposal{&requests[r], 1, 0, offer}
	}
	asks[0].Allowed, p[0] = 1, Proposal{&requests[0], 0, 0, chain(1)}
	for r, x := range c.Choose(asks, Batch{}) {
		if x.Arm != p[r].Arm || x.Depth < 2 {
			t.Fatalf("request %d has choice %v", r, x)
		}
	}
	c.arms[0].classes[0].pool[0][0] = cell{tried: 1000}
	for _, x := range []struct {
		peak float64
		q    spec.Row
		want bool
	}{
		{0.001, spec.Row{}, false},
		{0.999, spec.Row{}, true},
		// Drawn, but the only one that is: its own order is that of depth.
		{0.001, spec.Row{W: []float64{1}, Total: 1}, false},
		{0.999, spec.Row{W: []float64{1}, Total: 1}, true},
	} {
		p[0].Draft.Peak, p[0].Draft.Q = []float64{x.peak}, []spec.Row{x.q}
		if got := c.More(0, 2, p); got != x.want {
			t.Errorf("after a token with peak %v, drawn from %v: another pass is %v", x.peak, x.q.W, got)
		}
	}
}

// A step of the curve that does not pay ends algorithm 1, and not the search
// among drafts that were chosen.
func TestAStepOfTheCurveIsNoBarrierToChosenDrafts(t *testing.T) {
	steps := profiled(t, []int{1, 2, 8, 9}, 10*ms, 22*ms, 22*ms, 60*ms)
	for name, c := range map[string]struct {
		drawn bool
		left  int
	}{"chosen": {false, 7}, "drawn": {true, 0}} {
		d := chain(8)
		for range 8 {
			d.Peak = append(d.Peak, 0.85)
			if c.drawn {
				d.Q = append(d.Q, spec.Row{W: []float64{1}, Total: 1})
			}
		}
		New(Config{Arms: []Arm{{Depth: 8}}, Steps: steps}).Admit([]Proposal{{new(Request), 0, 1, d}})
		if d.Len() != c.left {
			t.Errorf("%s: %d tokens are left, expected %d", name, d.Len(), c.left)
		}
	}
}

// With Async the number of tokens is what was best two steps earlier, and the
// drafts at hand say which.
func TestAsyncBudgetIsTwoStepsOld(t *testing.T) {
	c := New(Config{Arms: []Arm{{Depth: 8}}, Async: true, Steps: profiled(t, []int{1, 100}, 10*ms, 307*ms)})
	admit := func(peaks ...float64) int {
		d := chain(len(peaks))
		d.Peak = peaks
		c.Admit([]Proposal{{new(Request), 0, 0, d}})
		return d.Len()
	}
	var got []int
	for _, peaks := range [][]float64{{.99, .99, .99}, {.99, .1, .1}, {.1, .1, .1}, {.99, .99, .99}, {.99, .99, .99}, {.99, .99, .99}} {
		got = append(got, admit(peaks...))
	}
	if want := []int{3, 1, 3, 1, 0, 3}; !slices.Equal(got, want) {
		t.Errorf("tokens verified are %v, expected %v", got, want)
	}
}

// Trees: children of the anchor and of nodes are cut alike, and what was
// verified teaches by level.
func TestTreesAreCutAndLearnt(t *testing.T) {
	c := New(Config{Arms: []Arm{{Depth: 3}}, Steps: profiled(t, []int{1, 100}, 10*ms, 307*ms)})
	q := new(Request)
	tree := func() *spec.Draft {
		d := new(spec.Draft)
		d.Reset()
		for i, parent := range []int{-1, -1, 0, 1, 2} {
			d.Add(int32(i), parent)
			d.Confidence = append(d.Confidence, []float64{.9, .05, .9, .9, .9}[i])
		}
		return d
	}
	d := tree()
	c.Admit([]Proposal{{q, 0, 0, d}})
	if diff := cmp.Diff([]int32{0, 2, 4}, d.Tokens); diff != "" || d.Check(10) != nil {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
	for range 60 {
		c.Verified(Proposal{q, 0, 0, tree()}, []int32{1, 3}) // the second child, its child, and no more
	}
	d = tree()
	c.Admit([]Proposal{{q, 0, 0, d}})
	if diff := cmp.Diff([]int32{1, 3}, d.Tokens); diff != "" {
		t.Errorf("after verification: tokens (-want +got):\n%s", diff)
	}
	if got := c.arms[0].classes[0].cells[1][0][5]; got != (cell{60, 60}) { // of confidence 0.9
		t.Errorf("of second tokens after accepted ones, %v were accepted of %v, expected 60 of 60", got.accepted, got.tried)
	}
}

// Of siblings that peaks tell nothing of, the first is taken to be the likeliest.
func TestLaterSiblingsAreLessLikely(t *testing.T) {
	c := New(Config{Arms: []Arm{{Depth: 3}}, Steps: profiled(t, []int{1, 100}, 10*ms, 307*ms)})
	d := new(spec.Draft)
	d.Reset()
	d.Confidence = nil
	for i := range 3 {
		d.Add(int32(i), -1)
		d.Peak = append(d.Peak, 0.6)
	}
	c.Admit([]Proposal{{new(Request), 0, 0, d}})
	if d.Len() != 1 {
		t.Errorf("%d siblings are left, expected 1", d.Len())
	}
}

// A step's decisions take no memory.
func TestNothingIsAllocated(t *testing.T) {
	for _, b := range batches() {
		step := b.step(t)
		for range 100 {
			step()
		}
		if n := testing.AllocsPerRun(100, step); n > 0 {
			t.Errorf("%s: %v allocations in a step", b.name, n)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	for _, x := range batches() {
		b.Run(x.name, func(b *testing.B) {
			step := x.step(b)
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}

type batch struct {
	name        string
	concurrency int
	arm         Arm
	confidence  bool
}

func batches() (all []batch) {
	for _, n := range []int{1, 16, 64} {
		all = append(
			all,
			batch{fmt.Sprint(n, " free"), n, Arm{Depth: 8, Free: true}, false},
			batch{fmt.Sprint(n, " model"), n, Arm{Depth: 8}, false},
			batch{fmt.Sprint(n, " block"), n, Arm{Depth: 8, Block: true}, true},
		)
	}
	return all
}

// step chooses, admits and learns, with full drafts of eight tokens.
func (x batch) step(t testing.TB) func() {
	rows := Grid(1024)
	took := make([]time.Duration, len(rows))
	for i, r := range rows {
		took[i] = 50*ms + time.Duration(r)*100*time.Microsecond
	}
	steps, err := NewSteps(rows, took)
	if err != nil {
		t.Fatal(err)
	}
	c := New(Config{Arms: []Arm{x.arm}, Steps: steps})
	asks := make([]Ask, x.concurrency)
	drafts := make([]*spec.Draft, x.concurrency)
	paths := make([][]int32, 9)
	for i := range paths {
		for j := range i {
			paths[i] = append(paths[i], int32(j))
		}
	}
	for r := range asks {
		drafts[r] = new(spec.Draft)
		asks[r] = Ask{Request: new(Request), Allowed: 1, Depth: 8, Nodes: 8, Offers: drafts[r : r+1]}
	}
	var p []Proposal
	n := 0
	return func() {
		p = p[:0]
		for r, d := range drafts {
			*d = spec.Draft{Tree: spec.Tree{Tokens: d.Tokens[:0]}, Peak: d.Peak[:0], Confidence: d.Confidence[:0]}
			for i := range 8 {
				x01 := float64((r*31+i*17+n*7)%100) / 100
				d.Tokens = append(d.Tokens, 1)
				if x.confidence {
					d.Confidence = append(d.Confidence, x01)
				} else {
					d.Peak = append(d.Peak, x01)
				}
			}
			if !x.confidence {
				d.Confidence = nil
			}
			p = append(p, Proposal{asks[r].Request, 0, 0, d})
		}
		n++
		c.Choose(asks, Batch{})
		c.Admit(p)
		rows := len(asks)
		for i := range p {
			rows += p[i].Draft.Len()
			c.Verified(p[i], paths[min((i+n)%4, p[i].Draft.Len())])
		}
		c.Stepped(Step{Rows: rows, Sequences: len(asks), Tokens: rows, Took: 60 * ms, Arm: 0, Passes: 1, Drafting: 3 * ms})
	}
}
