package server

import (
	"strconv"
	"time"
)

// quote shows a client's text in a message, cut to a sane length.
func quote(text string) string {
	if r := []rune(text); len(r) > 80 {
		text = string(r[:80]) + "…"
	}
	return strconv.Quote(text)
}

// ping is the silence after which a stream has a comment.
func (l *Limits) ping() time.Duration {
	if l.Ping > 0 {
		return l.Ping
	}
	return 10 * time.Second
}
