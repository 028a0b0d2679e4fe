package server

import (
	"strconv"
	"time"
)

// quote shows a client's text in a message.
func quote(text string) string { return strconv.Quote(clip(text)) }

// ping is the silence after which a stream has a comment.
func (l *Limits) ping() time.Duration {
	if l.Ping > 0 {
		return l.Ping
	}
	return 10 * time.Second
}
