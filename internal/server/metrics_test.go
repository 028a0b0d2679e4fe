package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Each request has a line in the log, with what it took.
func TestAccessLog(t *testing.T) {
	lines := make(chan []byte, 100)
	a := serveModel(t, "llama", Options{
		Log:     slog.New(slog.NewJSONHandler(writerFunc(func(p []byte) (int, error) { lines <- bytes.Clone(p); return len(p), nil }), nil)),
		APIKeys: []string{"secret"},
	})
	auth := []string{"Authorization", "Bearer secret", "X-Request-Id", "mine"}
	asked := time.Now()
	a.send(t, "POST", "/v1/completions", `{"prompt": [3, 4, 5], "max_tokens": 4, "ignore_eos": true, "n": 2}`, auth...)
	var line struct {
		ID, Method, Route, Key, Finish string
		Status                         int
		Prompt                         int      `json:"prompt_tokens"`
		Output                         int      `json:"output_tokens"`
		Queue                          *float64 `json:"queue_ms"`
		TTFT                           float64  `json:"ttft_ms"`
		E2E                            float64  `json:"e2e_ms"`
	}
	text := <-lines
	took := float64(time.Since(asked)) / 1e6
	if err := json.Unmarshal(text, &line); err != nil {
		t.Fatal(err)
	}
	if line.ID != "mine" || line.Method != "POST" || line.Route != "/v1/completions" || line.Key != "key 1" || line.Finish != "length" ||
		line.Status != 200 || line.Prompt != 3 || line.Output != 8 || line.Queue == nil || line.TTFT <= 0 || line.E2E < line.TTFT || line.E2E > took {
		t.Errorf("the line is %s", text)
	}
	if bytes.Contains(text, []byte("secret")) {
		t.Errorf("the line has the key: %s", text)
	}
	a.send(t, "POST", "/v1/completions", `{"prompt": "x", "n": 0}`, auth...)
	if text := <-lines; !bytes.Contains(text, []byte(`"status":400`)) || !bytes.Contains(text, []byte("n is 0")) {
		t.Errorf("the line of a refused request is %s", text)
	}
	// What is meant to be refused is no error of the server's.
	for status, want := range map[int]string{400: "INFO", 429: "INFO", 500: "ERROR", 503: "WARN"} {
		refuse := func(*Server, http.ResponseWriter, *http.Request) error {
			return &Error{Status: status, Type: "server_error"}
		}
		a.server.routes = a.server.handle(route{method: "GET", pattern: "/refused", handle: refuse, key: true})
		a.send(t, "GET", "/refused", "", auth...)
		if text := <-lines; !bytes.Contains(text, fmt.Appendf(nil, `"level":%q`, want)) {
			t.Errorf("the line of a %d is %s, want level %s", status, text, want)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// What a client that is let in is counted as shows in the metrics, by vLLM's names.
func TestMetrics(t *testing.T) {
	a := serveModel(t, "llama", Options{Models: []string{"the model", "alias"}})
	a.send(t, "POST", "/v1/completions", `{"prompt": [3, 4, 5], "max_tokens": 4, "ignore_eos": true}`)
	a.send(t, "POST", "/v1/completions", `{"prompt": [3, 4, 5], "max_tokens": 6, "ignore_eos": true, "n": 2}`)
	a.send(t, "GET", "/v1/completions", "")
	a.send(t, "BREW", "/v1/completions", "")
	_, text := a.send(t, "GET", "/metrics", "")
	const model = `{model_name="the model"}`
	for _, want := range []string{
		"vllm:num_requests_running" + model + " 0",
		"vllm:num_requests_waiting" + model + " 0",
		"vllm:generation_tokens_total" + model + " 16",
		"vllm:time_to_first_token_seconds_count" + model + " 2",
		"vllm:inter_token_latency_seconds_count" + model + " ",
		"vllm:request_time_per_output_token_seconds_count" + model + " 2",
		"vllm:e2e_request_latency_seconds_count" + model + " 2",
		"vllm:request_queue_time_seconds_count" + model + " 2",
		"vllm:request_prefill_time_seconds_count" + model + " 2",
		"vllm:request_decode_time_seconds_count" + model + " 2",
		"vllm:request_prompt_tokens_sum" + model + " 6",
		"vllm:request_generation_tokens_sum" + model + " 16",
		`vllm:request_success_total{finished_reason="length",model_name="the model"} 3`,
		`vllm:request_success_total{finished_reason="abort",model_name="the model"} 0`,
		"vllm:kv_cache_usage_perc" + model + " 0",
		"vllm:prefix_cache_queries_total" + model,
		"vllm:prefix_cache_hits_total" + model,
		"vllm:num_preemptions_total" + model + " 0",
		`foretoken_http_requests_total{method="POST",model_name="the model",route="/v1/completions",status="200"} 2`,
		`foretoken_http_requests_total{method="GET",model_name="the model",route="/v1/completions",status="405"} 1`,
		`foretoken_http_requests_total{method="_OTHER",model_name="the model",route="/v1/completions",status="405"} 1`,
		"process_resident_memory_bytes",
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// The table has a line for each request, named as its client named it.
func TestDebugRequests(t *testing.T) {
	a := serveAt(t, long(t), Options{APIKeys: []string{"secret"}})
	auth := []string{"Authorization", "Bearer secret"}
	a.begin(t, append(auth, "X-Request-Id", "mine")...)
	r, text := a.send(t, "GET", "/debug/requests", "", auth...)
	if !strings.Contains(text, "1 running, 0 waiting") || !strings.Contains(text, "\nmine  key 1  decode") || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%v\n%s", r.Header, text)
	}
	r, text = a.send(t, "GET", "/debug/requests", "", append(auth, "Accept", "application/json")...)
	var table debugTable
	decodeAnswer(t, text, &table)
	if len(table.Requests) != 1 || r.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%v %s", r.Header, text)
	}
	if q := table.Requests[0]; q.ID != "mine" || q.Key != "key 1" || q.State != "decode" || q.Prompt < 1 || q.Output < 1 || q.Age <= 0 {
		t.Errorf("%+v", q)
	}
}

// What the engine is at is told also while it does nothing else.
func TestDebugRequestsOfABusyEngine(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	release := block(t, a.server.engine)
	defer release()
	_, text := a.send(t, "GET", "/debug/requests", "")
	if !strings.HasPrefix(text, "job for ") || !strings.Contains(text, "no table") {
		t.Error(text)
	}
	_, text = a.send(t, "GET", "/debug/requests", "", "Accept", "application/json")
	var table debugTable
	decodeAnswer(t, text, &table)
	if table.Engine.Stage != "job" || table.Requests != nil {
		t.Error(text)
	}
}
