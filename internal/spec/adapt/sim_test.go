package adapt

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foretoken/foretoken/internal/spec"
)

// A world is a batch that decodes, in which all is known: how likely drafts are
// accepted, what a step takes and what a pass of a drafter does. Time is what
// the world says it is. Tokens and times are counted in expectation, so that
// little of a comparison is luck; what a controller sees are outcomes.
type world struct {
	t        testing.TB
	c        *Controller
	rng      *rand.Rand
	curve    func(rows int) float64 // seconds
	noise    float64                // of a step's time, relative
	arms     []drafter
	requests []*request
	depth    int     // most
	lifetime float64 // tokens of a request; 0: for ever

	step         int
	tokens, time float64 // expected
	drafted      []int   // rounds of each arm
}

type drafter struct {
	Arm
	// accept is the mean acceptance of a request's tokens at a step.
	accept func(request, step int) float64
	// spread is how far easy and hard tokens are from the mean.
	spread float64
	// tells says what the drafter knows of it: nothing, "peak" or "confidence".
	tells string
	pass  float64 // seconds of a pass
	each  float64 // more of them for each sequence
}

type request struct {
	number int
	learnt *Request
	tokens float64
	truth  [][]float64 // of this step, by arm: acceptance of each token
	drafts []*spec.Draft
	offers []*spec.Draft
}

func newWorld(t testing.TB, concurrency int, curve func(rows int) float64, arms ...drafter) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(7, 11)), curve: curve, arms: arms, depth: 8, drafted: make([]int, len(arms))}
	for i := range concurrency {
		w.requests = append(w.requests, w.newRequest(i))
	}
	w.c = New(Config{Arms: w.config(), Steps: w.profile()})
	return w
}

func (w *world) newRequest(number int) *request {
	q := &request{number: number, learnt: new(Request)}
	for range w.arms {
		q.drafts = append(q.drafts, new(spec.Draft))
		q.truth = append(q.truth, make([]float64, w.depth))
		q.offers = append(q.offers, nil)
	}
	return q
}

func (w *world) config() (arms []Arm) {
	for _, a := range w.arms {
		arms = append(arms, a.Arm)
	}
	return arms
}

