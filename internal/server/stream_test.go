package server

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/foretoken/foretoken/internal/engine"
)

// block keeps the engine busy until the returned function is called.
func block(t *testing.T, e *engine.Engine) (release func()) {
	t.Helper()
	blocked, free, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		first := true
		done <- e.Score(context.Background(), []int32{1}, 0, 0, func(int, []float32) error {
			if first {
				first = false
				close(blocked)
				<-free
			}
			return nil
		})
	}()
	<-blocked
	return func() {
		close(free)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// open posts a request whose response is read line by line.
func (a *testAPI) open(t *testing.T, path string, body object) (lines *bufio.Scanner, leave func()) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL+path, strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	response, err := a.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("status %d, %s", response.StatusCode, response.Header)
	}
	return bufio.NewScanner(response.Body), func() {
		cancel()
		response.Body.Close()
	}
}

// While a request waits, its stream has comments.
func TestPings(t *testing.T) {
	a := serveModel(t, "llama", Options{Limits: Limits{Ping: time.Millisecond}})
	for _, path := range []string{completionsPath, chatPath, responsesPath} {
		q := object{"stream": true, "temperature": 0, "ignore_eos": true}
		switch path {
		case completionsPath:
			q["prompt"] = "hello"
		case chatPath:
			q["messages"] = sayHello["messages"]
		default:
			q["input"] = "hello"
		}
		release := block(t, a.server.engine)
		lines, leave := a.open(t, path, q)
		for pings := 0; pings < 3; {
			if !lines.Scan() {
				t.Fatal("the stream ended")
			}
			switch lines.Text() {
			case ": ping":
				pings++
			case "":
			default:
				t.Errorf("%s: %s", path, lines.Text())
			}
		}
		release()
		data := 0
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "data: {") {
				data++
			}
		}
		leave()
		if data < 1 || lines.Err() != nil {
			t.Errorf("%s: %d events, %v", path, data, lines.Err())
		}
	}
}

// Requests of a client that has left are gone after the next step, whatever
// they were at, and those of others go on.
func TestDisconnects(t *testing.T) {
	a := serveModel(t, "llama", Options{Limits: Limits{Ping: time.Millisecond}})
	e := a.server.engine
	long := object{"prompt": make([]int, 400), "stream": true, "max_tokens": 100, "ignore_eos": true}
	for _, tc := range []struct {
		name  string
		queue bool // leave while waiting
		path  string
	}{
		{"in the queue", true, completionsPath}, {"while it is written", false, completionsPath},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var release func()
			if tc.queue {
				release = block(t, e)
			}
			lines, leave := a.open(t, tc.path, long)
			if !lines.Scan() {
				t.Fatal("the stream ended")
			}
			left := a.left
			leave()
			<-left // the handler has returned
			if tc.queue {
				release()
			}
			for steps := 0; ; steps++ {
				list, err := e.Requests(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if len(list) == 0 {
					break
				}
				if steps == 2 {
					t.Fatalf("after %d steps there are %+v", steps, list)
				}
			}
		})
	}
}

// What ends a request within its stream is told there.
func TestErrorsInStreams(t *testing.T) {
	for path, q := range map[string]object{
		completionsPath: {"prompt": "hello"}, chatPath: {"messages": sayHello["messages"]}, responsesPath: {"input": "hello"},
	} {
		a := serveModel(t, "llama", Options{Limits: Limits{Ping: time.Millisecond}})
		release := block(t, a.server.engine)
		lines, leave := a.open(t, path, merge(q, object{"stream": true}))
		if !lines.Scan() || lines.Text() != ": ping" {
			t.Fatalf("%s: %s", path, lines.Text())
		}
		a.end(context.DeadlineExceeded)
		var data []string
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				data = append(data, text)
			}
		}
		leave()
		release()
		all := strings.Join(data, "\n")
		if !strings.Contains(all, "took longer than this server allows") || path != responsesPath && data[len(data)-1] != "[DONE]" {
			t.Errorf("%s: %s", path, all)
		}
	}
}

// Before a stream has begun, an error has a status.
func TestErrorsBeforeStreams(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	a.server.engine.Close()
	if status, text := a.post(t, completionsPath, merge(hello, object{"stream": true})); status != http.StatusServiceUnavailable || !strings.Contains(text, "shutting_down") {
		t.Errorf("%d %s", status, text)
	}
}
