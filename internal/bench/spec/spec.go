// Package spec measures what speculation gains: it lets a model answer the same
// prompts with drafts and without, in turns.
package spec

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/foretoken/foretoken/internal/bench"
	"github.com/foretoken/foretoken/internal/engine"
)

// Options say what is measured.
type Options struct {
	// Open opens the model with a way to speculate. At most two engines are open
	// at a time.
	Open func(context.Context, engine.Speculation) (*engine.Engine, error)

	Methods     []Method
	Fixed       []int // numbers of drafted tokens to measure besides, without adaptation
	Sets        []Set
	Concurrency []int // requests that run at a time
	Requests    int   // of a run; where several run at a time, at least twice as many as do
	MaxTokens   int   // of an answer
	Temperature float32
	IgnoreEOS   bool // answers go on to MaxTokens
	Raw         bool // questions too are continued as text
	Seed        uint64
	Runs        int // of which figures are medians

	// Progress, where it is set, is told how many runs there were.
	Progress func(done, total int)
}

// A Method is a way to speculate.
type Method struct {
	Name        string
	Speculation engine.Speculation
}

// simulated reports whether acceptance is made up, and texts with it.
func (m *Method) simulated() bool { return len(m.Speculation.Simulate) > 0 }

// learns reports whether answers teach it to draft others.
func (m *Method) learns() bool {
	return m.Speculation.Method == "suffix" || m.Speculation.Method == "auto"
}

// exact reports whether speculation must not change the text.
func (m *Method) exact(temperature float32) bool {
	v := m.Speculation.Verify
	return !m.simulated() && (v == "" || v == "coupled" || temperature == 0)
}

// Check reports what cannot be meant.
func (o *Options) Check() error {
	switch {
	case len(o.Methods) == 0:
		return errors.New("no method of speculation: expected at least one")
	case len(o.Sets) == 0:
		return errors.New("no prompts: expected at least one set")
	case len(o.Concurrency) == 0 || slices.Min(o.Concurrency) < 1 || slices.Max(o.Concurrency) > mostConcurrent:
		return fmt.Errorf("concurrency %v: expected numbers from 1 to %d", o.Concurrency, mostConcurrent)
	case o.Requests < 1 || o.MaxTokens < 2 || o.Runs < 1:
		return fmt.Errorf("%d runs of %d requests for %d tokens: expected at least 1 run, 1 request and 2 tokens", o.Runs, o.Requests, o.MaxTokens)
	}
	var names []string
	for _, m := range o.Methods {
		names = append(names, m.Name)
	}
	if n, again := twice(o.Concurrency); again {
		return fmt.Errorf("concurrency %d is to be measured twice: expected once", n)
	}
	if n, again := twice(o.Fixed); again {
		return fmt.Errorf("%d drafted tokens are to be measured twice: expected once", n)
	}
	if name, again := twice(names); again {
		return fmt.Errorf("method %s is to be measured twice: expected once", name)
	}
	for _, gamma := range o.Fixed {
		if gamma < 1 {
			return fmt.Errorf("fixed number of drafted tokens %d: expected at least 1", gamma)
		}
	}
	for _, m := range o.Methods {
		if m.Speculation.Fixed && len(o.Fixed) > 0 {
			return fmt.Errorf("method %s is configured not to adapt: fixed numbers of drafted tokens have nothing to be compared with", m.Name)
		}
	}
	return nil
}

const mostConcurrent = 1 << 10

// twice finds a value that comes a second time.
func twice[T comparable](list []T) (value T, again bool) {
	for i, v := range list {
		if slices.Contains(list[:i], v) {
			return v, true
		}
	}
	return value, false
}

// Run measures all methods on all sets at all numbers of requests at a time.
//
// Figures are medians over o.Runs rounds. In each round every variant of a
// method, and no speculation, has its turn; the order alternates, so that what
// else the machine does meets all of them, and ratios are taken within a round.
// A round before them does not count.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	b := &measurement{Options: o, report: newReport(&o)}
	b.total = len(o.Methods) * len(o.Sets) * len(o.Concurrency) * (1 + o.Runs) * (2 + len(o.Fixed))
	for i := range o.Methods {
		if err := b.method(ctx, &o.Methods[i]); err != nil {
			return nil, fmt.Errorf("method %s: %w", o.Methods[i].Name, err)
		}
	}
	return b.report, nil
}

