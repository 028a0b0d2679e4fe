package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/foretoken/foretoken/internal/engine"
)

// A client that leaves takes its request along, whatever that is at and however
// it is answered; the memory is free, and a stream beside it goes on.
func TestLeaving(t *testing.T) {
	e := openEngine(t, long(t), engine.Options{MaxSeqs: 2, MaxBatchedTokens: 16, NoPrefixCache: true})
	a := serveEngine(t, e, Options{Limits: Limits{Ping: time.Millisecond}})
	for _, tc := range []struct {
		state  string
		prompt int
		others int // that run
	}{{"waiting", 4, 2}, {"prefill", 100000, 1}, {"decode", 4, 1}} {
		for _, streamed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, streamed %v", tc.state, streamed), func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				var others []func()
				for range tc.others {
					others = append(others, a.begin(t))
				}
				body, err := json.Marshal(object{"prompt": make([]int, tc.prompt), "max_tokens": 1 << 19, "ignore_eos": true, "stream": streamed})
				if err != nil {
					t.Fatal(err)
				}
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL+completionsPath, strings.NewReader(string(body)))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("X-Request-Id", "leaver")
				gone := make(chan error, 1)
				go func() {
					response, err := http.DefaultClient.Do(r)
					if err == nil {
						_, err = io.Copy(io.Discard, response.Body)
						response.Body.Close()
					}
					gone <- err
				}()
				for stateOf(t, e, "leaver") != tc.state {
				}
				select {
				case <-a.left: // of requests before
				default:
				}
				leave()
				if err := <-gone; !errors.Is(err, context.Canceled) {
					t.Errorf("the client: %v", err)
				}
				<-a.left // its handler has returned
				for steps := 0; stateOf(t, e, "leaver") != ""; steps++ {
					if steps == 2 {
						t.Fatal("after two steps it is still there")
					}
				}
				list, err := e.Requests(t.Context())
				if err != nil || len(list) != tc.others {
					t.Errorf("%v, %v: want the %d others", list, err, tc.others)
				}
				for _, stop := range others {
					stop()
				}
				for s := e.Stats(); s.CacheUsage > 0 || s.Running+s.Waiting > 0; s = e.Stats() {
					if _, err := e.Requests(t.Context()); err != nil { // a step later
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// stateOf is that of a request between two steps, "" if there is none.
func stateOf(t *testing.T, e *engine.Engine, id string) string {
	t.Helper()
	list, err := e.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range list {
		if q.ID == id {
			return q.State
		}
	}
	return ""
}

// Many streams are open at once and wait; none is lost, none is cut, and goleak
// sees that nothing is left of them.
func TestManyStreams(t *testing.T) {
	const streams, tokens = 250, 4
	e := openEngine(t, long(t), engine.Options{MaxSeqs: 8})
	a := serveEngine(t, e, Options{Limits: Limits{Ping: time.Millisecond}})
	release := block(t, e)
	var opened, readers sync.WaitGroup
	opened.Add(streams)
	for i := range streams {
		readers.Go(func() {
			lines, leave := a.open(t, completionsPath, object{
				"prompt": []int{i % 256, 5, 6}, "max_tokens": tokens, "ignore_eos": true, "stream": true, "return_token_ids": true,
			})
			defer leave()
			opened.Done() // its answer has begun, with a comment
			got, done := 0, false
			for lines.Scan() {
				if data, ok := strings.CutPrefix(lines.Text(), "data: {"); ok && strings.Contains(data, `"token_ids":[`) {
					got++
				}
				done = lines.Text() == "data: [DONE]" || done && lines.Text() == ""
			}
			if got != tokens || !done || lines.Err() != nil {
				t.Errorf("stream %d: %d tokens, whole %v, %v", i, got, done, lines.Err())
			}
		})
	}
	opened.Wait()
	if n := e.Stats().Waiting; n != streams {
		t.Errorf("%d requests wait, want all %d", n, streams)
	}
	release()
	readers.Wait()
}

// Whatever is sent to the port, the server says so or hangs up, and goes on.
func TestJunk(t *testing.T) {
	s := New(Options{Models: []string{"tiny"}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := serveOn(t, s, l)
	for name, junk := range map[string]string{
		"TLS":                    "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + strings.Repeat("\x00", 200),
		"HTTP/2":                 "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		"NUL":                    strings.Repeat("\x00", 100) + "\r\n\r\n",
		"bytes":                  "\xff\xfe\xfd\x80\x81 \xc0\xaf\r\n\r\n",
		"SSH":                    "SSH-2.0-OpenSSH_9.0\r\n\r\n",
		"Redis":                  "*1\r\n$4\r\nPING\r\n\r\n",
		"two lengths":            "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
		"length and chunks":      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n{}",
		"negative length":        "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
		"a chunk of 2^64 bytes":  "POST /v1/nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n",
		"a method of a megabyte": strings.Repeat("G", 1<<20) + " / HTTP/1.1\r\n\r\n",
		"a path out of here":     "GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				_, _ = io.WriteString(c, junk) // it may hang up before it has all
				_ = c.(*net.TCPConn).CloseWrite()
			}()
			answer, _ := io.ReadAll(c) // to the end of the connection, also by a reset
			<-sent
			if strings.HasPrefix(string(answer), "HTTP/1.1 2") || strings.Contains(string(answer), "root:") {
				t.Errorf("the answer is %.200q", answer)
			}
		})
	}
	if r, err := http.Get(url + "/health"); err != nil || r.Body.Close() != nil || r.StatusCode != http.StatusOK {
		t.Errorf("after all that: %v, %v", r, err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// serveOn serves as the program does, until the test ends, and returns the URL.
func serveOn(t *testing.T, s *Server, l net.Listener) string {
	ctx, end := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// An exhausted listener has no descriptors for the first connections, as where
// the process has as many as it may.
type exhausted struct {
	net.Listener
	left atomic.Int32
}

func (l *exhausted) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// A server without descriptors waits for some instead of ending.
func TestOutOfDescriptors(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &exhausted{Listener: inner}
	l.left.Store(3)
	url := serveOn(t, New(Options{Models: []string{"tiny"}}), l)
	r, err := http.Get(url + "/health")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if r.StatusCode != http.StatusOK || l.left.Load() >= 0 {
		t.Errorf("status %d, %d failures left", r.StatusCode, l.left.Load())
	}
}
