package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A span of a request goes to the collector, below the client's span.
func TestTraces(t *testing.T) {
	got := make(chan []byte, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL, err)
		}
		got <- body
	}))
	defer collector.Close()
	tracer, stop, err := NewTracer(t.Context(), collector.URL+"/v1/traces", "v1", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	a := serveModel(t, "llama", Options{Tracer: tracer})
	a.send(t, "POST", "/v1/completions", `{"prompt": [3, 4], "max_tokens": 2, "ignore_eos": true}`, "X-Request-Id", "mine",
		"Traceparent", "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	a.send(t, "GET", "/health", "") // tells nobody anything
	if err := stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	spans := <-got
	for _, want := range []string{
		"POST /v1/completions", "mine", "\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef",
		"gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens", "gen_ai.latency.time_to_first_token",
	} {
		if !bytes.Contains(spans, []byte(want)) {
			t.Errorf("no %q in %q", want, spans)
		}
	}
	if bytes.Contains(spans, []byte("/health")) || len(got) > 0 {
		t.Errorf("a probe has a span: %q", spans)
	}
}
