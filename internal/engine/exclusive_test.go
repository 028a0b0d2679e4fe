package engine

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/exec"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// f has the whole cache, and a request that it interrupts gives the tokens
// that it gives alone.
func TestExclusive(t *testing.T) {
	e := open(t, "llama", Options{Threads: 1})
	r := Request{Prompt: prompt(3, 20), Params: greedy(400)}
	want := ids(generate(t, e, r))

	var got []int32
	for token, err := range e.Generate(context.Background(), r) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, token.ID)
		if len(got)%100 != 1 {
			continue
		}
		err := e.Exclusive(context.Background(), func(runner *exec.Runner, cache *kvcache.Pool) error {
			if runner == nil || cache.Free()*cache.PageSize() != cache.Capacity() {
				t.Errorf("after %d tokens: %d of %d positions are free", len(got), cache.Free()*cache.PageSize(), cache.Capacity())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, alone %v", got, want)
	}
}

func TestExclusiveErrors(t *testing.T) {
	e := open(t, "llama", Options{Threads: 1})
	mine := errors.New("mine")
	f := func(*exec.Runner, *kvcache.Pool) error { return mine }
	if err := e.Exclusive(context.Background(), f); !errors.Is(err, mine) {
		t.Errorf("%v, want the error of f", err)
	}
	e.Close()
	if err := e.Exclusive(context.Background(), f); !errors.Is(err, ErrClosed) {
		t.Errorf("%v after Close, want %v", err, ErrClosed)
	}
}

// Prepared weights take what their types take; these are so small that padding counts.
func TestWeightBytes(t *testing.T) {
	s := testmodel.Family("llama")
	q, kv := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	values := s.Layers*(2*s.Hidden*(q+kv)+3*s.Hidden*s.Intermediate) + testmodel.Vocab*s.Hidden // with the head
	for _, c := range []struct {
		options Options
		perRow  int // bytes of 32 values
	}{
		{Options{Threads: 1}, 128},
		{Options{Threads: 1, Quantize: "q8_0"}, 34},
	} {
		least := int64(values / 32 * c.perRow)
		if got := open(t, "llama", c.options).WeightBytes(1); got < least || got > least*3/2 {
			t.Errorf("%+v: %d bytes, want %d and at most half as much again", c.options, got, least)
		}
	}
}
