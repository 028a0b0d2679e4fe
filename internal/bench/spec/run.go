package spec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/sample"
)

// A result is what came of one run of a variant.
type result struct {
	answers [][]int32 // of each request
	counts  engine.SpeculationStats
	window  window
}

// tokens is how many were generated.
func (r *result) tokens() (n int) {
	for _, a := range r.answers {
		n += len(a)
	}
	return n
}

// speed is in tokens per second, of all requests together.
func (r *result) speed() float64 {
	return float64(r.window.generated) / max(r.window.took, 1).Seconds()
}

// differ counts answers that are not those of other.
func (r *result) differ(other *result) (n int) {
	for i, a := range r.answers {
		if !slices.Equal(a, other.answers[i]) {
			n++
		}
	}
	return n
}

// requestsOf is how many requests a run has: where several run at a time, at least
// as many again follow them.
func (o *Options) requestsOf(concurrency int) int {
	if concurrency == 1 {
		return o.Requests
	}
	return max(o.Requests, 2*concurrency)
}

// requests are those of a run.
func (b *measurement) requests(c *cell, v *variant) []engine.Request {
	requests := make([]engine.Request, b.requestsOf(c.concurrency))
	for i := range requests {
		p := sample.Default()
		p.Temperature, p.MaxTokens, p.IgnoreEOS, p.Seed = b.Temperature, b.MaxTokens, b.IgnoreEOS, b.Seed+uint64(i)
		if i < c.concurrency { // the first ones end one after another, as those of a server do
			p.MaxTokens = max(1, b.MaxTokens*(i+1)/c.concurrency)
		}
		requests[i] = engine.Request{
			Prompt: c.asked[i%len(c.asked)], Params: p, Speculation: &v.speculation,
			Namespace: b.namespace(c, v, i),
		}
	}
	return requests
}

// namespace is that of a request. What drafters learn of answers, and prefixes,
// belong to one. Where a method learns, each run has its own, and so has each
// repetition of a prompt in it: what was answered in one is never known in another.
// Else prompts stay computed from run to run, apart from those that no drafter has
// seen.
func (b *measurement) namespace(c *cell, v *variant, request int) string {
	switch {
	case v.speculation.Off:
		return "bench-spec-plain"
	case c.method.learns():
		return fmt.Sprintf("bench-spec-%d-%d", b.runs, request/len(c.asked))
	}
	return "bench-spec"
}

// run answers prompts, so many at a time, in a closed loop. Before it counts the
// prompts are computed, each with one token of its answer, so that what is timed is
// generation alone, where the model's cache can share prefixes.
func (b *measurement) run(ctx context.Context, c *cell, v *variant) (*result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	requests := b.requests(c, v)
	if v.engine.PrefixCache() == nil {
		first := slices.Clone(requests)
		for i := range first {
			first[i].Params.MaxTokens = 1
		}
		if _, err := answer(ctx, v.engine, first, c.concurrency); err != nil {
			return nil, err
		}
	}
	return answer(ctx, v.engine, requests, c.concurrency)
}

// answer sends requests, so many at a time.
func answer(ctx context.Context, e *engine.Engine, requests []engine.Request, concurrency int) (*result, error) {
	r := &result{answers: make([][]int32, len(requests)), window: window{requests: concurrency}}
	if concurrency == 1 {
		r.window.begun, r.window.from = 1, time.Now() // one runs all the while
	}
	var mu sync.Mutex // what follows is of all workers
	var failed error
	next := 0
	take := func() (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, next <= len(requests) && failed == nil
	}
	came := func(tokens int, first bool) {
		mu.Lock()
		defer mu.Unlock()
		r.window.add(tokens, first, time.Now())
	}
	var workers sync.WaitGroup
	for range min(concurrency, len(requests)) {
		workers.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				tokens, p, err := one(ctx, e, requests[i], came)
				mu.Lock()
				r.answers[i] = tokens
				r.counts.Add(p.Speculation)
				failed = errors.Join(failed, err)
				if next >= len(requests) {
					r.window.close(p.Ended)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if w := &r.window; failed == nil && w.begun < w.requests {
		failed = fmt.Errorf("only %d requests of %d had an answer that begins: expected %d at least", w.begun, len(requests), w.requests)
	}
	return r, failed
}

// one sends a request and returns its answer. It tells came of tokens.
func one(ctx context.Context, e *engine.Engine, r engine.Request, came func(tokens int, first bool)) (tokens []int32, p engine.Progress, err error) {
	g, err := e.Submit(ctx, r)
	if err != nil {
		return nil, p, err
	}
	defer g.Close()
	for {
		got, err := g.Next(ctx)
		if len(got) > 0 {
			came(len(got), len(tokens) == 0)
		}
		for _, t := range got {
			tokens = append(tokens, t.ID)
		}
		switch {
		case errors.Is(err, io.EOF):
			return tokens, g.Progress(), nil
		case err != nil:
			return tokens, g.Progress(), err
		}
	}
}
