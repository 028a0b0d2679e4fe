package engine

import (
	"context"
	"iter"
	"sync"
)

// A stream carries tokens from the loop to a client. The loop never waits: a
// queue holds what a slow client has not taken, at most the request's own
// max_tokens.
type stream struct {
	mu    sync.Mutex
	queue []Token
	err   error
	ended bool
	ready chan struct{} // holds a value when there may be something to take
}

func newStream() *stream { return &stream{ready: make(chan struct{}, 1)} }

func (s *stream) push(t Token) { s.update(func() { s.queue = append(s.queue, t) }) }

// end closes the stream, if it is open; err is nil where the last token said
// why it ended.
func (s *stream) end(err error) {
	s.update(func() {
		if !s.ended {
			s.ended, s.err = true, err
		}
	})
}

func (s *stream) update(f func()) {
	s.mu.Lock()
	f()
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

func (s *stream) take() (queue []Token, ended bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue, s.queue = s.queue, nil
	return queue, s.ended, s.err
}

// Generate yields the tokens of r's continuation as they come. An error ends
// the sequence. Leaving the iteration, or cancelling ctx, ends it at once; the
// engine drops the request at the next step.
func (e *Engine) Generate(ctx context.Context, r Request) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		s, err := e.newSequence(ctx, r)
		if err == nil {
			err = e.submit(s)
		}
		if err != nil {
			yield(Token{}, err)
			return
		}
		for {
			select {
			case <-s.out.ready:
			case <-ctx.Done():
				s.out.end(ctx.Err()) // a step or a job may keep the loop busy
			}
			queue, ended, err := s.out.take()
			for _, t := range queue {
				if !yield(t, nil) {
					return
				}
			}
			if ended {
				if err != nil {
					yield(Token{}, err)
				}
				return
			}
		}
	}
}
