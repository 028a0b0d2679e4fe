package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// A server is a running `foretoken serve`.
type server struct {
	url   string // without the /v1 of the API
	model string // what requests call it
	key   string

	cmd    *exec.Cmd
	told   bool // to end; twice would mean at once
	exited chan error
	log    log
}

// log collects what a process writes.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// address is where a server says that it listens.
var address = regexp.MustCompile(`127\.0\.0\.1:[1-9][0-9]*`)

// serve starts a server and waits until it is ready. At the end of the test it
// has SIGTERM, and must end by itself with the exit status 0.
func serve(t *testing.T, model, name string, flags ...string) *server {
	t.Helper()
	s := &server{model: name, exited: make(chan error, 1)}
	args := append([]string{"serve", model, "--host", "127.0.0.1", "--port", "0", "--served-model-name", name}, flags...)
	s.cmd = exec.Command(program, args...)
	stderr, err := s.cmd.StderrPipe()
	succeeded(t, err)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listens := make(chan string, 1)
	go func() {
		s.read(stderr, listens)
		s.exited <- s.cmd.Wait()
	}()
	t.Cleanup(func() { s.stop(t) })
	select {
	case at := <-listens:
		s.url = "http://" + at
	case <-time.After(deadline):
		t.Fatalf("the server does not say where it listens: %s", &s.log)
	}
	s.until(t, "ready", func() bool {
		r, err := http.Get(s.url + "/ready")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	return s
}

// read keeps what the server writes and finds its address.
func (s *server) read(stderr io.Reader, listens chan<- string) {
	for r := bufio.NewReader(stderr); ; {
		line, err := r.ReadString('\n')
		s.log.mu.Lock()
		s.log.text.WriteString(line)
		s.log.mu.Unlock()
		if at := address.FindString(line); at != "" {
			select {
			case listens <- at:
			default:
			}
		}
		if err != nil {
			return
		}
	}
}

// end tells the server to.
func (s *server) end(t *testing.T) {
	t.Helper()
	s.told = true
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
}

// stop waits for the server's end.
func (s *server) stop(t *testing.T) {
	if !s.told {
		s.end(t)
	}
	select {
	case err := <-s.exited:
		if err != nil {
			t.Errorf("after SIGTERM the server ends with %v: %s", err, &s.log)
		}
	case <-time.After(deadline):
		_ = s.cmd.Process.Kill()
		t.Errorf("the server does not end after SIGTERM: %s", &s.log)
	}
}

// until asks again and again, as those who watch a server do.
func (s *server) until(t *testing.T, what string, done func() bool) {
	t.Helper()
	ask := time.NewTicker(20 * time.Millisecond)
	defer ask.Stop()
	for late := time.After(deadline); !done(); {
		select {
		case <-ask.C:
		case <-late:
			t.Fatalf("the server is not %s after %v: %s", what, deadline, &s.log)
		}
	}
}

// metric reads a figure of /metrics.
func (s *server) metric(t *testing.T, name string) float64 {
	t.Helper()
	r, err := http.Get(s.url + "/metrics")
	succeeded(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	succeeded(t, err)
	prefix := fmt.Sprintf("%s{model_name=%q} ", name, s.model)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, prefix); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			succeeded(t, err)
			return f
		}
	}
	t.Fatalf("/metrics has no %s…:\n%s", prefix, text)
	return 0
}

// running waits until so many sequences run and so many wait.
func (s *server) running(t *testing.T, running, waiting float64) {
	t.Helper()
	s.until(t, fmt.Sprintf("running %v and making %v wait", running, waiting), func() bool {
		return s.metric(t, "vllm:num_requests_running") == running && s.metric(t, "vllm:num_requests_waiting") == waiting
	})
}

// client is openai-go. It does not try again unless it is told to: what the
// server answers first is what counts.
func (s *server) client(options ...option.RequestOption) *openai.Client {
	key := s.key
	if key == "" {
		key = "none" // clients want one
	}
	c := openai.NewClient(append([]option.RequestOption{
		option.WithBaseURL(s.url + "/v1"), option.WithAPIKey(key), option.WithMaxRetries(0), option.WithUnsafeAllowHTTP(),
	}, options...)...)
	return &c
}

// post asks what OpenAI's API does not have.
func (s *server) post(t *testing.T, path string, body, into any) {
	t.Helper()
	c := s.client(option.WithBaseURL(s.url))
	succeeded(t, c.Post(within(t), path, body, into))
}

func (s *server) detokenize(t *testing.T, ids []int64) string {
	t.Helper()
	var answer struct {
		Prompt string `json:"prompt"`
	}
	s.post(t, "detokenize", map[string]any{"tokens": ids}, &answer)
	return answer.Prompt
}

// within bounds a test's requests.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	return ctx
}
