//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/foretoken/foretoken/internal/testmodel"
)

// endless writes a model whose answers do not end while a test runs.
func endless(t *testing.T) string {
	s := testmodel.Family("llama")
	s.Context = 1 << 20
	return testmodel.GGUF(t, s)
}

func exitCode(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// Ctrl-C ends an answer, of which what there is stays.
func TestInterrupt(t *testing.T) {
	t.Run("text", func(t *testing.T) {
		if answer := interrupted(t); !bytes.HasSuffix(answer, []byte("A\n")) {
			t.Errorf("the answer ends in %q, want A and the end of the line", answer[len(answer)-10:])
		}
	})
	t.Run("ids", func(t *testing.T) {
		var ids []int32
		if err := json.Unmarshal(interrupted(t, "--print-tokens"), &ids); err != nil || len(ids) < 30 || ids[0] != 65 {
			t.Errorf("%v, %v: want as many ids as were printed before", ids, err)
		}
	})
}

// interrupted is what run prints when Ctrl-C comes after a hundred bytes.
func interrupted(t *testing.T, flags ...string) []byte {
	args := append([]string{"run", endless(t), "--raw", "hello", "--logit-bias", "65=100", "--ignore-eos"}, flags...)
	cmd := exec.Command("foretoken", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 100)
	if _, err := io.ReadFull(stdout, answer); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	if code := exitCode(cmd.Wait()); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	if got := stderr.String(); got != "foretoken: interrupted\n" {
		t.Errorf("stderr %q", got)
	}
	return append(answer, rest...)
}

// Ctrl-C ends a measurement, of which what there is is reported.
func TestInterruptBenchServe(t *testing.T) {
	asked := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, _ := io.Copy(io.Discard, r.Body); n == 0 {
			t.Error("an empty request")
		}
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	cmd := exec.Command("foretoken", "bench", "serve", "--base-url", server.URL, "--model", "m", "--warmups", "0", "--num-prompts", "3", "--concurrency", "1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(cmd.Wait()); code != exitInterrupted || stderr.String() != "foretoken: interrupted\n" {
		t.Errorf("exit code %d, stderr %q", code, stderr.String())
	}
	if want := "0 completed, 0 failed; interrupted: 1 given up, 2 not sent\n"; !bytes.Contains(stdout.Bytes(), []byte(want)) {
		t.Errorf("stdout %q, want %q", stdout.String(), want)
	}
}

// A reader that leaves ends the command quietly, as for any other program in
// a pipe.
func TestReaderLeaves(t *testing.T) {
	model := endless(t)
	for name, args := range map[string][]string{
		"answer": {"run", model, "--raw", "hello", "--logit-bias", "65=100", "--ignore-eos"},
		"ids":    {"tokenize", model, "hello"},
		"show":   {"show", model},
	} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			defer w.Close()
			var stderr bytes.Buffer
			cmd := exec.Command("foretoken", args...)
			cmd.Env = append(os.Environ(), "FORETOKEN_HOME="+filepath.Join(t.TempDir(), "store"))
			cmd.Stdout, cmd.Stderr = w, &stderr
			if err := cmd.Run(); err != nil || stderr.Len() > 0 {
				t.Errorf("%v, stderr %q; want neither", err, stderr.String())
			}
		})
	}
}
