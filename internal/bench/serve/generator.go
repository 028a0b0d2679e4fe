package serve

import (
	"context"
	"sync"
	"time"
)

// A generator sends requests when they are due and keeps what came of them.
type generator struct {
	*client
	requests []Request
	start    time.Time
	long     *interference // nil: none

	mu      sync.Mutex
	records []record
	gaps    histogram // between chunks, of requests that were completed
}

// A record is what is kept of a request that was sent.
type record struct {
	due, sent, end time.Duration // since the start: when it arrived, was sent, and ended
	ttft, e2e      time.Duration // since it was sent: to the chunk with the first token, and to that with the last
	input, output  int32         // tokens
	cached         int32         // tokens of the prompt that the server had kept, as it says
	chunks         int32         // with tokens
	usage          bool          // the numbers of tokens are the server's
	err            error         // nil, errInterrupted or *failure
}

// run sends all requests, unless ctx ends before, and waits for their answers.
func (g *generator) run(ctx context.Context) {
	g.start = time.Now()
	if g.Interfere > 0 {
		g.long = g.interfere(ctx)
		defer g.long.stop()
	}
	slots := make(chan struct{}, g.slots())
	due := time.NewTimer(0)
	defer due.Stop()
	var all sync.WaitGroup
	defer all.Wait()
	for i, r := range g.requests {
		due.Reset(time.Until(g.start.Add(r.At)))
		select {
		case <-due.C:
		case <-ctx.Done():
			return
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if ctx.Err() != nil { // where both were ready
			return
		}
		all.Go(func() {
			defer func() { <-slots }()
			g.keep(g.record(ctx, i, r))
		})
	}
}

// slots is how many requests may run at a time.
func (g *generator) slots() int {
	if g.Concurrency > 0 {
		return min(g.Concurrency, len(g.requests))
	}
	return len(g.requests)
}

// record sends request i and times its answer, which is nil where it failed.
func (g *generator) record(ctx context.Context, i int, r Request) (record, *answer) {
	began := func() {}
	if g.long != nil && i < g.long.first {
		began = sync.OnceFunc(g.long.runs)
		defer began() // if it fails before
	}
	sent, a, err := g.ask(ctx, drawPrompt, i, r, began)
	rec := record{due: r.At, sent: sent.Sub(g.start), err: err}
	if err != nil {
		rec.end = time.Since(g.start)
		return rec, nil
	}
	rec.end = a.end.Sub(g.start)
	rec.ttft, rec.e2e = a.first.Sub(sent), a.last.Sub(sent)
	rec.input, rec.output, rec.chunks = int32(g.Prefix+r.Input), int32(a.tokens()), int32(a.chunks)
	if a.usage != nil {
		rec.usage, rec.input, rec.cached = true, int32(a.usage.Prompt), int32(a.usage.Details.Cached)
	}
	return rec, a
}

func (g *generator) keep(r record, a *answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.records = append(g.records, r)
	if a != nil {
		for _, gap := range a.gaps {
			g.gaps.add(gap)
		}
		if g.long != nil {
			g.long.count(a)
		}
	}
	if g.Progress != nil {
		g.Progress(len(g.records), len(g.requests))
	}
}

// tpot is the time per output token after the first, and whether there was one.
func (r *record) tpot() (time.Duration, bool) {
	if r.output < 2 {
		return 0, false
	}
	return (r.e2e - r.ttft) / time.Duration(r.output-1), true
}
