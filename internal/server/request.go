package server

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// A request is what the server keeps of an HTTP request until it is answered.
type request struct {
	id     string
	route  string
	method string
	quiet  bool   // it is asked again and again by programs, and tells the log nothing
	key    string // of whom it is; "": of anybody
	began  time.Time
	cancel context.CancelCauseFunc
	span   trace.Span

	generations []*generation
}

func newRequest(rt route, r *http.Request) *request {
	in := &request{id: r.Header.Get("X-Request-Id"), route: rt.pattern, method: r.Method, quiet: rt.method != "" && !rt.key, began: time.Now()}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions:
	default: // clients can make up any, and metrics would keep each
		in.method = "_OTHER" // OpenTelemetry's name
	}
	if !isID(in.id) {
		in.id = strings.ToLower(rand.Text())
	}
	return in
}

// isID reports whether a client's id can be used: it comes to logs, tables and
// answers.
func isID(id string) bool {
	return 0 < len(id) && len(id) <= 128 && !strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c >= 0x7f })
}

// requestKey is the key of a context's request.
type requestKey struct{}

// requestOf is the request that ctx belongs to.
func requestOf(ctx context.Context) *request {
	in, _ := ctx.Value(requestKey{}).(*request)
	return in
}

// requestID is the id that a request came with or was given.
func requestID(ctx context.Context) string { return requestOf(ctx).id }

// apiKey names whose request it is.
func apiKey(ctx context.Context) string { return requestOf(ctx).key }

// statusClientGone is what nginx logs for clients that leave before they have
// their answer.
const statusClientGone = 499

// finished writes the line of a request that is answered, and its metrics.
func (s *Server) finished(in *request, out *response, err error) {
	status := out.status
	if errors.Is(err, context.Canceled) {
		status = statusClientGone
	}
	took := time.Since(in.began)
	var t totals
	for _, g := range in.generations {
		g.settle(&t)
	}
	s.metrics.requests.WithLabelValues(in.method, in.route, strconv.Itoa(status)).Inc()
	s.endSpan(in, status, &t, err)
	level := slog.LevelInfo
	switch {
	case in.quiet:
		level = slog.LevelDebug
	case status == statusClientGone:
	case status == http.StatusInternalServerError, err != nil && errorOf(err).Status == http.StatusInternalServerError:
		level = slog.LevelError // also in a stream that had begun well
	case status > http.StatusInternalServerError: // a refusal or a limit that is meant to be
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{
		slog.String("id", in.id), slog.String("method", in.method), slog.String("route", in.route),
		slog.Int("status", status), milliseconds("e2e_ms", took),
	}
	if in.key != "" {
		attrs = append(attrs, slog.String("key", in.key))
	}
	if len(in.generations) > 0 {
		attrs = append(attrs,
			slog.Int("prompt_tokens", t.prompt), slog.Int("cached_tokens", t.cached), slog.Int("output_tokens", t.output),
			milliseconds("queue_ms", t.queue), milliseconds("ttft_ms", t.first), slog.String("finish", t.finish))
	}
	if t.drafts.Rounds > 0 {
		attrs = append(attrs, slog.Uint64("drafted_tokens", t.drafts.Drafted), slog.Uint64("accepted_tokens", t.drafts.Accepted))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	s.Log.LogAttrs(context.Background(), level, "request", attrs...)
}

// milliseconds is a time as programs that read logs can add it up, to the
// microsecond: slog's JSON has nanoseconds, its text a unit that changes.
func milliseconds(name string, d time.Duration) slog.Attr {
	return slog.Float64(name, float64(d.Microseconds())/1e3)
}