// profile measures the curve three times, with the noise that there is.
func (w *world) profile() *Steps {
	rows := Grid(256)
	took := make([]time.Duration, len(rows))
	for i, r := range rows {
		took[i] = min(w.took(r), w.took(r), w.took(r))
	}
	s, err := NewSteps(rows, took)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) took(rows int) time.Duration {
	return seconds(w.curve(rows) * (1 + w.noise*(2*w.rng.Float64()-1)))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// draft lets an arm draft up to a depth that it drafts now.
func (w *world) draft(q *request, arm, depth int) {
	a, d := &w.arms[arm], q.drafts[arm]
	for i := d.Len(); i < depth; i++ {
		mean := a.accept(q.number, w.step)
		far := min(a.spread, mean, 1-mean)
		if w.rng.IntN(2) == 0 {
			far = -far
		}
		q.truth[arm][i] = mean + far
		d.Tokens = append(d.Tokens, 1)
		switch a.tells {
		case "peak":
			d.Peak = append(d.Peak, 0.5+(mean+far)/2) // not calibrated
		case "confidence":
			d.Confidence = append(d.Confidence, logistic(2*logit(mean+far)))
		}
	}
}

func clearDraft(d *spec.Draft) {
	d.Truncate(0)
}

// run decodes that many steps and returns the tokens per second.
func (w *world) run(steps int) float64 {
	w.tokens, w.time = 0, 0
	asks := make([]Ask, len(w.requests))
	var proposals []Proposal
	var owners []*request
	for range steps {
		for r, q := range w.requests {
			if w.lifetime > 0 && q.tokens >= w.lifetime {
				w.requests[r] = w.newRequest(q.number + len(w.requests))
				q = w.requests[r]
			}
			for arm := range w.arms {
				clearDraft(q.drafts[arm])
				q.offers[arm] = nil
				if w.arms[arm].Free {
					w.draft(q, arm, min(w.depth, w.arms[arm].Depth))
					q.offers[arm] = q.drafts[arm]
				}
			}
			asks[r] = Ask{Request: q.learnt, Allowed: 1<<len(w.arms) - 1, Depth: w.depth, Nodes: w.depth, Offers: q.offers}
		}
		choices := w.c.Choose(asks, Batch{})
		proposals, owners = proposals[:0], owners[:0]
		costly, passes := -1, 0
		for r, x := range choices {
			if x.Arm < 0 {
				continue
			}
			w.drafted[x.Arm]++
			if !w.arms[x.Arm].Free {
				costly = x.Arm
			} else {
				w.requests[r].drafts[x.Arm].Truncate(x.Depth)
			}
			proposals = append(proposals, Proposal{w.requests[r].learnt, x.Arm, 0, w.requests[r].drafts[x.Arm]})
			owners = append(owners, w.requests[r])
		}
		drafting := 0.0
		if costly >= 0 {
			passes, drafting = w.passes(choices, costly)
		}
		w.c.Admit(proposals)
		rows := len(asks)
		tokens := float64(len(asks))
		committed := len(asks)
		for i, p := range proposals {
			n := p.Draft.Len()
			rows += n
			reach := 1.0
			for _, x := range owners[i].truth[p.Arm][:n] {
				reach *= x
				tokens += reach
			}
			path := []int32{}
			for len(path) < n && w.rng.Float64() < owners[i].truth[p.Arm][len(path)] {
				path = append(path, int32(len(path)))
			}
			committed += len(path)
			owners[i].tokens += float64(len(path))
			w.c.Verified(p, path)
		}
		for _, q := range w.requests {
			q.tokens++
		}
		w.tokens += tokens
		w.time += w.curve(rows) + drafting
		w.c.Stepped(Step{Rows: rows, Sequences: len(asks), Tokens: committed, Took: w.took(rows), Arm: costly, Passes: passes, Drafting: seconds(drafting)})
		w.step++
	}
	return w.tokens / w.time
}

// passes drafts with an arm that costs.
func (w *world) passes(choices []Choice, arm int) (passes int, took float64) {
	a := &w.arms[arm]
	for depth := 1; ; depth++ {
		var p []Proposal
		n := 0
		for r, x := range choices {
			if x.Arm == arm {
				p = append(p, Proposal{w.requests[r].learnt, arm, 0, w.requests[r].drafts[arm]})
				if x.Depth >= depth {
					n++
				}
			}
		}
		if n == 0 || passes == 1 && a.Block || !w.c.More(arm, depth, p) {
			return passes, took
		}
		for r, x := range choices {
			switch {
			case x.Arm != arm || x.Depth < depth:
			case a.Block:
				w.draft(w.requests[r], arm, x.Depth)
			default:
				w.draft(w.requests[r], arm, depth)
			}
		}
		passes++
		took += a.pass + a.each*float64(n)
	}
}

// fixed returns the tokens per second of always drafting gamma tokens.
func (w *world) fixed(gamma, steps int) float64 {
	f := newWorld(w.t, len(w.requests), w.curve, w.arms...)
	f.lifetime = w.lifetime
	f.depth = gamma
	if gamma == 0 {
		f.depth = 1
		f.arms = nil
	}
	f.c = New(Config{Arms: f.config(), Fixed: true, Steps: f.profile()})
	return f.run(steps)
}

// bestFixed is the best of all fixed numbers of tokens.
func (w *world) bestFixed(steps int) (gamma int, rate float64) {
	for g := range w.depth + 1 {
		if r := w.fixed(g, steps); r > rate {
			gamma, rate = g, r
		}
	}
	return gamma, rate
}

// Curves of step times, in seconds, for a step of one row of about 50 ms.
var curves = map[string]func(rows int) float64{
	"flat":    func(rows int) float64 { return 0.050 + 0.0005*float64(rows) },
	"linear":  func(rows int) float64 { return 0.030 + 0.020*float64(rows) },
	"knee":    func(rows int) float64 { return 0.050 + 0.006*max(float64(rows)-8, 0) },
	"stepped": func(rows int) float64 { return 0.040 + 0.012*math.Ceil(float64(rows)/4) },
}

func always(p float64) func(int, int) float64 { return func(int, int) float64 { return p } }

func model(accept func(request, step int) float64) drafter {
	return drafter{Arm: Arm{Name: "model", Depth: 8}, accept: accept, spread: 0.2, tells: "peak", pass: 0.004, each: 0.0003}
}

func lookup(accept func(request, step int) float64) drafter {
	return drafter{Arm: Arm{Name: "lookup", Depth: 8, Free: true}, accept: accept, spread: 0.2}
}
