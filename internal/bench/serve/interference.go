package serve

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// An interference sends long prompts while the load runs, one after another,
// and tells the gaps between chunks during their prefill from the others.
//
// It begins when every request that arrived at the start and had a place has a
// token, or has failed, and a pause as long as that took has passed. Each prompt is followed by
// a pause as long as its prefill, so that there is as much time with as without.
type interference struct {
	first int           // requests that it waits for
	begun chan struct{} // closed when it begins
	end   context.CancelFunc
	ended chan struct{} // closed when no more prompt is sent

	mu            sync.Mutex
	waiting       int       // of the first, those without a token that have not failed
	began         time.Time // zero: it has not
	spans         []span    // of prefills, in order
	ttft          []time.Duration
	err           error // why no more came; nil: the load ended
	during, apart histogram
}

// A span is a time in which a long prompt was prefilled.
type span struct{ from, to time.Time } // to is zero until the prefill has ended

// interfere begins to watch the load, and to interfere with it when it runs.
func (g *generator) interfere(ctx context.Context) *interference {
	ctx, cancel := context.WithCancel(ctx)
	first := g.atStart()
	n := &interference{first: first, waiting: first, begun: make(chan struct{}), ended: make(chan struct{}), end: cancel}
	go func() {
		defer close(n.ended)
		select {
		case <-n.begun:
			n.run(ctx, g)
		case <-ctx.Done():
		}
	}()
	return n
}

// stop gives up the prompt that is being prefilled, if one is.
func (n *interference) stop() {
	n.end()
	<-n.ended
}

// atStart is how many requests are sent as soon as the load starts.
func (g *generator) atStart() int {
	later := slices.IndexFunc(g.requests, func(r Request) bool { return r.At > 0 })
	if later < 0 {
		later = len(g.requests)
	}
	return min(later, g.slots())
}

// runs is called when one of the first requests has its first token, or has
// failed without one.
func (n *interference) runs() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting--; n.waiting == 0 {
		n.began = time.Now()
		close(n.begun)
	}
}

func (n *interference) run(ctx context.Context, g *generator) {
	pause := time.NewTimer(time.Since(g.start))
	defer pause.Stop()
	for i := 0; ; i++ {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		from := time.Now()
		n.mu.Lock()
		n.spans = append(n.spans, span{from: from})
		n.mu.Unlock()
		sent, a, err := g.ask(ctx, drawInterference, i, Request{Input: g.Interfere, Output: 1}, func() {})
		if ctx.Err() != nil {
			return // the span goes on until the end of the load
		}
		n.mu.Lock()
		if err != nil {
			n.err = err
			n.spans[i].to = time.Now()
		} else {
			n.spans[i].to = a.first
			n.ttft = append(n.ttft, a.first.Sub(sent))
		}
		n.mu.Unlock()
		if err != nil { // the next would be refused as well
			return
		}
		pause.Reset(time.Since(from))
	}
}

// count sorts the gaps between the chunks of an answer. Those that began before
// the interference did are neither: other prompts of the load were prefilled.
func (n *interference) count(a *answer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	spans := n.spans
	to := a.first
	for _, gap := range a.gaps {
		from := to
		to = from.Add(gap)
		for len(spans) > 0 && !spans[0].to.IsZero() && !spans[0].to.After(from) {
			spans = spans[1:]
		}
		switch {
		case len(spans) > 0 && spans[0].from.Before(to):
			n.during.add(gap)
		case !n.began.IsZero() && !from.Before(n.began):
			n.apart.add(gap)
		}
	}
}

// Interference is what long prompts did that came while the load ran. Latencies
// are in ms; null where nothing was measured.
type Interference struct {
	Completed int      `json:"completed"`       // prompts whose prefill ended while the load ran
	Error     string   `json:"error,omitempty"` // why there were no more; empty: the load ended
	TTFT      *Summary `json:"ttft_ms"`         // of those prompts
	During    *Summary `json:"itl_during_ms"`   // between the chunks of a request of the load, while a long prompt was prefilled
	Apart     *Summary `json:"itl_apart_ms"`    // the same while none was
}

func (n *interference) report() *Interference {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := &Interference{
		Completed: len(n.ttft), TTFT: summarise(newSamples(n.ttft)), During: summarise(&n.during), Apart: summarise(&n.apart),
	}
	if n.err != nil {
		r.Error = n.err.Error()
	}
	return r
}

// line says how much longer gaps are during the prefill of long prompts.
func (n *Interference) line(tokens int) string {
	s := fmt.Sprintf("%d of %d tokens", n.Completed, tokens)
	if n.During != nil && n.Apart != nil && n.Apart.P99 > 0 {
		s += fmt.Sprintf(", during which p99 of ITL is %.2f times as long", n.During.P99/n.Apart.P99)
	}
	if n.Error != "" {
		s += "; then " + n.Error
	}
	return s
}
