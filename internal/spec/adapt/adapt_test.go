package adapt

import (
	"fmt"
	"slices"
	"testing"
)

// Whatever the acceptance, the curve of step times and the concurrency are,
// adapting is no worse than the best fixed number of tokens by more than 3 %,
// all learning included.
func TestAdaptingIsAsGoodAsTheBestFixed(t *testing.T) {
	acceptances := []struct {
		name   string
		accept func(request, step int) float64
	}{
		{"high", always(0.85)},
		{"middling", always(0.6)},
		{"low", always(0.25)},
		{"none", always(0)},
		{"mixed", func(request, _ int) float64 { return []float64{0.9, 0.3}[request%2] }},
		{"changing", func(_, step int) float64 { return []float64{0.85, 0.2}[step/250%2] }},
	}
	for _, name := range []string{"flat", "linear", "knee", "stepped"} {
		for _, a := range acceptances {
			for _, arm := range []drafter{model(a.accept), lookup(a.accept)} {
				t.Run(fmt.Sprint(name, "/", a.name, "/", arm.Name), func(t *testing.T) {
					for _, concurrency := range []int{1, 2, 4, 8, 16} {
						w := newWorld(t, concurrency, curves[name], arm)
						gamma, fixed := w.bestFixed(60 + 600/concurrency)
						if a.name == "changing" {
							gamma, fixed = w.bestFixed(500)
						}
						got := w.run(1000)
						t.Logf("%d at once: %.1f tokens/s, best fixed %.1f with %d, %+.1f %%", concurrency, got, fixed, gamma, 100*(got/fixed-1))
						if got < 0.97*fixed {
							t.Errorf("%d at once: %.1f tokens/s, with %d tokens always %.1f", concurrency, got, gamma, fixed)
						}
					}
				})
			}
		}
	}
}

// A drafter of blocks that is too sure of itself is calibrated, and as good as
// the best fixed number of its tokens at least.
func TestAdaptingToBlocks(t *testing.T) {
	block := drafter{Arm: Arm{Name: "block", Depth: 8, Block: true}, spread: 0.25, tells: "confidence", pass: 0.012, each: 0.0005}
	for name, curve := range curves {
		for _, accept := range []float64{0.85, 0.5, 0.2} {
			block.accept = always(accept)
			for _, concurrency := range []int{1, 4, 16} {
				w := newWorld(t, concurrency, curve, block)
				gamma, fixed := w.bestFixed(60 + 600/concurrency)
				got := w.run(800)
				t.Logf("%s curve, acceptance %v, %d at once: %.1f tokens/s, with %d tokens always %.1f, %+.1f %%", name, accept, concurrency, got, gamma, fixed, 100*(got/fixed-1))
				if got < 0.97*fixed {
					t.Errorf("%s curve, acceptance %v, %d at once: %.1f tokens/s, with %d tokens always %.1f", name, accept, concurrency, got, gamma, fixed)
				}
			}
		}
	}
}

// Requests that are short are no worse off: what one taught serves the next.
// Times that vary by 10 % and budgets that are two steps old change little.
func TestAdaptingToShortRequestsNoiseAndStaleBudgets(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"requests of 60 tokens": func(w *world) { w.lifetime = 60 },
		"noise": func(w *world) {
			w.noise = 0.1
			w.c.Steps = w.profile()
		},
		"stale budgets": func(w *world) { w.c.Async = true },
	} {
		for curve, least := range map[string]float64{"flat": 0.97, "linear": 0.96, "stepped": 0.96} {
			for _, accept := range []float64{0.8, 0.4} {
				for _, concurrency := range []int{1, 4, 16} {
					least := least
					switch name {
					case "stale budgets": // they know nothing of the tokens at hand
						least = 0.93
					case "requests of 60 tokens": // each may be unlike the others
						least = 0.95
					}
					w := newWorld(t, concurrency, curves[curve], model(always(accept)))
					change(w)
					gamma, fixed := w.bestFixed(100 + 600/concurrency)
					if got := w.run(800); got < least*fixed {
						t.Errorf("%s, %s curve, acceptance %v, %d at once: %.1f tokens/s, with %d tokens always %.1f, %+.1f %%", name, curve, accept, concurrency, got, gamma, fixed, 100*(got/fixed-1))
					}
				}
			}
		}
	}
}

