package serve

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"
)

// A Report has the figures of a run. Latencies and numbers of tokens are those
// of the requests that were completed.
type Report struct {
	URL   string `json:"url"` // of the endpoint
	Model string `json:"model"`
	Load  Load   `json:"load"`

	Duration float64 `json:"duration"` // s, from the first request sent to the end of the last

	// Requests: the sum of these is the load.
	Completed   int                `json:"completed"`
	Failed      int                `json:"failed"`
	Interrupted int                `json:"interrupted"` // given up because the run was
	Unsent      int                `json:"unsent"`      // for the same reason
	Errors      map[string]Failure `json:"errors"`      // of failed requests, by status or kind

	MaxConcurrent  int     `json:"max_concurrent_requests"`
	MeanConcurrent float64 `json:"mean_concurrent_requests"` // over the duration

	InputTokens    int64 `json:"total_input_tokens"`
	CachedTokens   int64 `json:"cached_tokens"` // of those, what the server says it had kept
	OutputTokens   int64 `json:"total_output_tokens"`
	OutputChunks   int64 `json:"total_output_chunks"` // that the tokens came in
	CountedByUsage int   `json:"requests_with_usage"` // whose tokens the server counted; of others a chunk is a token

	// Per second of Duration.
	RequestThroughput float64 `json:"request_throughput"`
	InputThroughput   float64 `json:"input_throughput"`
	OutputThroughput  float64 `json:"output_throughput"`

	Goodput *Goodput `json:"goodput,omitempty"` // where there are limits

	// Latencies in ms; null where nothing was measured.
	TTFT  *Summary `json:"ttft_ms"`  // from sending a request to the first token
	TPOT  *Summary `json:"tpot_ms"`  // (e2e − ttft) / (tokens − 1) of a request; none of a single token
	ITL   *Summary `json:"itl_ms"`   // between the chunks of a request
	E2E   *Summary `json:"e2e_ms"`   // from sending a request to the last token
	Delay *Summary `json:"delay_ms"` // from arrival to sending; of all that were sent; null in a closed loop

	Interference *Interference `json:"interference,omitempty"` // where there was any

	plots []plot
	busy  []float64 // requests that run, on average over equal parts of the duration
}

// Load is what was sent.
type Load struct {
	Arrivals    string  `json:"arrivals"` // "closed loop", "at once", "poisson" or "trace"
	Rate        float64 `json:"request_rate,omitempty"`
	Concurrency int     `json:"concurrency,omitempty"`
	Requests    int     `json:"requests"`
	Trace       bool    `json:"trace"` // lengths and common prefixes are a trace's
	TimeScale   float64 `json:"time_scale,omitempty"`
	LengthScale float64 `json:"length_scale,omitempty"`
	Input       string  `json:"input_len,omitempty"` // without a trace
	Output      string  `json:"output_len,omitempty"`
	Prefix      int     `json:"prefix_len"`
	Interfere   int     `json:"interfere_len,omitempty"`
	Prompts     string  `json:"prompts"` // "tokens", "text" or "given"
	IgnoreEOS   bool    `json:"ignore_eos"`
	Seed        uint64  `json:"seed"`
}

// Failure is how often a kind of error came, and what was said the first time.
type Failure struct {
	Count   int    `json:"count"`
	Example string `json:"example"`
}

