package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// pause is how long a slow reader takes for an event.
const pause = 5 * time.Millisecond

// open has many streams at a time, most of which wait while those that are
// served are read slowly, and all of which have to be whole.
func (s *soak) open(ctx context.Context) ([]figure, error) {
	model, err := s.tiny(1024)
	if err != nil {
		return nil, err
	}
	p, err := s.serve(ctx, model, "--ping-interval", "1s", "--max-concurrent-requests", fmt.Sprint(s.streams))
	if err != nil {
		return nil, err
	}
	p.client.Transport = &http.Transport{DialContext: takeLittle}
	const tokens = 512
	if _, err := p.post(ctx, completions, object{"prompt": numbers(1, 16), "max_tokens": 1}); err != nil {
		return nil, err
	}
	_, before, err := p.settled(ctx, 1e6)
	if err != nil {
		return nil, err
	}
	empty, err := p.memory()
	if err != nil {
		return nil, err
	}

	var whole, most atomic.Int64
	var readers sync.WaitGroup
	example := make(chan error, 1) // of what went wrong
	watched, unwatched := context.WithCancel(ctx)
	defer unwatched()
	full := empty
	watch := make(chan struct{})
	go func() {
		defer close(watch)
		for watched.Err() == nil {
			if m, err := p.metrics(watched); err == nil {
				most.Store(max(most.Load(), int64(m["vllm:num_requests_running"]+m["vllm:num_requests_waiting"])))
			}
			if now, err := p.memory(); err == nil {
				full = max(full, now)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	for i := range s.streams {
		readers.Go(func() {
			n, err := p.readSlowly(ctx, generate(numbers(i, 16), tokens))
			if err == nil && n != tokens {
				err = fmt.Errorf("%d tokens, expected %d", n, tokens)
			}
			if err == nil {
				whole.Add(1)
				return
			}
			select {
			case example <- err:
			default:
			}
		})
	}
	readers.Wait()
	unwatched()
	<-watch
	took, after, err := p.settled(ctx, before["go_goroutines"])
	if err != nil {
		return nil, err
	}
	all := exactly(fmt.Sprintf("%d open streams, read slowly: whole ones", s.streams), s.streams, int(whole.Load()), fmt.Sprint(s.streams))
	select {
	case err := <-example:
		all.measured += "; one of the others: " + err.Error()
	default:
	}
	back := within("goroutines are as before", 5*time.Second, []time.Duration{took})
	back.measured += fmt.Sprintf(" (%.0f before, %.0f after)", before["go_goroutines"], after["go_goroutines"])
	return []figure{
		all,
		{goal: "most of them running or waiting at a time", limit: "", measured: fmt.Sprint(most.Load())},
		back,
		{goal: "memory that one of them takes, RssAnon and VmSwap", limit: "", measured: fmt.Sprintf("%.0f KiB", (full-empty)/1024/float64(s.streams))},
	}, p.stop()
}

// takeLittle connects so that what is not read is not taken either.
func takeLittle(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if tcp, ok := c.(*net.TCPConn); ok {
		err = tcp.SetReadBuffer(4 << 10)
	}
	return c, err
}

// readSlowly reads a stream with a pause after each event, and counts tokens.
func (p *process) readSlowly(ctx context.Context, body object) (n int, err error) {
	stream, err := p.open(ctx, completions, body)
	if err != nil {
		return 0, err
	}
	defer stream.body.Close()
	for {
		ids, err := stream.next()
		if n += len(ids); err != nil {
			return n, ended(err)
		}
		time.Sleep(pause)
	}
}
