package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"time"
)

// drain ends a server while streams run, and one whose streams do not end.
func (s *soak) drain(ctx context.Context) (figures []figure, err error) {
	model, err := s.small()
	if err != nil {
		return nil, err
	}
	var notReady []time.Duration
	const servers, streams, tokens = 3, 8, 300
	whole, clean, refused := 0, 0, 0
	for range servers {
		p, err := s.serve(ctx, model)
		if err != nil {
			return nil, err
		}
		ends := make(chan int, streams)
		for i := range streams {
			stream, err := p.open(ctx, completions, generate(numbers(i, 8), tokens))
			if err != nil {
				return nil, err
			}
			go func() {
				ids, err := stream.rest()
				if err != nil {
					ids = nil
				}
				ends <- len(ids)
			}()
		}
		took, err := p.terminate(ctx)
		if err != nil {
			return nil, err
		}
		notReady = append(notReady, took)
		a, err := p.post(ctx, completions, generate(numbers(1, 8), 1))
		if err != nil {
			return nil, err
		}
		if a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != "" {
			refused++
		}
		for range streams {
			if <-ends == tokens {
				whole++
			}
		}
		<-p.ended
		if p.cmd.ProcessState.ExitCode() == 0 {
			clean++
		}
	}
	figures = append(figures,
		within("SIGTERM: /ready says no", 100*time.Millisecond, notReady),
		exactly("after it, a new request: 503 with Retry-After", servers, refused, fmt.Sprint(servers)),
		exactly("streams that ran have all their tokens", servers*streams, whole, fmt.Sprint(servers*streams)),
		exactly("exit code 0", servers, clean, fmt.Sprint(servers)))

	p, err := s.serve(ctx, model)
	if err != nil {
		return figures, err
	}
	stream, err := p.open(ctx, completions, generate(numbers(1, 8), 30000))
	if err != nil {
		return figures, err
	}
	if _, err := p.terminate(ctx); err != nil {
		return figures, err
	}
	begin := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return figures, err
	}
	if _, err := stream.rest(); err == nil {
		return figures, errors.New("a stream of 30000 tokens has come to its end")
	}
	<-p.ended
	return append(figures, within("second SIGTERM, a stream running: the process has ended", time.Second, []time.Duration{time.Since(begin)})), nil
}

// terminate says how long after SIGTERM the server is not ready.
func (p *process) terminate(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	for {
		status, _, err := p.get(ctx, "/ready")
		if err != nil || status == http.StatusServiceUnavailable {
			return time.Since(begin), err
		}
	}
}
