package engine

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/testmodel"
	"go.uber.org/goleak"
)

// Metamorphic tests: however an engine divides its rows, its memory and its
// time, whatever it shares between requests and whoever else comes and goes,
// a request gets, to the last bit, the tokens and log-probabilities that it
// gets alone. Requests and configurations are random; what failed, and with it
// the seed, the number of the configuration and its options, is in the message.

var metamorphicSeed = flag.Uint64("metamorphic.seed", 1, "of the random requests and configurations of metamorphic tests")

// The small families: what they keep of sequences differs in kind.
func TestMetamorphic(t *testing.T) {
	var sum Stats
	for _, tc := range []struct {
		family           string
		prompt, modelLen int
	}{
		{"llama", 100, 256},        // keys and values in blocks
		{"gemma3_text", 100, 256},  // windows
		{"deepseek_v32", 100, 256}, // latent vectors, index keys, experts
		{"deepseek_v4", 270, 512},  // rings, compressed entries: pages are large, prefixes need snapshots
	} {
		t.Run(tc.family, func(t *testing.T) {
			subject{
				path: testmodel.Safetensors(t, testmodel.Family(tc.family)), base: Options{MaxModelLen: tc.modelLen},
				configurations: 3, requests: 14, prompt: tc.prompt, output: 36,
			}.test(t, &sum)
		})
	}
	enough(t, sum)
	if d := sum.Speculation[""]; !t.Failed() && (d.Accepted == 0 || d.Accepted == d.Drafted) {
		t.Errorf("of %d drafted tokens %d were accepted, expected that some were, and some not", d.Drafted, d.Accepted)
	}
}

// enough reports it if the figures of engines say that they were not tried:
// then the test would show nothing.
func enough(t *testing.T, sum Stats) {
	t.Helper()
	if !t.Failed() && (sum.PrefixHits == 0 || sum.Evicted == 0 || sum.Retractions == 0) {
		t.Errorf("%d tokens were taken from the cache, %d pages evicted, %d sequences retracted; expected some of each", sum.PrefixHits, sum.Evicted, sum.Retractions)
	}
}

// A subject is a model and how much is asked of it.
type subject struct {
	path           string
	base           Options // alone and in company: what values depend on, and MaxModelLen
	configurations int
	requests       int // of each configuration
	prompt, output int // the most tokens of a request, but for few that come to MaxModelLen
}

// A visit is a request in company.
type visit struct {
	grown
	arrival int // comes when so many tokens were delivered to all, or nobody is there
	leave   int // is closed when so many were delivered to it; -1: stays
	gone    int // is cancelled when so many were delivered to all, it may be in its prompt; -1: stays
}

// test adds the engines' figures to sum, those of all drafters under no name.
func (s subject) test(t *testing.T, sum *Stats) {
	f := newForest(t, s)
	dir := t.TempDir() // of saved prefixes, which one configuration finds from another
	for i := range s.configurations {
		o, press := f.options(dir), i%2 == 0
		if press {
			f.press(&o)
			o.NoPrefixCache = i%8 == 6
			if o.NoPrefixCache {
				o.PrefixCacheDir = ""
			}
		}
		visits := f.visits(s.requests, press)
		t.Run(fmt.Sprintf("configuration %d", i), func(t *testing.T) {
			t.Logf("-metamorphic.seed=%d\noptions %+v", *metamorphicSeed, o)
			stats := s.run(t, o, visits, press)
			t.Logf("stats %+v", stats)
			sum.PrefixHits += stats.PrefixHits
			sum.Evicted += stats.Evicted
			sum.Retractions += stats.Retractions
			drafts := sum.Speculation[""]
			for _, d := range stats.Speculation {
				drafts.Add(d)
			}
			sum.Speculation = map[string]SpeculationStats{"": drafts}
		})
	}
}

// run has an engine with options o serve visits and returns its figures after
// the last. Then the engine holds nothing, and leaves nothing when it is closed.
func (s subject) run(t *testing.T, o Options, visits []visit, press bool) Stats {
	ignore := goleak.IgnoreCurrent()
	e, err := Open(context.Background(), s.path, o)
	if err != nil {
		t.Fatal(err)
	}
	company := company{t: t, engine: e, visits: visits, press: press, events: make(chan event)}
	company.serve()
	settle(t, e)
	stats := e.Stats()
	if n := company.delivered; stats.OutputTokens < uint64(n) {
		t.Errorf("%d tokens were delivered, the engine has counted %d", n, stats.OutputTokens)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, ignore, clock)
	return stats
}

// settle waits until the engine has seen that nobody is there, and reports it
// if it holds something all the same. A request that was cancelled goes within
// a step, and Requests is answered between steps.
func settle(t *testing.T, e *Engine) {
	t.Helper()
	var list []RequestState
	var stats Stats
	for range 100 {
		var err error
		if list, err = e.Requests(context.Background()); err != nil {
			t.Fatal(err)
		}
		if stats = e.Stats(); len(list) == 0 && stats.Running == 0 && stats.Waiting == 0 && stats.CacheUsage == 0 {
			return
		}
	}
	t.Errorf("when all have left: requests %+v, %+v", list, stats)
}

// A company is the visits of one engine. Each has a goroutine; one more decides
// who comes when.
type company struct {
	t      *testing.T
	engine *Engine
	visits []visit
	press  bool
	events chan event

	delivered int // tokens
}

// An event is what a visitor tells of itself.
type event struct {
	visit  int
	tokens int  // that were delivered
	full   bool // the queue was full
	left   bool
}

