package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipes is a listener whose connections are net.Pipe: a server that answers on
// them works in a synctest bubble, where time passes only when all wait.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newPipes() *pipes {
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close(); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// start serves h until the end of the test, and returns the way to it. It is
// called in a bubble.
func start(t *testing.T, h http.Handler) *http.Transport {
	t.Helper()
	p := newPipes()
	server := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(p) }()
	transport := &http.Transport{DialContext: p.dial, MaxIdleConnsPerHost: 1 << 10}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		<-done
	})
	return transport
}

// asked is a request as a server reads it.
type asked struct {
	Path, Key     string
	At            time.Duration // since the start of the bubble
	Model         string
	Prompt        json.RawMessage
	Messages      []struct{ Role, Content string }
	MaxTokens     int  `json:"max_tokens"`
	IgnoreEOS     bool `json:"ignore_eos"`
	Stream        bool
	Temperature   *float64
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// A script is a server that answers request i, of a kind that asks for tokens,
// with what answer writes. It has one model, whose name is "m".
type script struct {
	t      *testing.T
	answer func(w *writer, i int, r asked)

	began time.Time
	mu    sync.Mutex
	asked []asked
}

func newScript(t *testing.T, answer func(w *writer, i int, r asked)) *script {
	return &script{t: t, answer: answer, began: time.Now()}
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/models" {
		io.WriteString(w, `{"object": "list", "data": [{"id": "m", "object": "model"}]}`)
		return
	}
	a := asked{}
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
		s.t.Errorf("the body of a request: %v", err)
	}
	a.Path, a.Key, a.At = r.URL.Path, r.Header.Get("Authorization"), time.Since(s.began)
	s.mu.Lock()
	i := len(s.asked)
	s.asked = append(s.asked, a)
	s.mu.Unlock()
	s.answer(&writer{ResponseWriter: w, ctx: r.Context()}, i, a)
}

// A writer sends a stream piece by piece.
type writer struct {
	http.ResponseWriter
	ctx context.Context
}

// wait lets time pass, and ends the handler when the client has left.
func (w *writer) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.ctx.Done():
		panic(http.ErrAbortHandler)
	}
}

// raw sends text as it is.
func (w *writer) raw(text string) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	io.WriteString(w, text)
	w.Flush()
}

func (w *writer) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

// data sends an event.
func (w *writer) data(format string, args ...any) {
	w.raw("data: " + fmt.Sprintf(format, args...) + "\n\n")
}

// text sends a chunk of a completion.
func (w *writer) text(s string) {
	w.data(`{"choices":[{"index":0,"text":%q,"finish_reason":null}],"usage":null}`, s)
}

// end sends why a completion ended, numbers of tokens if there are any, and [DONE].
func (w *writer) end(prompt, completion int) {
	w.data(`{"choices":[{"index":0,"text":"","finish_reason":"length"}]}`)
	if completion > 0 {
		w.data(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":3}}}`, prompt, completion)
	}
	w.data("[DONE]")
}

// options are of a load of two requests, one after the other.
func options(transport http.RoundTripper) Options {
	return Options{
		BaseURL: "http://server/v1", Endpoint: Completions, Timeout: time.Minute,
		Requests: 2, Input: Range{5, 5}, Output: Range{4, 4}, TokenIDs: Range{100, 199},
		Concurrency: 1, IgnoreEOS: true, transport: transport,
	}
}

const step = time.Millisecond
