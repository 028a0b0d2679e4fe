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
		{name: "a slash too many", method: "POST", path: "//v1/completions", body: "{}", status: 404, code: "not_found", message: `nothing at "//v1/completions"`},
		{name: "slashes alone", method: "GET", path: "//", status: 404, code: "not_found", message: `nothing at "//"`},
		{name: "a slash within", method: "GET", path: "/v1//models?key=1", status: 404, code: "not_found", message: `nothing at "/v1//models"`},
		{name: "a way up", method: "GET", path: "/v1/../health", status: 404, code: "not_found", message: `nothing at "/v1/../health"`},
		{name: "a slash behind", method: "GET", path: "/health/", status: 404, code: "not_found", message: `nothing at "/health/"`},
		{name: "a model without a name", method: "GET", path: "/v1/models/", header: []string{"Authorization", bearer}, status: 404, code: "not_found", message: `nothing at "/v1/models/"`},
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
			if r.Header.Get("X-Request-Id") == "" && test.status != http.StatusForbidden {
				t.Error("the answer has no X-Request-Id")
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

// Keys are told apart by where they stand, also where one stands twice: they
// have equal shares of the engine.
func TestKeyNames(t *testing.T) {
	k := newKeys([]string{"a", "a", "b", "c"})
	names := map[string]bool{}
	for _, key := range []string{"a", "b", "c"} {
		name, err := k.check(&http.Request{Header: http.Header{"Authorization": {"Bearer " + key}}})
		if err != nil {
			t.Errorf("%s: %v", key, err)
		}
		names[name] = true
	}
	if len(names) != 3 {
		t.Errorf("names of three keys: %v", names)
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

// So many large bodies are served at a time; small ones are not refused for them.
func TestLargeBodies(t *testing.T) {
	a := serveModel(t, "llama", Options{Limits: Limits{Body: 4 << 20}})
	large := `{"prompt": [1], "user": "` + strings.Repeat("x", largeBody) + `", "max_tokens": 1}`
	post := func(body string) int {
		r, _ := a.send(t, "POST", "/v1/completions", body)
		return r.StatusCode
	}
	for range largeBodies {
		if err := a.server.large.enter(); err != nil {
			t.Fatal(err)
		}
	}
	if code := post(large); code != http.StatusTooManyRequests {
		t.Errorf("a large body beside as many as may be: %d, want 429", code)
	}
	if code := post(`{"prompt": [1], "max_tokens": 1}`); code != 200 {
		t.Errorf("a small body beside them: %d, want 200", code)
	}
	a.server.large.leave()
	for range 2 { // the first makes room again
		if code := post(large); code != 200 {
			t.Errorf("a large body where there is room: %d, want 200", code)
		}
	}
}
