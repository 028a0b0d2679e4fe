package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// listen serves s as the program does. end tells it to end, and done has what
// Serve returned.
func listen(t *testing.T, s *Server) (a *testAPI, end func(), done <-chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	gone := make(chan struct{})
	go func() {
		ended <- s.Serve(ctx, l)
		close(gone)
	}()
	client := &http.Client{Transport: &http.Transport{}}
	if s.TLS != nil {
		client.Transport = &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	}
	t.Cleanup(func() {
		end()
		client.CloseIdleConnections()
		<-gone
	})
	scheme := "http://"
	if s.TLS != nil {
		scheme = "https://"
	}
	return &testAPI{Server: &httptest.Server{URL: scheme + l.Addr().String(), Config: &http.Server{}}, server: s, client: client}, end, ended
}

// Before there is a model, the server says that it lives, and that it is not
// ready.
func TestLoading(t *testing.T) {
	s := New(Options{Models: []string{"tiny"}})
	a, _, _ := listen(t, s)
	if r, _ := a.send(t, "GET", "/health", ""); r.StatusCode != 200 {
		t.Errorf("/health: %d", r.StatusCode)
	}
	if r, text := a.send(t, "GET", "/metrics", ""); r.StatusCode != 200 || strings.Contains(text, "vllm:num_requests_running") {
		t.Errorf("/metrics: %d %s", r.StatusCode, text)
	}
	for _, rt := range routes {
		if !rt.model && rt.pattern != "/ready" {
			continue
		}
		r, text := a.send(t, rt.method, strings.ReplaceAll(rt.pattern, "{id...}", "tiny"), "")
		if e := refusal(t, text); r.StatusCode != 503 || e.Code != "loading" || r.Header.Get("Retry-After") != "5" {
			t.Errorf("%s: %d %v %s", rt.pattern, r.StatusCode, r.Header, text)
		}
	}
	s.Attach(openEngine(t, testmodel.Safetensors(t, testmodel.Family("llama")), engine.Options{}))
	for _, path := range []string{"/ready", "/v1/models"} {
		if r, text := a.send(t, "GET", path, ""); r.StatusCode != 200 {
			t.Errorf("%s with a model: %d %s", path, r.StatusCode, text)
		}
	}
}

