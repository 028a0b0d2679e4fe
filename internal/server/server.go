// Package server serves a model over HTTP as OpenAI's API: what clients of
// that API send, it answers or refuses with the reason, and drops nothing
// silently.
package server

import (
	"log/slog"
	"time"

	"github.com/foretoken/foretoken/internal/chat/tools"
	"github.com/foretoken/foretoken/internal/engine"
)

// Limits bound what a client can ask for. A zero field takes its default.
type Limits struct {
	Body       int64         // bytes of a request's body; 16 MiB
	Prompt     int           // tokens; what the model takes
	Output     int           // tokens of all choices; 0: what the model's context leaves
	Concurrent int           // requests for the model that are being served, waiting ones included; 1024
	FirstToken time.Duration // until a request has its first token; none
	Total      time.Duration // until a request has its last; none
	Ping       time.Duration // silence in a stream until a comment is sent; 10 s
}

// Options say how a server serves.
type Options struct {
	Models  []string     // names that requests may call the model by; the first is the one answers have
	Format  tools.Format // how the model marks reasoning and calls of tools
	APIKeys []string     // one of which requests must have; none: anybody is served
	Origins []string     // of web pages that may use the API; "*": all
	Limits  Limits
	Log     *slog.Logger
}

// A Server answers the requests of one model.
type Server struct {
	Options
	engine  *engine.Engine
	started time.Time
}
