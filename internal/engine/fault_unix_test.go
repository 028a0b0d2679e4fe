//go:build unix

package engine

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/testmodel"
)

// A model's file that shrinks while the model runs is an error of the requests
// that read it: what they still read is the embedding. The process lives on.
func TestFileTruncatedWhileGenerating(t *testing.T) {
	// The engine does not wait for who reads: the request is too long to end before
	// the file is truncated.
	spec := testmodel.Family("llama")
	spec.Context = 1 << 17
	path := testmodel.GGUF(t, spec)
	e, err := Open(context.Background(), path, Options{Threads: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	want := path + ": truncated while in use"
	check := func(what string, err error) {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", what, err, want)
		}
	}
	n := 0
	for _, err = range e.Generate(context.Background(), Request{Prompt: prompt(1, 9), Params: greedy(1 << 16)}) {
		if n++; n == 3 {
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	check("the running request", err)
	_, err = collect(e, context.Background(), Request{Prompt: prompt(1, 4), Params: greedy(4)})
	check("the next request", err)
	err = e.Score(context.Background(), prompt(1, 4), 0, 0, func(int, []float32) error { return nil })
	check("a score", err)
	reclaimed(t, e)
}

// That of a draft model costs the drafts, and no request: the log says which file
// it was.
func TestFileOfTheDraftModelTruncated(t *testing.T) {
	path, file := testmodel.GGUF(t, testmodel.Family("llama")), testmodel.GGUF(t, testmodel.Family("llama"))
	r := Request{Prompt: prompt(1, 9), Params: greedy(20)}
	plain, err := Open(context.Background(), path, Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	want := ids(generate(t, plain, r))
	var log bytes.Buffer
	e, err := Open(context.Background(), path, Options{
		Threads: 4, Speculation: Speculation{Method: draftModel, Model: file, Fixed: true}, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	got := ids(generate(t, e, r))
	e.Close()
	if !slices.Equal(got, want) {
		t.Errorf("%v, without drafts %v", got, want)
	}
	if want := file + ": truncated while in use"; !strings.Contains(log.String(), want) {
		t.Errorf("the log lacks %q:\n%s", want, &log)
	}
}

// So it is with experts that a token needs first after the file has shrunk; with
// the file as it was, the model works on.
func TestFileTruncatedWhileExpertsArePacked(t *testing.T) {
	path := testmodel.GGUF(t, testmodel.Family("qwen3_moe"))
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(context.Background(), path, Options{Threads: 4, ExpertMemory: 2 * expertBytes()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r := Request{Prompt: prompt(1, 9), Params: greedy(20)}
	want := ids(generate(t, e, r))
	for range 3 {
		// The embedding is at the file's beginning, the last layer at its end.
		if err := os.Truncate(path, int64(len(file)/2)); err != nil {
			t.Fatal(err)
		}
		if _, err := collect(e, context.Background(), r); err == nil || !strings.Contains(err.Error(), path+": truncated while in use") {
			t.Errorf("%v, want an error that names the file", err)
		}
		if err := os.WriteFile(path, file, 0o644); err != nil {
			t.Fatal(err)
		}
		if got := ids(generate(t, e, r)); !slices.Equal(got, want) {
			t.Errorf("%v, before %v", got, want)
		}
	}
}

// One that shrinks while its weights are prepared cannot be opened, whichever
// worker finds out.
func TestFileTruncatedWhileLoading(t *testing.T) {
	path := testmodel.GGUF(t, testmodel.Family("llama"))
	done := false
	e, err := Open(context.Background(), path, Options{Threads: 4, Progress: func(int64, int64) {
		if !done {
			done = true
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
		}
	}})
	if err == nil {
		e.Close()
	}
	if want := path + ": truncated while in use"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want an error with %q", err, want)
	}
}