// report sums up what is known of the requests that have ended.
func (g *generator) report() *Report {
	r := &Report{
		URL: g.base + string(g.Endpoint), Model: g.Model, Load: g.load(),
		Unsent: len(g.requests) - len(g.records), Errors: map[string]Failure{},
	}
	var ttft, tpot, e2e, delay []time.Duration
	good := 0
	for i := range g.records {
		rec := &g.records[i]
		delay = append(delay, rec.sent-rec.due)
		if rec.err != nil {
			r.fail(rec.err)
			continue
		}
		r.Completed++
		r.InputTokens += int64(rec.input)
		r.CachedTokens += int64(rec.cached)
		r.OutputTokens += int64(rec.output)
		r.OutputChunks += int64(rec.chunks)
		if rec.usage {
			r.CountedByUsage++
		}
		ttft, e2e = append(ttft, rec.ttft), append(e2e, rec.e2e)
		if d, ok := rec.tpot(); ok {
			tpot = append(tpot, d)
		}
		if g.Goodput.keeps(rec) {
			good++
		}
	}
	r.concurrency(g.records)
	second := func(n float64) float64 {
		if r.Duration == 0 {
			return 0
		}
		return n / r.Duration
	}
	r.RequestThroughput, r.InputThroughput, r.OutputThroughput = second(float64(r.Completed)), second(float64(r.InputTokens)), second(float64(r.OutputTokens))
	if g.Goodput != (Limits{}) {
		r.Goodput = &Goodput{Limits: g.Goodput, Requests: good, RequestThroughput: second(float64(good))}
		if n := r.Completed + r.Failed; n > 0 {
			r.Goodput.Share = float64(good) / float64(n)
		}
	}
	for _, v := range []struct {
		into **Summary
		name string
		distribution
	}{
		{&r.TTFT, "Time to first token (TTFT)", newSamples(ttft)},
		{&r.TPOT, "Time per output token (TPOT)", newSamples(tpot)},
		{&r.ITL, "Between chunks (ITL)", &g.gaps},
		{&r.E2E, "End to end (E2E)", newSamples(e2e)},
	} {
		if *v.into = summarise(v.distribution); *v.into != nil {
			r.plots = append(r.plots, newPlot(v.name, v.distribution))
		}
	}
	if g.long != nil {
		r.Interference = g.long.report()
	}
	if r.Load.Arrivals != closedLoop { // where what arrives is made to wait
		r.Delay = summarise(newSamples(delay))
	}
	return r
}

// fail counts a request that was not completed.
func (r *Report) fail(err error) {
	f, failed := errors.AsType[*failure](err)
	if !failed { // errInterrupted
		r.Interrupted++
		return
	}
	r.Failed++
	e := r.Errors[f.kind]
	e.Count++
	e.Example = cmp.Or(e.Example, f.message)
	r.Errors[f.kind] = e
}

// How requests arrive.
const (
	closedLoop = "closed loop"
	atOnce     = "at once"
	poisson    = "poisson"
	asTraced   = "trace"
)

func (g *generator) load() Load {
	l := Load{
		Arrivals: atOnce, Concurrency: g.Concurrency, Requests: len(g.requests), Prefix: g.Prefix, Interfere: g.Interfere, Prompts: "tokens",
		IgnoreEOS: g.IgnoreEOS, Seed: g.Seed,
	}
	switch {
	case g.Rate > 0 && !math.IsInf(g.Rate, 1):
		l.Arrivals, l.Rate = poisson, g.Rate
	case g.Rate == 0 && g.Trace != nil && g.TimeScale > 0:
		l.Arrivals, l.TimeScale = asTraced, g.TimeScale
	case g.Concurrency > 0:
		l.Arrivals = closedLoop
	}
	if g.Trace != nil {
		l.Trace, l.LengthScale = true, g.LengthScale
	} else {
		l.Input, l.Output = g.Input.String(), g.Output.String()
	}
	switch {
	case len(g.Prompts) > 0:
		l.Prompts, l.Input = "given", ""
	case g.text():
		l.Prompts = "text"
	}
	return l
}

// busyParts is into how many parts the plot of running requests divides time.
const busyParts = 240

// concurrency sets what is known of how many requests ran together, and how
// long all of it took.
func (r *Report) concurrency(records []record) {
	if len(records) == 0 {
		return
	}
	type change struct {
		at time.Duration
		by int
	}
	changes := make([]change, 0, 2*len(records))
	for _, rec := range records {
		changes = append(changes, change{rec.sent, 1}, change{rec.end, -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	first, last := changes[0].at, changes[len(changes)-1].at
	r.Duration = (last - first).Seconds()
	r.busy = make([]float64, busyParts)
	running, from := 0, first
	for _, c := range changes {
		r.spread(from-first, c.at-first, last-first, running)
		from = c.at
		running += c.by
		r.MaxConcurrent = max(r.MaxConcurrent, running)
	}
	for _, v := range r.busy {
		r.MeanConcurrent += v / busyParts
	}
}

// spread adds n requests that ran from one time to another to the parts of the
// whole in which they did.
func (r *Report) spread(from, to, whole time.Duration, n int) {
	if to <= from {
		return
	}
	a, b := float64(from)/float64(whole)*busyParts, float64(to)/float64(whole)*busyParts
	for part := int(a); part < busyParts && float64(part) < b; part++ {
		r.busy[part] += float64(n) * (min(b, float64(part+1)) - max(a, float64(part)))
	}
}