// A measurement is one call of Run.
type measurement struct {
	Options
	report      *Report
	runs, total int
}

// method measures one method.
func (b *measurement) method(ctx context.Context, m *Method) (err error) {
	adaptive, err := b.Open(ctx, m.Speculation)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close(adaptive)) }()
	variants := []*variant{
		{engine: adaptive, speculation: engine.RequestSpeculation{Off: true}},
		{engine: adaptive},
	}
	if len(b.Fixed) > 0 {
		s := m.Speculation
		s.Fixed, s.Tokens = true, slices.Max(b.Fixed)
		fixed, err := b.Open(ctx, s)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.close(fixed)) }()
		for _, gamma := range b.Fixed {
			variants = append(variants, &variant{engine: fixed, gamma: gamma, speculation: engine.RequestSpeculation{Tokens: gamma}})
		}
	}
	b.report.machine(adaptive)
	for i := range b.Sets {
		asked, err := b.encode(ctx, adaptive, &b.Sets[i])
		if err != nil {
			return fmt.Errorf("prompts %s: %w", b.Sets[i].Name, err)
		}
		b.report.set(b.Sets[i].Name, asked, len(b.Sets[i].Prompts))
		for _, concurrency := range b.Concurrency {
			c := cell{method: m, prompts: b.Sets[i].Name, asked: asked, concurrency: concurrency, variants: variants, exact: m.exact(b.Temperature)}
			if err := b.cell(ctx, &c); err != nil {
				return fmt.Errorf("prompts %s, %d at a time: %w", c.prompts, concurrency, err)
			}
			b.report.Rows = append(b.report.Rows, c.rows()...)
		}
	}
	return nil
}

// close closes an engine, and notes how it fared.
func (b *measurement) close(e *engine.Engine) error {
	b.report.Retractions += e.Stats().Retractions
	return e.Close()
}

// A variant is a way to answer that takes turns with others.
type variant struct {
	engine      *engine.Engine
	speculation engine.RequestSpeculation
	gamma       int // drafted tokens, where they are fixed
}

// A cell is what is measured of a method with prompts of one set and so many
// requests at a time.
type cell struct {
	method      *Method
	prompts     string
	asked       [][]int32 // the prompts
	concurrency int
	variants    []*variant // the first does not speculate
	samples     []samples  // of the variants
	exact       bool       // speculation must not change the text
}

// samples are those of one variant.
type samples struct {
	speeds []float64 // tokens/s, of each round
	counts engine.SpeculationStats
	tokens int // after the first of each answer
	differ int // answers that are not what they are without speculation
}

// cell measures one cell.
func (b *measurement) cell(ctx context.Context, c *cell) error {
	c.samples = make([]samples, len(c.variants))
	order := make([]int, len(c.variants))
	for i := range order {
		order[i] = i
	}
	results := make([]*result, len(c.variants))
	for round := range 1 + b.Runs {
		for _, i := range order {
			r, err := b.run(ctx, c, c.variants[i])
			if err != nil {
				return err
			}
			if n := r.counts.Rounds; i == 0 && n > 0 {
				return fmt.Errorf("without speculation %d drafts were verified: expected none", n)
			}
			results[i] = r
			b.runs++
			if b.Progress != nil {
				b.Progress(b.runs, b.total)
			}
		}
		slices.Reverse(order)
		for i, r := range results {
			c.samples[i].differ += r.differ(results[0])
			if round > 0 {
				c.samples[i].add(r)
			}
		}
	}
	return nil
}

func (s *samples) add(r *result) {
	s.speeds = append(s.speeds, r.speed())
	s.tokens += r.tokens() - len(r.answers)
	s.counts.Add(r.counts)
}

// speed is the median of the rounds.
func (s *samples) speed() float64 { return bench.Median(s.speeds) }

// ratio is the median of the ratios to other in the same round.
func (s *samples) ratio(other *samples) float64 {
	var ratios []float64
	for i, v := range s.speeds {
		ratios = append(ratios, v/other.speeds[i])
	}
	return bench.Median(ratios)
}