// Where arithmetic has become slower since the profile, or faster, steps say so,
// and what pays then is found.
func TestAdaptingToAnotherMachine(t *testing.T) {
	for name, slower := range map[string]float64{"slower": 1.6, "faster": 0.6} {
		for curve, least := range map[string]float64{"flat": 0.97, "linear": 0.96, "knee": 0.96} {
			for _, concurrency := range []int{1, 2, 4, 16} {
				before := curves[curve]
				// Bound by memory at one row, by arithmetic at many.
				after := func(rows int) float64 { return before(1) + slower*(before(rows)-before(1)) }
				w := newWorld(t, concurrency, before, lookup(always(0.75)))
				w.curve = after
				w.run(300)
				gamma, fixed := w.bestFixed(100 + 600/concurrency)
				if got := w.run(800); got < least*fixed {
					t.Errorf("%s, %s curve, %d at once: %.1f tokens/s, with %d tokens always %.1f", name, curve, concurrency, got, gamma, fixed)
				}
			}
		}
	}
}

// A profile that has plain decoding slower than it is makes drafts look cheap.
// No step would be plain then, and say that it is wrong, if it was not tried. By
// the true times a drafted row adds a 17th to a step of 16 and gains less.
func TestAWrongProfileIsFoundOut(t *testing.T) {
	for _, wrong := range []float64{1.03, 1.06, 1.1} {
		w := newWorld(t, 16, curves["linear"], lookup(always(0.8)))
		plain := 16 / w.curve(16)
		curve := w.curve
		w.curve = func(rows int) float64 {
			if rows <= 16 {
				return curve(rows) * wrong
			}
			return curve(rows)
		}
		w.c.Steps = w.profile()
		w.curve = curve
		got := w.run(600)
		t.Logf("%.2f: %.2f tokens/s, plain %.2f", wrong, got, plain)
		if got < 0.98*plain {
			t.Errorf("plain decoding is taken to be %.2f times as slow as it is: %.2f tokens/s, plain decoding %.2f", wrong, got, plain)
		}
	}
}

// Plain decoding may become faster while every step drafts and none says so: it is
// hoped for again, the longer it was not seen the more.
func TestDecodingThatBecomesFasterIsFound(t *testing.T) {
	sum, n := 0.0, 0.0
	for _, now := range []float64{0.7, 0.75, 0.8, 0.85} {
		for _, concurrency := range []int{4, 8, 12} {
			w := newWorld(t, concurrency, func(rows int) float64 { return 0.01 + 0.001*float64(rows) }, lookup(always(0.8)))
			w.noise = 0.03
			w.c.Steps = w.profile()
			w.run(300)
			before, few := w.curve, float64(concurrency)
			w.curve = func(rows int) float64 { // as before from three times as many rows on
				return before(rows) * (now + (1-now)*min(max((float64(rows)-few)/(2*few), 0), 1))
			}
			_, fixed := w.bestFixed(200)
			w.run(400)
			sum += w.run(300) / fixed
			n++
		}
	}
	if mean := sum / n; mean < 0.97 {
		t.Errorf("after 400 steps, to the best fixed number of tokens: %+.1f %% on average", 100*(mean-1))
	}
}

// A drafter that is never right costs 2 % at most.
func TestUselessDraftersCostLittle(t *testing.T) {
	for name, curve := range curves {
		for _, arms := range [][]drafter{
			{model(always(0))},
			{lookup(always(0))},
			{lookup(always(0)), model(always(0))},
			{{Arm: Arm{Name: "block", Depth: 8, Block: true}, accept: always(0), tells: "confidence", pass: 0.015}},
		} {
			for _, concurrency := range []int{1, 4, 16} {
				w := newWorld(t, concurrency, curve, arms...)
				plain := float64(concurrency) / curve(concurrency)
				if got := w.run(1000); got < 0.98*plain {
					t.Errorf("%s curve, %d arms, first %s, %d at once: %.2f tokens/s, plain decoding %.2f, %.1f %%", name, len(arms), arms[0].Name, concurrency, got, plain, 100*(got/plain-1))
				}
			}
		}
	}
}

// What an arm that is off costs is half a hundredth of the time. A probe that takes
// more than some steps is never made again.
func TestProbesAreSeldom(t *testing.T) {
	w := newWorld(t, 1, curves["linear"], model(always(0))) // a probe takes half a step
	w.run(400)
	w.drafted[0] = 0
	w.run(1000)
	if n := w.drafted[0]; n < 8 || n > 13 {
		t.Errorf("%d probes in 1000 steps, expected about 10", n)
	}
	slow := model(always(0.9))
	slow.pass = 0.3 // six steps
	w = newWorld(t, 1, curves["linear"], slow)
	w.run(4000)
	if n := w.drafted[0]; n > 2 {
		t.Errorf("a drafter whose pass takes six steps drafts %d times in 4000 steps", n)
	}
}