// A server that is told to end is not ready, takes nothing new, and ends with
// the last request that runs.
func TestDrain(t *testing.T) {
	s := New(Options{Models: []string{"tiny"}})
	s.Attach(openEngine(t, long(t), engine.Options{}))
	a, end, done := listen(t, s)
	stop := a.begin(t)
	end()
	<-s.gate.closed
	r, text := a.send(t, "GET", "/ready", "")
	if e := refusal(t, text); r.StatusCode != 503 || e.Code != "shutting_down" {
		t.Errorf("/ready: %d %s", r.StatusCode, text)
	}
	r, text = a.send(t, "POST", "/v1/completions", `{"prompt": "hello"}`)
	if e := refusal(t, text); r.StatusCode != 503 || e.Code != "shutting_down" || r.Header.Get("Retry-After") != "5" {
		t.Errorf("a new request: %d %s", r.StatusCode, text)
	}
	if r, _ := a.send(t, "GET", "/health", ""); r.StatusCode != 200 {
		t.Errorf("/health: %d", r.StatusCode)
	}
	if list, err := s.engine.Requests(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%d requests run, %v; want the one that ran", len(list), err)
	}
	select {
	case err := <-done:
		t.Errorf("the server has ended before its request: %v", err)
	default:
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A connection for what the library does not show clients.
func (a *testAPI) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(a.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Clients that stop in the middle of a request are let go.
func TestSlowSenders(t *testing.T) {
	s := New(Options{Models: []string{"tiny"}, APIKeys: []string{"secret"}, Limits: Limits{Stall: 50 * time.Millisecond}})
	s.Attach(openEngine(t, testmodel.Safetensors(t, testmodel.Family("llama")), engine.Options{}))
	a, _, _ := listen(t, s)
	const head = "POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
	const key = "Authorization: Bearer secret\r\n"
	for name, test := range map[string]struct{ sent, status string }{
		"nothing":                       {"", ""},
		"half a header":                 {head, ""},
		"half a body":                   {head + key + "Content-Length: 100\r\n\r\n{\"prompt\"", "408"},
		"half a chunk":                  {head + key + "Transfer-Encoding: chunked\r\n\r\n10\r\n{", "408"},
		"half a body that nobody wants": {head + "Content-Length: 100\r\n\r\n{\"prompt\"", "401"},
		"half a body of another page":   {head + "Origin: https://evil.example\r\nContent-Length: 100\r\n\r\n{", "403"},
		"half a body for nothing":       {"POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", "404"},
		"junk":                          {"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", "400"},
	} {
		t.Run(name, func(t *testing.T) {
			c := a.dial(t)
			if _, err := io.WriteString(c, test.sent); err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(c) // to the end of the connection
			if err != nil && len(answer) == 0 && test.status != "" {
				t.Fatal(err)
			}
			if _, status, _ := strings.Cut(string(answer), " "); test.status != "" && !strings.HasPrefix(status, test.status) || test.status == "" && len(answer) > 0 && !strings.HasPrefix(status, "408") {
				t.Errorf("the answer is %q, want status %q", answer, test.status)
			}
		})
	}
	if n := s.gate.count(); n != 0 {
		t.Errorf("%d requests have not ended", n)
	}
}

// A body may come slowly, as long as it comes: each part has time of its own.
func TestBodyInParts(t *testing.T) {
	s := New(Options{Models: []string{"tiny"}, Limits: Limits{Stall: time.Minute}})
	s.Attach(openEngine(t, testmodel.Safetensors(t, testmodel.Family("llama")), engine.Options{}))
	a, _, _ := listen(t, s)
	c := a.dial(t)
	body := `{"prompt": "hello", "max_tokens": 1}`
	fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", len(body))
	for i := range len(body) {
		if _, err := c.Write([]byte{body[i]}); err != nil {
			t.Fatal(err)
		}
	}
	if answer, err := io.ReadAll(c); err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 200")) {
		t.Errorf("%v: %q", err, answer)
	}
}

// A client that does not read its stream any more is let go, and its request
// with it; one that reads is not.
func TestSlowReader(t *testing.T) {
	s := New(Options{Models: []string{"tiny"}, Limits: Limits{Stall: 200 * time.Millisecond}})
	s.Attach(openEngine(t, long(t), engine.Options{}))
	a, _, _ := listen(t, s)
	c := a.dial(t)
	if err := c.(*net.TCPConn).SetReadBuffer(1 << 10); err != nil {
		t.Fatal(err)
	}
	body := strings.Replace(endless, `"stream"`, `"logprobs": 5, "stream"`, 1)
	fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if _, err := bufio.NewReaderSize(c, 16).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	s.gate.close()
	<-s.gate.empty // when nobody is inside: the reader has been let go
	list, err := s.engine.Requests(t.Context())
	for err == nil && len(list) > 0 {
		list, err = s.engine.Requests(t.Context()) // at the latest after two steps
	}
	if err != nil {
		t.Error(err)
	}
}

// To HTTP, a client that closes its side has left. One that still reads is told
// so, and not that the server failed.
func TestHalfClosed(t *testing.T) {
	s := New(Options{Models: []string{"tiny"}})
	s.Attach(openEngine(t, long(t), engine.Options{}))
	a, _, _ := listen(t, s)
	conn := a.dial(t)
	body := strings.Replace(endless, "true}", "false}", 1)
	fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: tiny\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if e := refusal(t, string(text)); r.StatusCode != statusClientGone || !strings.Contains(e.Message, "closed the connection") {
		t.Errorf("%d %s", r.StatusCode, text)
	}
}

// What a header may have is bounded before anything is done with it.
func TestHeaderLimit(t *testing.T) {
	s := New(Options{Models: []string{"tiny"}})
	a, _, _ := listen(t, s)
	for size, status := range map[int]int{32 << 10: 200, 1 << 20: 431} {
		c := a.dial(t)
		go fmt.Fprintf(c, "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Large: %s\r\n\r\n", strings.Repeat("x", size))
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || r.StatusCode != status {
			t.Errorf("a header of %d bytes: %v, %v, want status %d", size, r, err, status)
		}
	}
}

// Over TLS it is HTTP/2 as well, with the same limits.
func TestTLS(t *testing.T) {
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	defer certified.Close()
	s := New(Options{Models: []string{"tiny"}, TLS: &tls.Config{Certificates: certified.TLS.Certificates}})
	s.Attach(openEngine(t, long(t), engine.Options{}))
	a, end, done := listen(t, s)
	r, text := a.send(t, "POST", "/v1/completions", `{"prompt": "hello", "max_tokens": 3, "ignore_eos": true}`)
	if r.StatusCode != 200 || r.ProtoMajor != 2 {
		t.Errorf("%s %d %s", r.Proto, r.StatusCode, text)
	}
	stop := a.begin(t)
	end()
	stop()
	if err := <-done; err != nil && !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}
