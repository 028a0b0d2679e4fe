package engine

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/foretoken/foretoken/internal/sample"
)

// A Generation is a request that the engine has accepted. One goroutine reads
// it; the loop never waits for it: a queue holds what a slow client has not
// taken, at most the request's own max_tokens.
type Generation struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	queue    []Token
	err      error
	ended    bool
	progress Progress
	prompt   []TokenScore
	pooled   []float32
	ready    chan struct{} // holds a value when there may be something to take
}

// Progress says how far a request has come. Times are zero while their event
// has not happened.
type Progress struct {
	Submitted time.Time
	Started   time.Time // its first row was planned
	Prompted  time.Time // its prompt was computed, and with it the first token
	Ended     time.Time
	Prompt    int // tokens
	Cached    int // of them, those that were taken from the cache
	Output    int // tokens, of all choices
	// Speculation counts the drafts of all choices.
	Speculation SpeculationStats
}

// A TokenScore is a token of a prompt. Where nothing precedes it, it has no
// log-probability: Top is nil and LogProb 0.
type TokenScore struct {
	ID      int32
	LogProb float64
	Top     []sample.TokenLogProb
}

// Submit queues r. It returns a *RequestError for a request that cannot be
// meant, *QueueFull when as many requests wait as may, and ErrClosed. The
// request ends when ctx does. Close the Generation when done.
func (e *Engine) Submit(ctx context.Context, r Request) (*Generation, error) {
	if err := e.check(&r); err != nil {
		return nil, err
	}
	g := newGeneration(ctx, r)
	if err := e.loop.inbox.put(e.newGroup(g, r), e.maxQueued); err != nil {
		g.cancel()
		return nil, err
	}
	return g, nil
}

func newGeneration(ctx context.Context, r Request) *Generation {
	g := &Generation{ready: make(chan struct{}, 1), progress: Progress{Submitted: time.Now(), Prompt: len(r.Prompt)}}
	g.ctx, g.cancel = context.WithCancel(ctx)
	return g
}

// Close ends the request, if it has not ended, and frees what it holds. Close
// does not wait.
func (g *Generation) Close() { g.cancel() }

// Next returns the tokens that have come since the last call, waiting for the
// first. After the last token the error is io.EOF, or why the request failed.
// When ctx ends first the error is ctx's, and the request goes on.
func (g *Generation) Next(ctx context.Context) ([]Token, error) {
	for {
		queue, ended, err := g.take()
		switch {
		case len(queue) > 0:
			return queue, nil
		case ended && err != nil:
			return nil, err
		case ended:
			return nil, io.EOF
		}
		select {
		case <-g.ready:
		case <-g.ctx.Done():
			g.end(g.ctx.Err()) // a step or a job may keep the loop busy
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (g *Generation) take() (queue []Token, ended bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	queue, g.queue = g.queue, nil
	return queue, g.ended, g.err
}

// Progress returns how far the request has come.
func (g *Generation) Progress() Progress {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.progress
	p.Speculation = p.Speculation.clone()
	return p
}

// Prompt returns the scores of the prompt's tokens, if they were asked for and
// the first token has come or the request has ended.
func (g *Generation) Prompt() []TokenScore {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.prompt
}

// Pooled returns the pooled final states of the prompt, scaled to length 1,
// [hidden], once the request has ended, if they were asked for.
func (g *Generation) Pooled() []float32 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pooled
}

func (g *Generation) push(t Token) {
	g.update(func() {
		g.queue = append(g.queue, t)
		g.progress.Output++
	})
}

// end closes g, if it is open; err is nil where the last tokens said why they
// ended.
func (g *Generation) end(err error) {
	g.update(func() {
		if !g.ended {
			g.ended, g.err, g.progress.Ended = true, err, time.Now()
		}
	})
}

// update changes what the reader sees and wakes it.
func (g *Generation) update(f func()) {
	g.mu.Lock()
	f()
	g.mu.Unlock()
	select {
	case g.ready <- struct{}{}:
	default:
	}
}

// Generate yields the tokens of r's continuations as they come. An error ends
// the sequence. Leaving the iteration, or cancelling ctx, ends it at once; the
// engine drops the request at the next step.
func (e *Engine) Generate(ctx context.Context, r Request) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		g, err := e.Submit(ctx, r)
		if err != nil {
			yield(Token{}, err)
			return
		}
		defer g.Close()
		for {
			tokens, err := g.Next(context.Background())
			for _, t := range tokens {
				if !yield(t, nil) {
					return
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield(Token{}, err)
				}
				return
			}
		}
	}
}
