// Package serve measures a server of the OpenAI API under load: it sends
// requests as users would, one after another or when a clock says so, and times
// what comes back.
package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"
)

// Options say what is sent, when, and to whom.
type Options struct {
	BaseURL  string // of the server, with or without /v1
	Endpoint Endpoint
	Model    string // empty: the only one that the server has
	APIKey   string
	Timeout  time.Duration // of a request, from sending it to the end of its answer

	// What is sent. A trace says the lengths, and which prompts have blocks in
	// common; without one they are drawn, and prompts have nothing in common but
	// the prefix.
	Trace         *Trace // lengths are multiplied by LengthScale
	LengthScale   float64
	Requests      int   // how many; 0: all of the trace
	Input, Output Range // tokens of a prompt after the prefix, and to generate
	Prefix        int   // tokens that all prompts begin with, beside Input

	// When. Without a rate requests arrive as in the trace, time being multiplied
	// by TimeScale; without a trace, or with a scale of 0, all at the start.
	Rate      float64 // arrivals a second, as a Poisson process; 0: as said above
	TimeScale float64

	// Concurrency bounds the requests that run at a time: what arrives above that
	// waits, which counts as delay and not as latency. With arrivals all at the
	// start it makes a closed loop. 0: no bound.
	Concurrency int

	// Interfere is the length of prompts that come one after another while the
	// load runs, each for a single token, to see what their prefill does to it. They
	// count neither as requests nor for Concurrency. 0: none come.
	Interfere int

	// Prompts are sent in turn, as they are, instead of such as are drawn. Input is
	// then that of warm-ups, which are drawn all the same.
	Prompts []string

	Text      bool  // prompts of English words instead of token ids; chats have no other
	TokenIDs  Range // that prompts are made of
	Seed      uint64
	IgnoreEOS bool // asks for exactly as many tokens as Output says

	// Extra are more fields of each request's body, or others than temperature 0
	// and those above.
	Extra map[string]json.RawMessage

	Warmups int    // requests sent before, one after another, that do not count
	Goodput Limits // what a good request keeps

	// Progress, where it is set, is told how many requests have ended.
	Progress func(done, total int)

	transport http.RoundTripper // nil: the network
}

// maxRequests bounds the requests of a run, of which each leaves some hundred
// bytes.
const maxRequests = 1_000_000

// maxScale bounds the factors of a trace.
const maxScale = 1000

// Check reports what cannot be meant.
func (o *Options) Check() error {
	if o.Endpoint != Completions && o.Endpoint != Chat {
		return fmt.Errorf("endpoint %q: expected %s or %s", o.Endpoint, Completions, Chat)
	}
	if o.Timeout <= 0 {
		return fmt.Errorf("timeout %v: expected a time", o.Timeout)
	}
	if o.Trace == nil && o.Requests < 1 || o.Requests < 0 || o.Requests > maxRequests {
		return fmt.Errorf("%d requests: expected 1 to %d", o.Requests, maxRequests)
	}
	if o.Rate != 0 && !(o.Rate >= 1e-3) {
		return fmt.Errorf("%v requests a second: expected at least 0.001", o.Rate)
	}
	if o.Trace != nil {
		if !(o.TimeScale >= 0 && o.TimeScale <= maxScale) || !(o.LengthScale > 0 && o.LengthScale <= maxScale) {
			return fmt.Errorf("time × %v, lengths × %v: expected numbers up to %d, and some length", o.TimeScale, o.LengthScale, maxScale)
		}
	} else {
		for _, r := range []Range{o.Input, o.Output} {
			if r.Min < 1 || r.Max < r.Min || r.Max > maxTokens {
				return fmt.Errorf("lengths of %v: expected 1 to %d tokens", r, maxTokens)
			}
		}
	}
	if o.Prefix < 0 || o.Prefix > maxTokens || o.Concurrency < 0 || o.Warmups < 0 {
		return fmt.Errorf("prefix of %d tokens, concurrency %d, %d warm-ups: expected no negative number, and a prefix of at most %d",
			o.Prefix, o.Concurrency, o.Warmups, maxTokens)
	}
	if len(o.Prompts) > 0 && (o.Trace != nil || o.Prefix > 0) {
		return errors.New("prompts that are given beside a trace or a prefix: expected neither")
	}
	if o.Interfere < 0 || o.Interfere > maxTokens {
		return fmt.Errorf("interference of prompts of %d tokens: expected at most %d", o.Interfere, maxTokens)
	}
	if r := o.TokenIDs; !o.text() && (r.Min < 0 || r.Max < r.Min || r.Max > math.MaxInt32) {
		return fmt.Errorf("token ids of %v: expected a range of numbers that a vocabulary has", r)
	}
	for _, name := range []string{"prompt", "messages", "max_tokens", "stream", "n", "best_of"} {
		if _, ok := o.Extra[name]; ok {
			return fmt.Errorf("extra field %q: it is part of what is measured", name)
		}
	}
	return nil
}

func (o *Options) text() bool { return o.Text || o.Endpoint == Chat }

// Run sends the load and returns what it measured.
//
// Where ctx ends first, requests that run are given up, and the report of those
// that ended comes together with ctx's error. Requests that fail are part of
// the report; an error without one says why there was nothing to measure.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	plan, err := o.plan()
	if err != nil {
		return nil, err
	}
	c, err := newClient(&o, plan.BlockSize)
	if err != nil {
		return nil, err
	}
	defer c.http.CloseIdleConnections()
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	for i := range o.Warmups {
		r := plan.Requests[i%len(plan.Requests)]
		r.Blocks = nil // nothing that will count is cached before
		if _, _, err := c.ask(ctx, drawWarmup, i, r, func() {}); err != nil {
			return nil, fmt.Errorf("warm-up: %w", err)
		}
	}
	g := &generator{client: c, requests: plan.Requests}
	g.run(ctx)
	return g.report(), ctx.Err()
}