func (c *company) serve() {
	var away []int // whom a full queue sent away: they try again when somebody leaves
	next, inside, steps := 0, 0, 0
	cancels := make([]context.CancelFunc, len(c.visits)) // of those that came
	enter := func(i int) {
		inside++
		var ctx context.Context
		ctx, cancels[i] = context.WithCancel(context.Background())
		go c.visit(ctx, i)
	}
	for next < len(c.visits) || inside > 0 {
		for next < len(c.visits) && (inside == 0 || c.delivered >= c.visits[next].arrival) {
			enter(next)
			next++
		}
		e := <-c.events
		c.delivered += e.tokens
		for i, cancel := range cancels[:next] {
			if gone := c.visits[i].gone; (e.left || e.full) && e.visit == i || gone >= 0 && c.delivered >= gone {
				cancel()
			}
		}
		steps++
		c.interfere(c.press && steps%16 == 0)
		if !e.left && !e.full {
			continue
		}
		inside--
		if e.full {
			away = append(away, e.visit)
			if inside > 0 {
				continue
			}
			settle(c.t, c.engine)
		}
		for _, i := range away {
			enter(i)
		}
		away = away[:0]
	}
}

// interfere checks the books between two steps, and takes from all sequences
// what they hold if retract is set, as a job does that needs the memory.
func (c *company) interfere(retract bool) {
	err := c.engine.exclusive(context.Background(), func() error {
		if retract {
			c.engine.retractAll()
		}
		return balanced(c.engine)
	})
	if err != nil {
		c.t.Errorf("between steps: %v", err)
	}
}

// visit makes a request and compares what comes with what it got alone.
func (c *company) visit(ctx context.Context, i int) {
	v := &c.visits[i]
	fail := func(format string, args ...any) {
		c.t.Errorf("visit %d: %s\n%s, leaves at %d, gone at %d", i, fmt.Sprintf(format, args...), v.describe(), v.leave, v.gone)
	}
	g, err := c.engine.Submit(ctx, v.Request)
	if full := (*QueueFull)(nil); errors.As(err, &full) {
		c.events <- event{visit: i, full: true}
		return
	}
	defer func() { c.events <- event{visit: i, left: true} }()
	if err != nil {
		fail("%v", err)
		return
	}
	defer g.Close()
	var got outcome
	for n := 0; err == nil; {
		if v.leave >= 0 && n >= v.leave {
			g.Close()
		}
		var tokens []Token
		tokens, err = g.Next(context.Background())
		n += len(tokens)
		got.add(tokens)
		c.events <- event{visit: i, tokens: len(tokens)}
	}
	got.prompt, got.pooled = g.Prompt(), g.Pooled()
	switch {
	case err == io.EOF:
		if diff := got.differs(&v.outcome); diff != "" {
			fail("%s", diff)
		}
		p := g.Progress()
		if p.Prompt != len(v.Prompt) || p.Output != got.tokens() || p.Cached < 0 || p.Cached >= p.Prompt {
			fail("%d tokens of %d: progress %+v", got.tokens(), len(v.Prompt), p)
		}
	case (v.leave >= 0 || v.gone >= 0) && errors.Is(err, context.Canceled):
		if diff := got.begins(&v.outcome); diff != "" {
			fail("before it was cancelled: %s", diff)
		}
	default:
		fail("%v", err)
	}
}

// An outcome is what a request got.
type outcome struct {
	choices [][]Token
	prompt  []TokenScore
	pooled  []float32
}

func (o *outcome) add(tokens []Token) {
	for _, t := range tokens {
		for len(o.choices) <= t.Choice {
			o.choices = append(o.choices, nil)
		}
		t.Drafted = false // the one thing that tells
		o.choices[t.Choice] = append(o.choices[t.Choice], t)
	}
}

func (o *outcome) tokens() (n int) {
	for _, c := range o.choices {
		n += len(c)
	}
	return n
}

// begins returns where o is no beginning of want; "": nowhere.
func (o *outcome) begins(want *outcome) string {
	if len(o.choices) > len(want.choices) {
		return fmt.Sprintf("%d choices, alone %d", len(o.choices), len(want.choices))
	}
	for c, got := range o.choices {
		want := want.choices[c]
		for i := range got {
			switch {
			case i == len(want):
				return fmt.Sprintf("choice %d goes on after %d tokens with %+v", c, i, got[i])
			case !reflect.DeepEqual(got[i], want[i]):
				return fmt.Sprintf("choice %d: token %d is %+v, alone %+v\nof %v, alone %v", c, i, got[i], want[i], ids(got), ids(want))
			}
		}
	}
	return ""
}

// differs returns where o differs from want; "": nowhere.
func (o *outcome) differs(want *outcome) string {
	if diff := o.begins(want); diff != "" {
		return diff
	}
	for c, all := range want.choices {
		if c >= len(o.choices) || len(o.choices[c]) < len(all) {
			return fmt.Sprintf("choice %d of %d ends early: %d tokens of %d", c, len(want.choices), o.tokens(), want.tokens())
		}
	}
	switch {
	case !reflect.DeepEqual(o.prompt, want.prompt):
		return fmt.Sprintf("scores of the prompt are\n%+v, alone\n%+v", o.prompt, want.prompt)
	case !slices.Equal(o.pooled, want.pooled):
		return fmt.Sprintf("pooled states are\n%v, alone\n%v", o.pooled, want.pooled)
	}
	return ""
}

// pick returns one of the values.
func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }
