package server

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/foretoken/foretoken/internal/engine"
)

// A generation is the engine's, read for a client: what comes is timed and
// counted on its way. One goroutine calls Next.
type generation struct {
	*engine.Generation
	ctx     context.Context // the HTTP request's
	metrics *metrics
	most    int         // max_tokens of a choice
	timer   *time.Timer // of the first token; nil: there is no limit

	last   []time.Time // when each choice had its last token
	finish []string    // why each ended; "": it has not
	whole  bool        // all came to their end
	err    error       // why they did not, if it was the engine
}

// start submits q for the HTTP request of ctx, and holds it to the limit of the
// first token.
func (s *Server) start(ctx context.Context, q engine.Request) (*generation, error) {
	in := requestOf(ctx)
	inner, err := s.engine.Submit(ctx, q)
	if err != nil {
		return nil, err
	}
	choices := max(q.Choices, 1)
	g := &generation{
		Generation: inner, ctx: ctx, metrics: s.metrics, most: q.Params.MaxTokens,
		last: make([]time.Time, choices), finish: make([]string, choices),
	}
	if d := s.Limits.FirstToken; d > 0 {
		g.timer = time.AfterFunc(d, func() {
			if g.Progress().Prompted.IsZero() {
				in.cancel(errFirstToken)
			}
		})
	}
	in.generations = append(in.generations, g)
	return g, nil
}

// Next is the engine's. Where the HTTP request has ended the error says why.
func (g *generation) Next(ctx context.Context) ([]engine.Token, error) {
	tokens, err := g.Generation.Next(ctx)
	now := time.Now()
	for _, t := range tokens {
		if last := &g.last[t.Choice]; *last != now {
			if !last.IsZero() {
				g.metrics.interToken.Observe(now.Sub(*last).Seconds())
			}
			*last = now
		}
		if t.Finish != "" {
			g.finish[t.Choice] = string(t.Finish)
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		g.whole = true
	case err != nil && g.ctx.Err() != nil:
		err = context.Cause(g.ctx)
	case err != nil && ctx.Err() == nil: // else the handler had enough of it
		g.err = err
	}
	return tokens, err
}

// totals are what the generations of one HTTP request took.
type totals struct {
	prompt, cached, output int
	queue, first           time.Duration // of the first that began, and that had a token
	drafts                 engine.SpeculationStats
	finish                 string // of the choices, where it is one; else the last that is none of the good ones
}

// settle observes a generation that nobody reads any more, and adds it to t.
func (g *generation) settle(t *totals) {
	if g.timer != nil {
		g.timer.Stop()
	}
	g.Close()
	p := g.Progress()
	t.prompt += p.Prompt
	t.cached += p.Cached
	t.output += p.Output
	t.drafts.Add(p.Speculation)
	early := func(least *time.Duration, d time.Duration) {
		if *least == 0 || d < *least {
			*least = d
		}
	}
	if !p.Started.IsZero() {
		early(&t.queue, p.Started.Sub(p.Submitted))
	}
	if !p.Prompted.IsZero() {
		early(&t.first, p.Prompted.Sub(p.Submitted))
	}
	for i, f := range g.finish {
		g.finish[i] = g.outcome(f)
		g.metrics.success.WithLabelValues(g.finish[i]).Inc()
		if t.finish == "" || g.finish[i] == "abort" || g.finish[i] == "error" {
			t.finish = g.finish[i]
		}
	}
	g.metrics.observe(p, g.most, g.whole)
}

// outcome is why a choice ended, by vLLM's names. What was asked for without any
// token ends as if it had its length.
func (g *generation) outcome(finish string) string {
	switch {
	case finish != "":
		return finish
	case g.whole:
		return string(engine.Length)
	case g.err != nil:
		return "error"
	}
	return "abort" // the client left or had its time, or the handler had enough of it
}
