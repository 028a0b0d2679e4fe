package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// send sends a request with headers, as name, value, name, value, …
func (a *testAPI) send(t *testing.T, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, a.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	response, err := a.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

// refusal decodes an error's body, which has the four fields of OpenAI's.
func refusal(t *testing.T, text string) (e struct{ Message, Type, Param, Code string }) {
	t.Helper()
	var body map[string]map[string]*string
	if err := json.Unmarshal([]byte(text), &body); err != nil || len(body["error"]) != 4 {
		t.Fatalf("%v in %s", err, text)
	}
	for field, to := range map[string]*string{"message": &e.Message, "type": &e.Type, "param": &e.Param, "code": &e.Code} {
		if v := body["error"][field]; v != nil {
			*to = *v
		}
	}
	return e
}

func TestRefusals(t *testing.T) {
	a := serveModel(t, "llama", Options{APIKeys: []string{"secret", "other"}, Limits: Limits{Body: 100}})
	const bearer = "Bearer other"
	for _, test := range []struct {
		name, method, path, body string
		header                   []string
		status                   int
		code, message            string
	}{
		{name: "nothing there", method: "GET", path: "/v1/nothing?key=1", status: 404, code: "not_found", message: `nothing at "/v1/nothing"`},
		{name: "other method", method: "GET", path: "/v1/completions", status: 405, code: "method_not_allowed", message: `"GET" is no method of this address, expected POST`},
		{name: "no key", method: "POST", path: "/v1/completions", body: "{}", status: 401, code: "invalid_api_key", message: "Authorization: Bearer KEY"},
		{name: "no scheme", method: "POST", path: "/v1/completions", body: "{}", header: []string{"Authorization", "other"}, status: 401, code: "invalid_api_key", message: "Authorization: Bearer KEY"},
		{name: "wrong key", method: "POST", path: "/v1/completions", body: "{}", header: []string{"Authorization", "Bearer othe"}, status: 401, code: "invalid_api_key", message: "none of this server's"},
		{name: "wrong key of the table", method: "GET", path: "/debug/requests", header: []string{"Authorization", "Bearer x"}, status: 401, code: "invalid_api_key", message: "none of this server's"},
		{name: "right key", method: "POST", path: "/v1/completions", body: "{}", header: []string{"Authorization", bearer}, status: 400, message: "prompt"},
		{name: "large", method: "POST", path: "/v1/completions", body: strings.Repeat(" ", 101), header: []string{"Authorization", bearer}, status: 413, code: "request_too_large", message: "more than the 100 bytes"},
		{name: "compressed", method: "POST", path: "/v1/completions", body: "{}", header: []string{"Authorization", bearer, "Content-Encoding", "gzip"}, status: 415, message: `content-encoding "gzip"`},
		{name: "other page", method: "POST", path: "/v1/completions", body: "{}", header: []string{"Authorization", bearer, "Origin", "https://evil.example"}, status: 403, code: "origin_not_allowed", message: `pages of "https://evil.example"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, text := a.send(t, test.method, test.path, test.body, test.header...)
			e := refusal(t, text)
			if r.StatusCode != test.status || e.Code != test.code || !strings.Contains(e.Message, test.message) || e.Type == "" {
				t.Errorf("%d %s, want %d, %q and %q", r.StatusCode, text, test.status, test.code, test.message)
			}
			if got := r.Header.Get("WWW-Authenticate"); (got == "Bearer") != (test.status == 401) {
				t.Errorf("WWW-Authenticate %q", got)
			}
			if got := r.Header.Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type %q", got)
			}
		})
	}
	// A body whose length is not said is as bounded.
	r, err := http.NewRequestWithContext(t.Context(), "POST", a.URL+"/v1/completions", io.MultiReader(strings.NewReader(strings.Repeat(" ", 101))))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", bearer)
	response, err := a.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 413 {
		t.Errorf("a chunked body that is too long: status %d", response.StatusCode)
	}
}

// Probes and metrics are for programs that have no key.
func TestOpenRoutes(t *testing.T) {
	a := serveModel(t, "llama", Options{APIKeys: []string{"secret"}, Version: "v1.2.3"})
	for path, want := range map[string]string{"/health": "", "/ready": "", "/version": `{"version":"v1.2.3"}` + "\n", "/metrics": "", "/openapi.yaml": ""} {
		r, text := a.send(t, "GET", path, "")
		if r.StatusCode != 200 || want != "" && text != want {
			t.Errorf("%s: %d %.200s", path, r.StatusCode, text)
		}
	}
	// And no other route is.
	for _, rt := range routes {
		if open := slices.Contains([]string{"/health", "/ready", "/version", "/metrics", "/openapi.yaml"}, rt.pattern); rt.key == open {
			t.Errorf("%s: needs a key: %v", rt.pattern, rt.key)
		}
	}
}

func TestRequestID(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	body := `{"prompt": "hello", "max_tokens": 1}`
	r, text := a.send(t, "POST", "/v1/completions", body, "X-Request-Id", "mine-1")
	if got := r.Header.Get("X-Request-Id"); got != "mine-1" || !strings.Contains(text, `"id":"cmpl-mine-1"`) {
		t.Errorf("id %q in %s", got, text)
	}
	given := map[string]bool{}
	for _, unusable := range []string{"", "two words", strings.Repeat("x", 129)} {
		r, _ := a.send(t, "POST", "/v1/completions", body, "X-Request-Id", unusable)
		id := r.Header.Get("X-Request-Id")
		if id == unusable || !isID(id) || given[id] {
			t.Errorf("%.20q became %q", unusable, id)
		}
		given[id] = true
	}
	// Refused requests have an id too.
	if r, _ := a.send(t, "GET", "/nothing", "", "X-Request-Id", "mine-2"); r.Header.Get("X-Request-Id") != "mine-2" {
		t.Error("a refused request has lost its id")
	}
}

func TestCORS(t *testing.T) {
	const page = "https://chat.example"
	preflight := []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,x-stainless-lang"}
	for _, test := range []struct {
		name    string
		allowed []string
		origin  string
		can     bool
	}{
		{"allowed", []string{"https://other.example", page}, page, true},
		{"all", []string{"*"}, page, true},
		{"another", []string{page}, "https://evil.example", false},
		{"a longer one", []string{page}, page + ".evil.example", false},
		{"none are", nil, page, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := serveModel(t, "llama", Options{Origins: test.allowed, APIKeys: []string{"secret"}})
			want := ""
			if test.can {
				want = test.origin
			}
			r, _ := a.send(t, "OPTIONS", "/v1/completions", "", append(preflight, "Origin", test.origin)...)
			h := r.Header
			if h.Get("Access-Control-Allow-Origin") != want || (r.StatusCode == 204) != test.can {
				t.Errorf("preflight: %d %v", r.StatusCode, h)
			}
			if test.can && (!strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST") || h.Get("Access-Control-Allow-Headers") != preflight[3]) {
				t.Errorf("preflight: %v", h)
			}
			body := `{"prompt": "hello", "max_tokens": 1}`
			r, _ = a.send(t, "POST", "/v1/completions", body, "Origin", test.origin, "Authorization", "Bearer secret")
			if r.Header.Get("Access-Control-Allow-Origin") != want || (r.StatusCode == 200) != test.can || r.Header.Get("Vary") != "Origin" {
				t.Errorf("request: %d %v", r.StatusCode, r.Header)
			}
			if r, _ = a.send(t, "GET", "/v1/models", "", "Origin", a.URL, "Authorization", "Bearer secret"); r.StatusCode != 200 {
				t.Errorf("a page of the server itself: %d", r.StatusCode)
			}
		})
	}
}

// long is a model whose answers do not end while a test runs.
func long(t *testing.T) string {
	s := testmodel.Family("llama")
	s.Context = 1 << 20
	return testmodel.Safetensors(t, s)
}

const endless = `{"prompt": "hello", "max_tokens": 1000000, "ignore_eos": true, "stream": true}`

// begin sends a request for an endless stream and returns when it has begun.
func (a *testAPI) begin(t *testing.T, header ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", a.URL+"/v1/completions", strings.NewReader(endless))
	if err != nil {
		t.Fatal(err)
	}
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	response, err := a.client.Do(r)
	if err == nil && response.StatusCode != 200 {
		err = errors.New(response.Status)
	}
	if err == nil {
		_, err = io.ReadFull(response.Body, make([]byte, 100))
	}
	if err != nil {
		t.Fatal(err)
	}
	stop = func() {
		cancel()
		response.Body.Close()
	}
	t.Cleanup(stop)
	return stop
}

func TestConcurrency(t *testing.T) {
	a := serveAt(t, long(t), Options{Limits: Limits{Concurrent: 1}})
	stop := a.begin(t)
	r, text := a.send(t, "POST", "/v1/completions", `{"prompt": "hello", "max_tokens": 1}`)
	if e := refusal(t, text); r.StatusCode != 429 || e.Code != "too_many_requests" || r.Header.Get("Retry-After") != "1" {
		t.Errorf("the second: %d %v %s", r.StatusCode, r.Header, text)
	}
	if r, _ := a.send(t, "GET", "/v1/models", ""); r.StatusCode != 200 {
		t.Errorf("what is no work: %d", r.StatusCode)
	}
	<-a.left // of the refused one, or of what is no work
	stop()
	for r.StatusCode == 429 { // until the server has noticed
		r, text = a.send(t, "POST", "/v1/completions", `{"prompt": "hello", "max_tokens": 1}`)
	}
	if r.StatusCode != 200 {
		t.Errorf("after the first has left: %d %s", r.StatusCode, text)
	}
}

// A request that takes too long ends with a reason, wherever it is.
func TestDeadlines(t *testing.T) {
	t.Run("first token", func(t *testing.T) {
		e := openEngine(t, long(t), engine.Options{MaxSeqs: 1})
		a := serveEngine(t, e, Options{Limits: Limits{FirstToken: time.Millisecond}})
		first := a.server.Limits.FirstToken
		a.server.Limits.FirstToken = 0 // the first has its time
		a.begin(t)
		a.server.Limits.FirstToken = first
		r, text := a.send(t, "POST", "/v1/completions", `{"prompt": "hello"}`)
		if e := refusal(t, text); r.StatusCode != 504 || e.Code != "timeout" || !strings.Contains(e.Message, "for the first") || r.Header.Get("Retry-After") == "" {
			t.Errorf("%d %s", r.StatusCode, text)
		}
	})
	t.Run("anywhere", func(t *testing.T) {
		a := serveModel(t, "llama", Options{})
		a.server.routes = a.server.handle(route{handle: func(_ *Server, _ http.ResponseWriter, r *http.Request) error {
			requestOf(r.Context()).cancel(errFirstToken)
			return fmt.Errorf("rendering: %w", r.Context().Err())
		}})
		r, text := a.send(t, "GET", "/", "")
		if e := refusal(t, text); r.StatusCode != 504 || e.Message != errFirstToken.Message {
			t.Errorf("%d %s", r.StatusCode, text)
		}
	})
	t.Run("total", func(t *testing.T) {
		a := serveAt(t, long(t), Options{Limits: Limits{Total: 50 * time.Millisecond}})
		r, text := a.send(t, "POST", "/v1/completions", strings.Replace(endless, `"stream": true`, `"stream": false`, 1))
		if e := refusal(t, text); r.StatusCode != 504 || e.Code != "timeout" || !strings.Contains(e.Message, "longer than this server allows") {
			t.Errorf("%d %s", r.StatusCode, text)
		}
		r, text = a.send(t, "POST", "/v1/completions", endless)
		events := strings.Split(strings.TrimSpace(text), "\n\n")
		last := strings.TrimPrefix(events[len(events)-2], "data: ")
		if e := refusal(t, last); r.StatusCode != 200 || e.Code != "timeout" || events[len(events)-1] != "data: [DONE]" {
			t.Errorf("the stream ends with %s", strings.Join(events[len(events)-2:], "\n"))
		}
	})
}

// A panic fails its request alone, and tells the client nothing.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	a := serveModel(t, "llama", Options{Log: slog.New(slog.NewJSONHandler(&log, nil))})
	broken := route{method: "GET", pattern: "/broken", handle: func(*Server, http.ResponseWriter, *http.Request) error { panic("the secret of /etc") }}
	a.server.routes = a.server.handle(broken)
	r, text := a.send(t, "GET", "/broken", "")
	if e := refusal(t, text); r.StatusCode != 500 || strings.Contains(e.Message, "secret") {
		t.Errorf("%d %s", r.StatusCode, text)
	}
	if !strings.Contains(log.String(), "the secret of /etc") || !strings.Contains(log.String(), "middleware_test.go") {
		t.Errorf("the log says %s, want what happened and where", &log)
	}

	half := route{method: "GET", pattern: "/half", handle: func(_ *Server, w http.ResponseWriter, _ *http.Request) error {
		_, _ = w.Write([]byte("half"))
		_ = http.NewResponseController(w).Flush()
		panic("in the middle")
	}}
	a.server.routes = a.server.handle(half)
	cut, err := a.client.Get(a.URL + "/half")
	if err != nil {
		t.Fatal(err)
	}
	defer cut.Body.Close()
	if body, err := io.ReadAll(cut.Body); err == nil || string(body) != "half" {
		t.Errorf("an answer that had begun: %q, %v; want one that is cut", body, err)
	}

	a.server.routes = a.server.mux()
	if r, _ := a.send(t, "GET", "/health", ""); r.StatusCode != 200 {
		t.Errorf("the next request: %d", r.StatusCode)
	}
}

// Each request has a line in the log, with what it took.
func TestAccessLog(t *testing.T) {
	lines := make(chan []byte, 100)
	a := serveModel(t, "llama", Options{
		Log:     slog.New(slog.NewJSONHandler(writerFunc(func(p []byte) (int, error) { lines <- bytes.Clone(p); return len(p), nil }), nil)),
		APIKeys: []string{"secret"},
	})
	auth := []string{"Authorization", "Bearer secret", "X-Request-Id", "mine"}
	a.send(t, "POST", "/v1/completions", `{"prompt": [3, 4, 5], "max_tokens": 4, "ignore_eos": true, "n": 2}`, auth...)
	var line struct {
		ID, Method, Route, Key, Finish string
		Status                         int
		Prompt                         int `json:"prompt_tokens"`
		Output                         int `json:"output_tokens"`
		TTFT, E2E                      time.Duration
	}
	text := <-lines
	if err := json.Unmarshal(text, &line); err != nil {
		t.Fatal(err)
	}
	if line.ID != "mine" || line.Method != "POST" || line.Route != "/v1/completions" || line.Key != "key 1" || line.Finish != "length" ||
		line.Status != 200 || line.Prompt != 3 || line.Output != 8 || line.TTFT <= 0 || line.E2E < line.TTFT {
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
		refuse := func(*Server, http.ResponseWriter, *http.Request) error { return &Error{Status: status, Type: "server_error"} }
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
