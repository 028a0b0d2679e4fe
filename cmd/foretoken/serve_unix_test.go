//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/foretoken/foretoken/internal/testmodel"
)

// A served is a foretoken serve that runs.
type served struct {
	*exec.Cmd
	url  string
	logs chan map[string]any // lines of its log; closed at the end
}

// startServe serves a model at a free port and returns when it listens.
func startServe(t *testing.T, args ...string) *served {
	t.Helper()
	cmd := exec.Command("foretoken", append([]string{"serve", "--port", "0", "--log-format", "json"}, args...)...)
	cmd.Env = append(os.Environ(), "FORETOKEN_HOME="+filepath.Join(t.TempDir(), "store"))
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &served{cmd, "", make(chan map[string]any, 1000)}
	go func() {
		defer close(s.logs)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			line := map[string]any{}
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				line["msg"] = lines.Text()
			}
			s.logs <- line
		}
	}()
	t.Cleanup(func() { s.Process.Kill() })
	s.url, _ = s.await(t, "listening")["address"].(string)
	return s
}

// await returns the next line of the log with that message.
func (s *served) await(t *testing.T, message string) map[string]any {
	t.Helper()
	var seen []any
	for line := range s.logs {
		if line["msg"] == message {
			return line
		}
		seen = append(seen, line)
	}
	t.Fatalf("the server ended without saying %q: %v", message, seen)
	return nil
}

// end waits for the process.
func (s *served) end() error {
	for range s.logs { // to the end
	}
	return s.Wait()
}

// stream asks for an answer without an end, and returns when it has begun.
func (s *served) stream(t *testing.T) io.Closer {
	t.Helper()
	r, err := http.Post(s.url+"/v1/completions", "application/json",
		strings.NewReader(`{"prompt": "hello", "max_tokens": 1000000, "ignore_eos": true, "stream": true}`))
	if err == nil && r.StatusCode != http.StatusOK {
		err = errors.New(r.Status)
	}
	if err == nil {
		_, err = io.ReadFull(r.Body, make([]byte, 100))
	}
	if err != nil {
		t.Fatal(err)
	}
	return r.Body
}

func (s *served) status(t *testing.T, path string) int {
	t.Helper()
	r, err := http.Get(s.url + path)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	return r.StatusCode
}

// SIGTERM ends the server with its last request, and a second one at once.
func TestServeEnds(t *testing.T) {
	t.Run("idle", func(t *testing.T) {
		s := startServe(t, endless(t))
		s.await(t, "ready")
		s.Process.Signal(syscall.SIGTERM)
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
	t.Run("busy", func(t *testing.T) {
		s := startServe(t, endless(t))
		s.await(t, "ready")
		answer := s.stream(t)
		s.Process.Signal(syscall.SIGTERM)
		s.await(t, "draining: no new requests")
		if got := s.status(t, "/ready"); got != http.StatusServiceUnavailable {
			t.Errorf("/ready: %d", got)
		}
		answer.Close()
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
	t.Run("twice", func(t *testing.T) {
		s := startServe(t, endless(t))
		s.await(t, "ready")
		defer s.stream(t).Close()
		s.Process.Signal(syscall.SIGTERM)
		s.await(t, "draining: no new requests")
		s.Process.Signal(syscall.SIGTERM)
		if code := exitCode(s.end()); code != exitInterrupted {
			t.Errorf("exit code %d, want %d", code, exitInterrupted)
		}
	})
}

// The report has what was chosen, by the names that SGLang has for it.
func TestServeReport(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := write("config.yaml", "model: "+testmodel.GGUF(t, testmodel.Family("llama"))+`
served-model-name: [one, two]
max_num_seqs: 7          # also with _
max-model-len: 99
api-key: secret
tool-call-parser: hermes
enable-prefix-caching: false
speculative-config: {method: ngram, num_speculative_tokens: 3}
log-level: debug
`)
	template := write("template.jinja", "{{ messages[0].content }}")
	t.Setenv("FORETOKEN_MAX_MODEL_LEN", "88")
	s := startServe(t, "--config", config, "--max-num-seqs", "5", "--chat-template", template)
	line := s.await(t, "ready")
	for name, want := range map[string]any{
		"max_running_requests": 5.0, "context_len": 88.0, "chunked_prefill_size": 128.0, "tool_call_parser": "hermes", "reasoning_parser": "none",
		"prefixes": "not shared: switched off", "speculation": "ngram",
	} {
		if line[name] != want {
			t.Errorf("%s is %v, want %v", name, line[name], want)
		}
	}
	if got := s.status(t, "/v1/models"); got != http.StatusUnauthorized {
		t.Errorf("without the key of the file: %d", got)
	}
	r, err := http.NewRequest("POST", s.url+"/tokenize", strings.NewReader(`{"model": "two", "messages": [{"role": "user", "content": "hello"}], "return_token_strs": true}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer secret")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var tokens struct {
		Strings []string `json:"token_strs"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&tokens); err != nil || !strings.Contains(strings.Join(tokens.Strings, ""), "hello") || len(tokens.Strings) > 5 {
		t.Errorf("%v: the template of the flag makes %q", err, tokens.Strings)
	}
	s.Process.Signal(syscall.SIGTERM)
	if err := s.end(); err != nil {
		t.Error(err)
	}
}