// When drafts begin to be accepted it is noticed within some hundred tokens.
func TestWhatBeginsToPayIsFound(t *testing.T) {
	const change = 500
	for _, arm := range []drafter{
		model(func(_, step int) float64 { return []float64{0, 0.9}[min(step/change, 1)] }),
		lookup(func(_, step int) float64 { return []float64{0, 0.9}[min(step/change, 1)] }),
	} {
		for _, curve := range []string{"flat", "knee", "linear"} {
			w := newWorld(t, 1, curves[curve], arm)
			w.run(change)
			w.run(400)
			if got, want := w.run(100), newWorld(t, 1, curves[curve], arm).fixedFrom(change, 4, 100); got < 0.95*want {
				t.Errorf("%s, %s curve: %.1f tokens/s after 400 steps, with 4 always %.1f", arm.Name, curve, got, want)
			}
		}
	}
}

// fixedFrom is fixed, later.
func (w *world) fixedFrom(step, gamma, steps int) float64 {
	for i := range w.arms {
		accept := w.arms[i].accept
		w.arms[i].accept = func(request, s int) float64 { return accept(request, s+step) }
	}
	return w.fixed(gamma, steps)
}

// Each request gets the drafter that pays for it.
func TestTheDrafterThatPaysIsFoundForEachRequest(t *testing.T) {
	code := lookup(func(request, _ int) float64 { return []float64{0.9, 0.05}[request%2] })
	chat := lookup(func(request, _ int) float64 { return []float64{0.1, 0.7}[request%2] })
	w := newWorld(t, 8, curves["flat"], code, chat)
	w.run(60)
	for arm := range w.drafted {
		w.drafted[arm] = 0
	}
	right := [2]int{}
	w.run(40)
	for r, x := range w.c.choices {
		if x.Arm == r%2 {
			right[r%2]++
		}
	}
	if right != [2]int{4, 4} {
		t.Errorf("after 100 steps %v of 4 and 4 requests have the drafter that pays: %v", right, w.c.choices)
	}
}

// A free draft that promises more than the model's is taken, else the model
// drafts.
func TestTheModelDraftsWhereNothingFreeDoes(t *testing.T) {
	quick := model(always(0.75))
	quick.pass /= 4
	w := newWorld(t, 4, curves["flat"],
		lookup(func(request, _ int) float64 { return []float64{0.95, 0.02}[request%2] }),
		quick)
	w.run(260)
	right := [2]int{}
	for range 40 {
		w.run(1)
		for r, x := range w.c.choices {
			if x.Arm == r%2 {
				right[x.Arm]++
			}
		}
	}
	if right[0] < 76 || right[1] < 76 { // but for probes
		t.Errorf("of 80 rounds each, %v have the arm expected", right)
	}
}

// Requests that are alike to a drafter but not to its acceptance get different
// depths.
func TestPopulationsGetDifferentDepths(t *testing.T) {
	arm := lookup(func(request, _ int) float64 { return []float64{0.9, 0.3}[request%2] })
	arm.spread = 0
	w := newWorld(t, 8, curves["stepped"], arm)
	w.run(200)
	var depths [2]int
	for r, q := range w.requests {
		depths[r%2] += q.drafts[0].Len() // as it was trimmed
	}
	if depths[0] < 4*3 || depths[1] > 4*1 {
		t.Errorf("verified are %d tokens of requests that accept 0.9, %d of those that accept 0.3", depths[0], depths[1])
	}
}

// The other of two drafters that cost is tried too, and taken if it is better.
func TestTheBetterOfTwoModelsIsFound(t *testing.T) {
	bad, good := model(always(0.45)), model(always(0.85))
	good.pass *= 1.5
	for name, arms := range map[string][]drafter{"first": {good, bad}, "last": {bad, good}} {
		w := newWorld(t, 2, curves["flat"], arms...)
		w.run(600)
		w.drafted = make([]int, 2)
		w.run(100)
		at := slices.IndexFunc(arms, func(d drafter) bool { return d.pass == good.pass })
		if w.drafted[at] < 180 {
			t.Errorf("the better model is %s: it drafted %d times of 200", name, w.drafted[at])
		}
	}
}
