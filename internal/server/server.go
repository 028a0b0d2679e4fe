// Package server serves a model over HTTP as OpenAI's API: what clients of
// that API send, it answers or refuses with the reason, and drops nothing
// silently.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

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
	Stall      time.Duration // until a client is let go that sends nothing of a request, or takes nothing of an answer; 30 s
}

// maxHeader bounds the header of a request, in bytes.
const maxHeader = 64 << 10

// idle is how long a connection may be kept without a request.
const idle = 2 * time.Minute

// Options say how a server serves.
type Options struct {
	Models  []string     // names that requests may call the model by; the first is the one answers have
	Format  tools.Format // how the model marks reasoning and calls of tools; what is empty follows from the model's template, "none" is nothing
	APIKeys []string     // one of which requests must have; none: anybody is served
	Origins []string     // of web pages that may use the API; "*": all
	Limits  Limits
	Version string
	TLS     *tls.Config  // nil: HTTP without encryption
	Log     *slog.Logger // nil: nothing is logged
	Tracer  trace.Tracer // has a span for each request; nil: none has
}

// CheckFormat says what is wrong with the names in Format.
func (o Options) CheckFormat() error {
	return tools.Format{Calls: choose(o.Format.Calls, ""), Reasoning: choose(o.Format.Reasoning, "")}.Check()
}

// A Server answers the requests of one model. It does so before it has the
// model: what needs the model is refused until then.
type Server struct {
	Options
	engine  *engine.Engine // once loaded is set
	loaded  atomic.Bool
	started time.Time

	gate     *gate
	large    *gate      // of requests with large bodies
	encoding sync.Mutex // held while a long text is encoded, which takes many times its size
	keys     keys
	metrics  *metrics
	routes   http.Handler
}

// New makes a server that has no model yet.
func New(o Options) *Server {
	s := &Server{Options: o, started: time.Now(), keys: newKeys(o.APIKeys)}
	l := &s.Limits
	l.Body = cmp.Or(l.Body, 16<<20)
	l.Concurrent = cmp.Or(l.Concurrent, 1024)
	l.Ping = cmp.Or(l.Ping, 10*time.Second)
	l.Stall = cmp.Or(l.Stall, 30*time.Second)
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	s.gate, s.large = newGate(l.Concurrent), newGate(largeBodies)
	s.metrics = newMetrics(s)
	s.routes = s.mux()
	return s
}

// Attach gives the server its engine, once: it is ready from now on. The
// caller closes e after Serve has returned.
func (s *Server) Attach(e *engine.Engine) {
	s.engine = e
	chosen := formatOf(e)
	s.Format.Calls = choose(s.Format.Calls, chosen.Calls)
	s.Format.Reasoning = choose(s.Format.Reasoning, chosen.Reasoning)
	s.loaded.Store(true)
}

// formatOf is the format that a model's template tells of.
func formatOf(e *engine.Engine) tools.Format {
	return tools.Choose(e.Template(), e.Config().Architecture, func(token string) bool {
		t, err := e.Tokenizer()
		if err != nil {
			return false
		}
		_, ok := t.ID(token)
		return ok
	})
}

// choose is the name of a format that was asked for, or else the one that fits.
func choose(asked, fits string) string {
	switch asked {
	case "":
		return fits
	case "none":
		return ""
	}
	return asked
}

// Serve answers what comes to l until ctx ends. Then it drains: it is not ready
// any more, refuses new requests with 503, and returns when those that run have
// ended.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	hs := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.Limits.Stall,
		IdleTimeout:       idle,
		MaxHeaderBytes:    maxHeader,
		TLSConfig:         s.TLS,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug), // of what clients get wrong below HTTP
	}
	failed := make(chan error, 1)
	go func() {
		if s.TLS != nil {
			failed <- hs.ServeTLS(l, "", "")
		} else {
			failed <- hs.Serve(l)
		}
	}()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	running := s.gate.count()
	s.gate.close()
	if s.loaded.Load() { // else nothing runs: the model was being loaded, or could not be
		s.Log.Info("draining: no new requests", "running", running)
	}
	hs.SetKeepAlivesEnabled(false) // clients look for another server
	<-s.gate.empty
	// What is left is not for the model, or is an answer on its way to a client.
	end, cancel := context.WithTimeout(context.Background(), 2*s.Limits.Stall)
	defer cancel()
	err := hs.Shutdown(end)
	if errors.Is(err, context.DeadlineExceeded) {
		err = hs.Close()
	}
	if stopped := <-failed; !errors.Is(stopped, http.ErrServerClosed) {
		err = errors.Join(err, stopped)
	}
	return err
}
