package server

import (
	"context"
	"encoding/json"
	"io"
	"maps"
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
	client *http.Client
	left   chan struct{} // has a value for each request that has been served, as far as someone looks
}

func serveModel(t *testing.T, family string, o Options) *testAPI {
	t.Helper()
	return serveAt(t, testmodel.Safetensors(t, testmodel.Family(family)), o)
}

func serveAt(t *testing.T, path string, o Options) *testAPI {
	t.Helper()
	return serveEngine(t, openEngine(t, path, engine.Options{}), o)
}

func openEngine(t *testing.T, path string, o engine.Options) *engine.Engine {
	t.Helper()
	o.Threads, o.DType = 1, "float32"
	e, err := engine.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func serveEngine(t *testing.T, e *engine.Engine, o Options) *testAPI {
	t.Helper()
	if o.Models == nil {
		o.Models = []string{"tiny"}
	}
	if o.Format == (tools.Format{}) {
		o.Format = tools.Format{Calls: "hermes", Reasoning: "qwen3"}
	}
	if o.Limits.Body == 0 {
		o.Limits.Body = 1 << 20
	}
	s := New(o)
	s.Attach(e)
	left := make(chan struct{}, 1)
	ended, end := context.WithCancelCause(t.Context())
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		defer context.AfterFunc(ended, func() { cancel(context.Cause(ended)) })()
		s.ServeHTTP(w, r.WithContext(ctx))
		select {
		case left <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(ts.Close)
	return &testAPI{ts, s, end, ts.Client(), left}
}

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
	r, err := a.client.Post(a.URL+path, "application/json", strings.NewReader(text))
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
		maps.Copy(out, o)
	}
	return out
}
