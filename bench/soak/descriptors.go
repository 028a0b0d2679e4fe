package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// descriptors takes all descriptors that a server may have by connections that
// ask for nothing, while a stream runs, and gives them back.
func (s *soak) descriptors(ctx context.Context) ([]figure, error) {
	const most, connections, tokens = 64, 200, 2000
	poor := *s
	poor.binary = []string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, most), s.binary[0]}
	model, err := s.small()
	if err != nil {
		return nil, err
	}
	p, err := poor.serve(ctx, model)
	if err != nil {
		return nil, err
	}
	stream, err := p.open(ctx, completions, generate(numbers(1, 8), tokens))
	if err != nil {
		return nil, err
	}
	p.client.CloseIdleConnections()
	var idle []net.Conn
	for range connections {
		c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			break // the kernel keeps no more of them
		}
		defer c.Close()
		idle = append(idle, c)
	}
	full, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if status, _, err := p.get(full, "/health"); err == nil {
		return nil, fmt.Errorf("there are %d connections to a server of %d descriptors, and /health answers %d", len(idle), most, status)
	}
	ids, err := stream.rest()
	whole := figure{goal: fmt.Sprintf("%d connections to a server of %d descriptors: stream that ran", len(idle), most), limit: fmt.Sprintf("all of its %d tokens", tokens), measured: "all"}
	if err != nil || len(ids) != tokens {
		whole.measured, whole.missed = fmt.Sprintf("%d tokens, %v", len(ids), err), true
	}
	begin := time.Now()
	for _, c := range idle {
		c.Close()
	}
	for {
		if status, _, err := p.get(ctx, "/ready"); err == nil && status == http.StatusOK {
			break
		} else if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return []figure{whole, within("once they are closed: it serves again", 5*time.Second, []time.Duration{time.Since(begin)})}, p.stop()
}
