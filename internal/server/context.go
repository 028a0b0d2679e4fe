package server

import (
	"context"
	"strconv"
	"time"
)

// requestID is the id that a request came with or was given.
func requestID(ctx context.Context) string { return "" }

// apiKey names whose request it is.
func apiKey(ctx context.Context) string { return "" }

// quote shows a client's text in a message.
func quote(text string) string { return strconv.Quote(clip(text)) }

// ping is the silence after which a stream has a comment.
func (l *Limits) ping() time.Duration {
	if l.Ping > 0 {
		return l.Ping
	}
	return 10 * time.Second
}
