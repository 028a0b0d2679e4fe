package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// A table is what /debug/requests says.
type table struct {
	Engine struct {
		Usage float64 `json:"kv_cache_usage"`
	}
	Requests []struct{ ID, State string }
}

// state is that of the request id, "" if there is none.
func (p *process) state(ctx context.Context, id string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/debug/requests", nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Accept", "application/json")
	a, err := p.do(r)
	if err != nil {
		return "", err
	}
	var t table
	if err := json.Unmarshal([]byte(a.text), &t); err != nil {
		return "", fmt.Errorf("%w in %s", err, a.text)
	}
	for _, q := range t.Requests {
		if q.ID == id {
			return q.State, nil
		}
	}
	return "", nil
}

// leave has clients leave while their request is in the queue, in its prompt,
// being written, or has a caller that waits for all of it; each time another
// stream goes on. That two steps are enough for the engine itself is a test of
// internal/engine.
func (s *soak) leave(ctx context.Context) (figures []figure, err error) {
	model := s.model
	if model == "" {
		if model, err = s.small(); err != nil {
			return nil, err
		}
	}
	p, err := s.serve(ctx, model, "--max-num-seqs", "2", "--ping-interval", "10ms", "--no-enable-prefix-caching")
	if err != nil {
		return nil, err
	}
	busy, idle := context.WithCancel(ctx)
	defer idle()
	witness, err := p.open(busy, completions, generate(numbers(1, 8), 1500))
	if err != nil {
		return nil, err
	}
	told := make(chan error, 1)
	go func() {
		ids, err := witness.rest()
		if err == nil && len(ids) != 1500 {
			err = fmt.Errorf("%d tokens, expected 1500", len(ids))
		}
		told <- err
	}()
	for _, left := range []struct {
		name, state string
		prompt      int
		stream      bool
	}{
		{"in the queue", "waiting", 8, true},
		{"in its prompt", "prefill", 1500, true},
		{"while it is written", "decode", 8, true},
		{"that waits for all of it", "decode", 8, false},
	} {
		var times []time.Duration
		var steps []float64
		for try := range 5 {
			took, n, err := p.leaveAt(ctx, left.state, generate(numbers(try, left.prompt), 1000), left.stream, try)
			if err != nil {
				return figures, fmt.Errorf("client leaves %s: %w", left.name, err)
			}
			times, steps = append(times, took), append(steps, n)
		}
		f := within("client leaves "+left.name+": request is gone, its memory free", 100*time.Millisecond, times)
		f.measured += fmt.Sprintf("; steps begun meanwhile: %v", steps)
		figures = append(figures, f)
	}
	err = <-told
	f := figure{goal: "stream beside them", limit: "all of its 1500 tokens", measured: "all", missed: err != nil}
	if err != nil {
		f.measured = err.Error()
	}
	return append(figures, f), p.stop()
}

// leaveAt sends a request, leaves once it is in the state, and says how long it
// took until the engine had forgotten it, and how many steps, those with it that
// began while the kernel told the server, and those while the figures came.
func (p *process) leaveAt(ctx context.Context, state string, body object, streamed bool, try int) (took time.Duration, steps float64, err error) {
	if state == "waiting" { // somebody has to have its place
		filled, empty := context.WithCancel(ctx)
		defer func() {
			empty()
			for s := "?"; s != "" && err == nil; {
				s, err = p.state(ctx, "filler")
			}
		}()
		if _, err := p.send(filled, "filler", generate(numbers(100+try, 8), 1000)); err != nil {
			return 0, 0, err
		}
		for s := ""; s != "decode"; {
			if s, err = p.state(ctx, "filler"); err != nil {
				return 0, 0, err
			}
		}
	}
	here, leave := context.WithCancel(ctx)
	defer leave()
	body["stream"] = streamed
	gone, err := p.send(here, "leaver", body)
	if err != nil {
		return 0, 0, err
	}
	for s := ""; s != state; {
		if s, err = p.state(ctx, "leaver"); err != nil {
			return 0, 0, err
		}
		select {
		case err := <-gone:
			return 0, 0, fmt.Errorf("the request ended before it was in %s: %w", state, err)
		default:
		}
	}
	before, err := p.metrics(ctx)
	if err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		return 0, 0, fmt.Errorf("the request ended before its client left: %w", err)
	}
	for s := state; s != ""; {
		if s, err = p.state(ctx, "leaver"); err != nil {
			return 0, 0, err
		}
	}
	took = time.Since(begin)
	after, err := p.metrics(ctx)
	return took, after["foretoken_steps_total"] - before["foretoken_steps_total"], err
}

// send sends a request and does not wait for its answer; the channel tells how
// it ended.
func (p *process) send(ctx context.Context, id string, body object) (<-chan error, error) {
	r, err := p.request(ctx, completions, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Request-Id", id)
	gone := make(chan error, 1)
	go func() {
		_, err := p.do(r)
		gone <- err
	}()
	return gone, nil
}
