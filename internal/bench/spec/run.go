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

	// Speed is taken while as many requests run as are to: from the first until one
	// ends that no other follows. Fewer at a time would be slower, or gain more, than
	// what is measured.
	generated int // tokens in that time
	took      time.Duration
}

// tokens is how many were generated.
func (r *result) tokens() (n int) {
	for _, a := range r.answers {
		n += len(a)
	}
	return n
}

// speed is in tokens per second, of all requests together.
func (r *result) speed() float64 { return float64(r.generated) / max(r.took, 1).Seconds() }

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
	r := &result{answers: make([][]int32, len(requests))}
	var mu sync.Mutex // what follows is of all workers
	var failed error
	next, generated := 0, 0
	start := time.Now()
	// take returns the request that follows one that has ended then.
	take := func(ended time.Time) (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		if next == len(requests)+1 {
			r.generated, r.took = generated, ended.Sub(start)
		}
		return next - 1, next <= len(requests) && failed == nil
	}
	count := func(tokens int) {
		mu.Lock()
		defer mu.Unlock()
		generated += tokens
	}
	var workers sync.WaitGroup
	for range min(concurrency, len(requests)) {
		workers.Go(func() {
			for i, ok := take(start); ok; {
				tokens, p, err := one(ctx, e, requests[i], count)
				mu.Lock()
				r.answers[i] = tokens
				r.counts.Add(p.Speculation)
				failed = errors.Join(failed, err)
				mu.Unlock()
				i, ok = take(p.Ended)
			}
		})
	}
	workers.Wait()
	return r, failed
}

// one sends a request and returns its answer. It tells count of tokens as they come.
func one(ctx context.Context, e *engine.Engine, r engine.Request, count func(tokens int)) (tokens []int32, p engine.Progress, err error) {
	g, err := e.Submit(ctx, r)
	if err != nil {
		return nil, p, err
	}
	defer g.Close()
	for {
		got, err := g.Next(ctx)
		count(len(got))
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
