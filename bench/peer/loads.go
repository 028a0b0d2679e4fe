package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foretoken/foretoken/internal/bench/serve"
)

// capacity is what a server has to hold at a time.
type capacity struct {
	slots   int  // requests
	context int  // tokens of each
	cache   bool // prompts of earlier requests
}

// A load is what a server is asked, and the figures that follow.
type load struct {
	capacity
	asked   []serve.Options // one after another, of the same server
	figures []servingFigure
	values  func(reports []*serve.Report) ([]float64, error) // of the figures, in their order
}

// A servingFigure is a row of the table.
type servingFigure struct {
	name   string
	higher bool // is better
	within bool // compares two figures of one server; between servers they are not compared
}

// serving is what servers are compared in; 0: not in that.
type serving struct {
	streams, requests, input, output int   // requests at a time, in all, and tokens of each
	interfere                        []int // tokens of long prompts
	beside                           int   // streams that run beside these
	besideOutput                     int   // tokens of each
	prefix                           int   // tokens of a common prefix
}

const (
	lowestToken, highestToken  = 1000, 31999 // ids that prompts are made of
	spare                      = 16          // tokens that a request leaves of its context
	afterPrefix                = 32          // tokens of a prompt behind the prefix
	coldPrompts, cachedPrompts = 5, 20       // without the prefix in the cache, and with
)

func (s *serving) loads() (loads []load) {
	if s.streams > 0 {
		loads = append(loads, s.throughput())
	}
	for _, tokens := range s.interfere {
		loads = append(loads, s.interference(tokens))
	}
	if s.prefix > 0 {
		loads = append(loads, s.commonPrefix())
	}
	return loads
}

// throughput is of many streams at a time.
func (s *serving) throughput() load {
	o := request(s.requests, s.streams, s.input, s.output)
	name := fmt.Sprintf("%d streams of %d + %d: ", s.streams, s.input, s.output)
	return load{
		capacity: capacity{slots: s.streams, context: s.input + s.output + spare}, asked: []serve.Options{o},
		figures: []servingFigure{
			{name: name + "output, tokens/s", higher: true},
			{name: name + "TTFT median, ms"},
			{name: name + "ITL median, ms"},
			{name: name + "ITL p99, ms"},
		},
		values: func(r []*serve.Report) ([]float64, error) {
			if r[0].ITL == nil {
				return nil, errors.New("a chunk brought all tokens of an answer: expected several")
			}
			return []float64{r[0].OutputThroughput, r[0].TTFT.Median, r[0].ITL.Median, r[0].ITL.P99}, nil
		},
	}
}

// interference is what the prefill of long prompts does to a few streams.
func (s *serving) interference(tokens int) load {
	o := request(s.beside, s.beside, s.input, s.besideOutput)
	o.Interfere = tokens
	name := fmt.Sprintf("%d streams beside prompts of %d: ", s.beside, tokens)
	return load{
		capacity: capacity{slots: s.beside + 1, context: max(tokens, s.input+s.besideOutput) + spare}, asked: []serve.Options{o},
		figures: []servingFigure{
			{name: name + "ITL p99 apart, ms"},
			{name: name + "ITL p99 during, ms"},
			{name: name + "p99 during to apart", within: true},
			{name: name + "TTFT of the prompts, ms"},
		},
		values: func(r []*serve.Report) ([]float64, error) {
			n := r[0].Interference
			switch {
			case n.Error != "":
				return nil, fmt.Errorf("a prompt of %d tokens: %s", tokens, n.Error)
			case n.Completed == 0 || n.Apart == nil || n.During == nil:
				return nil, fmt.Errorf("no prefill of %d tokens ended while streams of %d ran: expected a larger -beside-output", tokens, s.besideOutput)
			}
			return []float64{n.Apart.P99, n.During.P99, n.During.P99 / n.Apart.P99, n.TTFT.Median}, nil
		},
	}
}

// commonPrefix is how much sooner an answer begins when the server has computed
// what the prompt begins with.
func (s *serving) commonPrefix() load {
	cold := request(coldPrompts, 1, s.prefix+afterPrefix, 1)
	cached := request(cachedPrompts, 1, afterPrefix, 1)
	cached.Prefix = s.prefix // in the cache since the warm-up
	name := fmt.Sprintf("prompts of %d + %d: ", s.prefix, afterPrefix)
	return load{
		capacity: capacity{slots: 1, context: s.prefix + afterPrefix + spare, cache: true}, asked: []serve.Options{cold, cached},
		figures: []servingFigure{
			{name: name + "TTFT, ms"},
			{name: name + "TTFT, prefix cached, ms"},
			{name: name + "TTFT to that with the prefix cached", within: true, higher: true},
		},
		values: func(r []*serve.Report) ([]float64, error) {
			cold, cached := r[0].TTFT.Median, r[1].TTFT.Median
			return []float64{cold, cached, cold / cached}, nil
		},
	}
}

// request is of prompts of token ids and answers of exactly so many tokens.
func request(requests, concurrency, input, output int) serve.Options {
	return serve.Options{
		Endpoint: serve.Completions, Timeout: time.Hour, IgnoreEOS: true, Warmups: 1,
		Requests: requests, Concurrency: concurrency,
		Input: serve.Range{Min: input, Max: input}, Output: serve.Range{Min: output, Max: output},
		TokenIDs: serve.Range{Min: lowestToken, Max: highestToken},
	}
}

// measure asks a server and returns a value for each figure.
func (l *load) measure(ctx context.Context, url string, seed uint64) ([]float64, error) {
	var reports []*serve.Report
	for _, o := range l.asked {
		o.BaseURL, o.Seed = url, seed
		r, err := serve.Run(ctx, o)
		if err == nil {
			err = complete(r, o)
		}
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	return l.values(reports)
}

// complete refuses the figures of a server that did not do all of the work.
func complete(r *serve.Report, o serve.Options) error {
	if r.Failed > 0 {
		kind := slices.Sorted(maps.Keys(r.Errors))[0]
		return fmt.Errorf("%d of %d requests failed, some with %s: %s", r.Failed, o.Requests, kind, r.Errors[kind].Example)
	}
	if r.CountedByUsage != o.Requests {
		return errors.New("the server sends no usage: expected numbers of tokens")
	}
	n := int64(o.Requests)
	in, out := n*int64(o.Prefix+o.Input.Min), n*int64(o.Output.Min)
	if len(o.Prompts) > 0 {
		in = r.InputTokens // texts, whose tokens nobody else has counted
	}
	if r.InputTokens != in || r.OutputTokens != out {
		return fmt.Errorf("the server counts %d tokens in and %d out, expected %d and %d", r.InputTokens, r.OutputTokens, in, out)
	}
	return nil
}
