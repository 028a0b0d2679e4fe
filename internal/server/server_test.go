package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/chat/tools"
	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/testmodel"
	"go.uber.org/goleak"
)

// regexp2 has a clock that ends some time after its last match.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
}

// testAPI is a server of a tiny model.
type testAPI struct {
	*httptest.Server
	server *Server
	end    context.CancelCauseFunc // ends all requests
	left   chan struct{}           // has a value for each request that has been served, as far as someone looks
}

func serveModel(t *testing.T, family string, o Options) *testAPI {
	t.Helper()
	return serveAt(t, testmodel.Safetensors(t, testmodel.Family(family)), o)
}

func serveAt(t *testing.T, path string, o Options) *testAPI {
	t.Helper()
	e, err := engine.Open(t.Context(), path, engine.Options{Threads: 1, DType: "float32"})
	if err != nil {
		t.Fatal(err)
	}
	if o.Models == nil {
		o.Models = []string{"tiny"}
	}
	if o.Format == (tools.Format{}) {
		o.Format = tools.Format{Calls: "hermes", Reasoning: "qwen3"}
	}
	s := &Server{Options: o, engine: e}
	left := make(chan struct{}, 1)
	routes := s.testRoutes()
	ended, end := context.WithCancelCause(t.Context())
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		defer context.AfterFunc(ended, func() { cancel(context.Cause(ended)) })()
		routes.ServeHTTP(w, r.WithContext(ctx))
		select {
		case left <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(func() {
		ts.Close()
		e.Close()
	})
	return &testAPI{ts, s, end, left}
}

// testRoutes serves the handlers without the middleware around them.
func (s *Server) testRoutes() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, h func(http.ResponseWriter, *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
			began := &beginning{ResponseWriter: w}
			err := h(began, r)
			if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
				err = &Error{Status: http.StatusRequestEntityTooLarge, Message: "too large"}
			}
			if err != nil && !began.yes {
				e := errorOf(err)
				w.WriteHeader(e.Status)
				json.NewEncoder(w).Encode(errorBody{e})
			}
		})
	}
	handle("POST /v1/completions", s.completions)
	handle("POST /v1/chat/completions", s.chatCompletions)
	handle("POST /v1/responses", s.responses)
	handle("POST /v1/embeddings", s.embeddings)
	handle("POST /tokenize", s.tokenize)
	handle("POST /detokenize", s.detokenize)
	handle("GET /v1/models", s.models)
	handle("GET /v1/models/{id...}", s.model)
	return mux
}

// beginning knows whether a response has begun.
type beginning struct {
	http.ResponseWriter
	yes bool
}

func (b *beginning) Write(p []byte) (int, error) { b.yes = true; return b.ResponseWriter.Write(p) }
func (b *beginning) Unwrap() http.ResponseWriter { return b.ResponseWriter }

type object = map[string]any

// post sends a body, a string as it is, and returns the status and the response.
func (a *testAPI) post(t *testing.T, path string, body any) (int, string) {
	t.Helper()
	text, ok := body.(string)
	if !ok {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	r, err := a.Client().Post(a.URL+path, "application/json", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(answer)
}

// ask posts a request that succeeds and decodes the answer.
func ask[T any](t *testing.T, a *testAPI, path string, body any) (answer T) {
	t.Helper()
	status, text := a.post(t, path, body)
	if status != http.StatusOK {
		t.Fatalf("%s: status %d: %s", path, status, text)
	}
	decodeAnswer(t, text, &answer)
	return answer
}

func decodeAnswer(t *testing.T, text string, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// events posts a request for a stream and returns the data of its events.
func (a *testAPI) events(t *testing.T, path string, body any) (events []string) {
	t.Helper()
	status, text := a.post(t, path, body)
	if status != http.StatusOK {
		t.Fatalf("%s: status %d: %s", path, status, text)
	}
	for event := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		if strings.HasPrefix(event, ":") {
			continue
		}
		_, data, ok := strings.Cut("\n"+event, "\ndata: ")
		if !ok || strings.Contains(data, "\n") {
			t.Fatalf("event %q has not one line of data", event)
		}
		events = append(events, data)
	}
	return events
}

// chunks are the events of a stream that ends with [DONE].
func chunks[T any](t *testing.T, a *testAPI, path string, body any) (all []T) {
	t.Helper()
	events := a.events(t, path, body)
	if last := events[len(events)-1]; last != "[DONE]" {
		t.Fatalf("the last event is %s", last)
	}
	for _, data := range events[:len(events)-1] {
		var chunk T
		decodeAnswer(t, data, &chunk)
		all = append(all, chunk)
	}
	return all
}

func merge(all ...object) object {
	out := object{}
	for _, o := range all {
		for k, v := range o {
			out[k] = v
		}
	}
	return out
}
