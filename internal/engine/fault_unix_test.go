//go:build unix

package engine

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/testmodel"
)

// A model's file that shrinks while the model runs is an error of the requests
// that read it, on whichever goroutine they do; the process lives on. What is
// left of the file decides where the first read fails: in the embedding, a
// layer or the head.
func TestFileTruncatedWhileGenerating(t *testing.T) {
	for _, percent := range []int64{0, 30, 60, 90} {
		path := testmodel.GGUF(t, testmodel.Family("llama"))
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		e, err := Open(path, Options{Threads: 4})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		want := path + ": truncated while in use"
		check := func(what string, err error) {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%d %% left, %s: %v, want an error with %q", percent, what, err, want)
			}
		}
		n := 0
		for _, err = range e.Generate(context.Background(), Request{Prompt: prompt(1, 9), Params: greedy(400)}) {
			if n++; n == 3 {
				if err := os.Truncate(path, info.Size()*percent/100); err != nil {
					t.Fatal(err)
				}
			}
		}
		check("the running request", err)
		_, err = collect(e, context.Background(), Request{Prompt: prompt(1, 4), Params: greedy(4)})
		check("the next request", err)
		err = e.Score(context.Background(), prompt(1, 4), 0, 0, func(int, []float32) error { return nil })
		check("a score", err)
		if free := e.cache.Free() * 32; free != e.cache.Capacity() {
			t.Errorf("%d %% left: %d of %d positions are free", percent, free, e.cache.Capacity())
		}
	}
}
