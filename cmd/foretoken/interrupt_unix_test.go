//go:build unix

package main

import (
	"bytes"
	"errors"
	"io"
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
	cmd := exec.Command("foretoken", "run", endless(t), "--raw", "hello", "--logit-bias", "65=100", "--ignore-eos")
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
	if answer = append(answer, rest...); !bytes.HasSuffix(answer, []byte("A\n")) {
		t.Errorf("the answer ends in %q, want A and the end of the line", answer[len(answer)-10:])
	}
	if code := exitCode(cmd.Wait()); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	if got := stderr.String(); got != "foretoken: interrupted\n" {
		t.Errorf("stderr %q", got)
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
