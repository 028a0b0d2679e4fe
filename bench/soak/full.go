package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// full times how soon those learn that there is no place for them, in the queue
// of the engine and in the server.
func (s *soak) full(ctx context.Context) (figures []figure, err error) {
	model, err := s.small()
	if err != nil {
		return nil, err
	}
	for _, full := range []struct{ name, flag, n string }{
		{"queue full (--max-queued-requests 2)", "--max-queued-requests", "2"},
		{"server full (--max-concurrent-requests 3)", "--max-concurrent-requests", "3"},
	} {
		p, err := s.serve(ctx, model, "--max-num-seqs", "1", "--ping-interval", "20ms", full.flag, full.n)
		if err != nil {
			return nil, err
		}
		busy, idle := context.WithCancel(ctx)
		defer idle()
		for i := range 3 { // one runs, two wait
			if _, err := p.open(busy, completions, generate(numbers(i, 8), 30000)); err != nil {
				return nil, err
			}
		}
		var took []time.Duration
		for range 200 {
			a, err := p.post(ctx, completions, generate(numbers(9, 8), 1))
			if err == nil && (a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "") {
				err = fmt.Errorf("status %d, Retry-After %q: expected 429 with one: %s", a.status, a.header.Get("Retry-After"), a.text)
			}
			if err != nil {
				return nil, err
			}
			took = append(took, a.took)
		}
		figures = append(figures, within(full.name+": 429 with Retry-After", 10*time.Millisecond, took))
		idle()
		if err := p.stop(); err != nil {
			return figures, err
		}
	}
	return figures, nil
}
