package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/testmodel"
	"pgregory.net/rapid"
)

// idle opens a model without starting its loop: the test takes the steps.
func idle(t *testing.T, s testmodel.Spec, o Options) *Engine {
	t.Helper()
	e, err := prepare(context.Background(), testmodel.GGUF(t, s), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.close.Do(func() { e.release() }) }) // unless the test closes it
	return e
}

// Whatever comes, goes, is cancelled, scored in between or retracted for want
// of memory: every request gets the tokens that it gets alone, and after every
// step every page of the cache is held by one running sequence or free.
func TestRandomCompany(t *testing.T) {
	s := testmodel.Family("gemma3_text")
	s.Hidden, s.Intermediate, s.Layers, s.Every = 32, 32, 2, 2
	alone := idle(t, s, Options{Threads: 2})
	crowded := idle(t, s, Options{Threads: 2, MaxModelLen: 96})
	alone.stepRows, crowded.stepRows = 512, 24 // in one piece, and in chunks

	var requests []Request
	var want [][]int32
	for i, length := range []int{1, 5, 31, 32, 50} {
		p := greedy(3 + 9*i)
		if i%2 == 1 {
			p.Temperature, p.Seed, p.FrequencyPenalty = 0.9, uint64(i), 0.5
		}
		r := Request{Prompt: prompt(i, length), Params: p}
		live := submitTo(t, alone, r)
		for !live.done() {
			alone.advance()
		}
		requests, want = append(requests, r), append(want, live.ids)
	}

	rapid.Check(t, func(rt *rapid.T) {
		e := crowded
		var lives []*live
		defer func() { // a failure leaves nothing to the next check
			for _, l := range lives {
				l.cancel()
			}
			e.dropCancelled()
		}()
		step := func() {
			e.dropCancelled()
			e.advance()
			if err := balanced(e); err != nil {
				rt.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 15).Draw(rt, "events") {
			switch event := rapid.SampledFrom([]string{"submit", "submit", "cancel", "score", "steps", "steps"}).Draw(rt, "event"); event {
			case "submit":
				i := rapid.IntRange(0, len(requests)-1).Draw(rt, "request")
				l := submitTo(t, e, requests[i])
				l.want = want[i]
				lives = append(lives, l)
			case "cancel":
				if len(lives) > 0 {
					rapid.SampledFrom(lives).Draw(rt, "cancelled").cancel()
				}
			case "score":
				n := rapid.IntRange(1, 96).Draw(rt, "score")
				if err := e.forward(context.Background(), prompt(7, n), 0, func(int, []int) error { return nil }); err != nil {
					rt.Fatal(err)
				}
				if err := balanced(e); err != nil {
					rt.Fatal(err)
				}
			case "steps":
				for range rapid.IntRange(1, 20).Draw(rt, "steps") {
					step()
				}
			}
		}
		for len(e.loop.waiting)+len(e.loop.running) > 0 {
			step()
		}
		for i, l := range lives {
			if !l.done() || !slices.Equal(l.ids, l.want[:len(l.ids)]) || l.err == nil && len(l.ids) < len(l.want) {
				rt.Errorf("request %d of %d: done %v, %v, %v; alone %v", i, len(lives), l.done(), l.ids, l.err, l.want)
			}
		}
	})
}

// balanced reports what keeps free + held from being the pool.
func balanced(e *Engine) error {
	held := 0
	for _, s := range e.loop.running {
		if s.computed > e.cache.Held(&s.table) || s.computed > len(s.tokens) {
			return fmt.Errorf("a sequence of %d tokens has computed %d with memory for %d", len(s.tokens), s.computed, e.cache.Held(&s.table))
		}
		held += e.cache.Held(&s.table)
	}
	for _, s := range e.loop.waiting {
		if s.computed != 0 || e.cache.Held(&s.table) != 0 {
			return fmt.Errorf("a waiting sequence has computed %d tokens and holds memory for %d", s.computed, e.cache.Held(&s.table))
		}
	}
	if free := e.cache.Free() * e.cache.PageSize(); free+held != e.cache.Capacity() {
		return fmt.Errorf("%d positions are free and %d held, the pool has %d", free, held, e.cache.Capacity())
	}
	return nil
}

// A live request of an engine that the test steps.
type live struct {
	*sequence
	cancel context.CancelFunc
	ids    []int32
	want   []int32
	err    error
}

func submitTo(t *testing.T, e *Engine, r Request) *live {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	if err := e.check(&r); err != nil {
		t.Fatal(err)
	}
	s := e.newRequest(newGeneration(ctx, r), r)[0]
	e.loop.waiting = append(e.loop.waiting, s)
	return &live{sequence: s, cancel: cancel}
}

// done takes what the request got and reports whether it has ended.
func (l *live) done() bool {
	tokens, ended, err := l.out.take()
	l.ids, l.err = append(l.ids, ids(tokens)...), err
	return ended
}
