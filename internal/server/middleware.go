package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"time"
)

// ServeHTTP answers a request. It is for one listener among others, or for
// tests; Serve has limits of its own for what is below HTTP.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.crossOrigin(w, r) {
		return // it was asked whether it may ask
	}
	s.routes.ServeHTTP(w, r)
}

// handle is what surrounds the handler of a route.
func (s *Server) handle(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out := &response{ResponseWriter: w, control: http.NewResponseController(w), stall: s.Limits.Stall}
		defer out.finish()
		in := newRequest(rt, r)
		out.Header().Set("X-Request-Id", in.id)
		ctx, cancel := s.deadlines(r.Context(), in)
		defer cancel()
		ctx, in.span = s.trace(ctx, r, in)
		r = r.WithContext(ctx)

		err := s.answer(rt, in, out, r)
		if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
			err = context.Cause(ctx)
		}
		begun := out.status != 0
		if err != nil && !begun {
			s.refuse(out, err)
		}
		s.finished(in, out, err)
		if begun && errors.Is(err, errPanic) {
			panic(http.ErrAbortHandler) // so that no client takes what it has for all
		}
	}
}

// deadlines is the context of a request, with an end.
func (s *Server) deadlines(ctx context.Context, in *request) (context.Context, context.CancelFunc) {
	ctx, in.cancel = context.WithCancelCause(ctx)
	if s.Limits.Total <= 0 {
		return context.WithValue(ctx, requestKey{}, in), func() { in.cancel(nil) }
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.Limits.Total, errTotal)
	return context.WithValue(ctx, requestKey{}, in), func() { cancel(); in.cancel(nil) }
}

// Why a request that takes too long ends.
var (
	errTotal = &Error{
		Status: http.StatusGatewayTimeout, Type: "server_error", Code: "timeout",
		Message: "the request took longer than this server allows",
	}
	errFirstToken = &Error{
		Status: http.StatusGatewayTimeout, Type: "server_error", Code: "timeout",
		Message: "the request had no token within the time that this server allows for the first", RetryAfter: 5 * time.Second,
	}
)

// errPanic is the error of a handler that panicked.
var errPanic = errors.New("panic")

// answer runs the handler of a route, if the request may have it.
func (s *Server) answer(rt route, in *request, out *response, r *http.Request) (err error) {
	defer func() {
		// One request's failure is that request's.
		if v := recover(); v != nil {
			s.Log.Error("a handler panicked", "id", in.id, "route", rt.pattern, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	b, err := s.limitBody(out, r)
	if err != nil {
		return err
	}
	defer b.release()
	if rt.key {
		if in.key, err = s.keys.check(r); err != nil {
			return err
		}
	}
	if rt.work {
		if err := s.gate.enter(); err != nil {
			return err
		}
		defer s.gate.leave()
	}
	if rt.model && !s.loaded.Load() {
		return errLoading
	}
	err = rt.handle(s, out, r)
	// What a reader of the body reports comes from the handler, wrapped.
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return tooLarge(large.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &Error{
			Status: http.StatusRequestTimeout, Type: "invalid_request_error", Code: "timeout",
			Message: fmt.Sprintf("nothing of the request has come for %v", s.Limits.Stall),
		}
	}
	return err
}

// limitBody bounds the body of a request: its size, and how long it may stop.
// It comes before any answer, since the library reads some of what the handler
// has left before it answers.
func (s *Server) limitBody(out *response, r *http.Request) (*body, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	b := &body{ReadCloser: r.Body, control: out.control, stall: s.Limits.Stall, large: s.large}
	b.extend()
	r.Body = http.MaxBytesReader(out.ResponseWriter, b, s.Limits.Body)
	if r.ContentLength > s.Limits.Body {
		return nil, tooLarge(s.Limits.Body)
	}
	// A compressed body could unpack to anything.
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, &Error{
			Status: http.StatusUnsupportedMediaType, Type: "invalid_request_error",
			Message: "content-encoding " + quote(e) + ": bodies have to come as they are",
		}
	}
	return b, nil
}

func tooLarge(limit int64) *Error {
	return &Error{
		Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Code: "request_too_large",
		Message: fmt.Sprintf("the request's body has more than the %d bytes that this server takes", limit),
	}
}

// refuse makes an error the response.
func (s *Server) refuse(out *response, err error) {
	e := errorOf(err)
	h := out.Header()
	h.Set("Content-Type", "application/json")
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	if e.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	out.WriteHeader(e.Status)
	_ = json.NewEncoder(out).Encode(errorBody{e}) // the client may be gone
}
