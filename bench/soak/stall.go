package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// stall measures what a long prompt costs those that are being served: the gaps
// between the tokens of four streams while it is computed, and without it.
func (s *soak) stall(ctx context.Context) ([]figure, error) {
	const streams, length = 4, 1 << 16
	model, err := s.wide()
	if err != nil {
		return nil, err
	}
	p, err := s.serve(ctx, model, "--kv-cache-memory", "6GiB")
	if err != nil {
		return nil, err
	}
	busy, idle := context.WithCancel(ctx)
	defer idle()
	var arrivals [streams]chan time.Time
	for i := range streams {
		stream, err := p.open(busy, completions, generate(numbers(i, 256), length))
		if err != nil {
			return nil, err
		}
		arrivals[i] = make(chan time.Time, length)
		go func() {
			for {
				ids, err := stream.next()
				if err != nil {
					return
				}
				for range ids {
					arrivals[i] <- time.Now()
				}
			}
		}()
	}
	// gaps are those that end from now on until f returns.
	gaps := func(f func() error) (all []time.Duration, err error) {
		begin := time.Now()
		err = f()
		end := time.Now()
		for i := range arrivals {
			last := time.Time{}
			for n := len(arrivals[i]); n > 0; n-- {
				at := <-arrivals[i]
				if !last.IsZero() && at.After(begin) && at.Before(end) {
					all = append(all, at.Sub(last))
				}
				last = at
			}
		}
		if len(all) == 0 {
			err = errors.Join(err, errors.New("no token came"))
		}
		return all, err
	}
	wait := func() error {
		select {
		case <-time.After(5 * time.Second):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var took time.Duration
	long := func() error {
		begin := time.Now()
		stream, err := p.open(ctx, completions, generate(numbers(99, s.prompt), 1))
		if err != nil {
			return err
		}
		_, err = stream.rest()
		took = time.Since(begin)
		return err
	}
	if _, err := gaps(wait); err != nil { // the estimator of costs learns
		return nil, err
	}
	solo, err := gaps(wait)
	if err != nil {
		return nil, err
	}
	beside, err := gaps(long)
	if err != nil {
		return nil, err
	}
	idle()
	alone, with := quantile(solo, 0.99), quantile(beside, 0.99)
	ratio := float64(with) / float64(alone)
	return []figure{{
		goal:  fmt.Sprintf("p99 inter-token latency of %d streams while a prompt of %d is computed", streams, s.prompt),
		limit: "≤ 3 times that without", missed: ratio > 3,
		measured: fmt.Sprintf("%.2f times: %s, without %s; medians %s, %s; the prompt took %.1f s",
			ratio, ms(with), ms(alone), ms(quantile(beside, 0.5)), ms(quantile(solo, 0.5)), took.Seconds()),
	}}, p.stop()
}

// ended is err, unless it is the end that was to come.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
