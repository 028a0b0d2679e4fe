package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/testmodel"
	"pgregory.net/rapid"
)

// idle opens a model without starting its loop: the test takes the steps.
func idle(t *testing.T, s testmodel.Spec, o Options) *Engine {
	t.Helper()
	return idleAt(t, testmodel.GGUF(t, s), o)
}

func idleAt(t *testing.T, path string, o Options) *Engine {
	t.Helper()
	e, err := prepare(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	e.ready()
	t.Cleanup(func() { e.close.Do(func() { e.free() }) }) // unless the test closes it
	return e
}

// Whatever comes, goes, is cancelled, scored in between or retracted for want
// of memory: every request gets the tokens that it gets alone, and after every
// step every page of the cache is held by one running sequence or free.
func TestRandomCompany(t *testing.T) {
	s := testmodel.Family("gemma3_text")
	s.Hidden, s.Intermediate, s.Layers, s.Every = 32, 32, 2, 2
	alone := idle(t, s, Options{Threads: 2, MaxBatchedTokens: 512, NoPrefixCache: true})
	// In one piece, and in chunks with hardly more memory than one sequence takes.
	crowded := idle(t, s, Options{Threads: 2, MaxModelLen: 96, MaxBatchedTokens: 24, MaxSeqs: 16, KVCacheMemory: cacheMemory(alone, 160)})

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
			e.accept()
			e.dropCancelled()
		}()
		step := func() {
			e.accept()
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
		for len(e.loop.seqs) > 0 {
			step()
		}
		for i, l := range lives {
			if !l.done() || !slices.Equal(l.ids, l.want[:len(l.ids)]) || l.err == nil && len(l.ids) < len(l.want) {
				rt.Errorf("request %d of %d: done %v, %v, %v; alone %v", i, len(lives), l.done(), l.ids, l.err, l.want)
			}
		}
	})
}

// cacheMemory is what so many tokens take in e's cache.
func cacheMemory(e *Engine, tokens int) int64 { return int64(tokens * e.CacheBytesPerToken()) }

// balanced reports what keeps free + cached + held from being the pool, or the
// scheduler from knowing what the loop knows.
func balanced(e *Engine) error {
	var tables []*kvcache.Table
	for _, s := range e.loop.seqs {
		if s.computed > e.cache.Held(&s.table) || s.computed > len(s.tokens) {
			return fmt.Errorf("a sequence of %d tokens has computed %d with memory for %d", len(s.tokens), s.computed, e.cache.Held(&s.table))
		}
		tables = append(tables, &s.table)
	}
	if e.tree != nil {
		return errors.Join(e.loop.sched.Check(), e.tree.Check(tables...))
	}
	held := 0
	for _, table := range tables {
		held += e.cache.Held(table)
	}
	if free := e.cache.Free() * e.cache.PageSize(); free+held != e.cache.Capacity() {
		return fmt.Errorf("%d positions are free and %d held, the pool has %d", free, held, e.cache.Capacity())
	}
	return e.loop.sched.Check()
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
	g := e.newGroup(newGeneration(ctx, r), r)
	if err := e.loop.inbox.put(g, 0); err != nil {
		t.Fatal(err)
	}
	e.accept()
	return &live{sequence: g.choices[0], cancel: cancel}
}

// done takes what the request got and reports whether it has ended.
func (l *live) done() bool {
	tokens, ended, err := l.out.take()
	l.ids, l.err = append(l.ids, ids(tokens)...), err
	return ended
}

// The time of a step that was given up, or that ran span by span, says nothing
// of what its shape costs.
func TestCostOfStepsThatDidNotRunWhole(t *testing.T) {
	e := idle(t, testmodel.Family("llama"), Options{Threads: 1})
	learns := func() bool {
		before := e.loop.cost
		e.advance()
		return e.loop.cost != before
	}
	r := Request{Prompt: prompt(1, 40), Params: greedy(10)}
	gone := submitTo(t, e, r)
	if !learns() {
		t.Error("a step that ran: nothing was learned")
	}
	gone.cancel()
	if learns() {
		t.Error("a step that nobody waited for was learned from")
	}
	e.dropCancelled()
	submitTo(t, e, r)
	broken := submitTo(t, e, r)
	broken.tokens[2] = 1 << 30
	if learns() {
		t.Error("a step that failed was learned from")
	}
}

// Choices share their prompt until they differ, and not with the caller.
func TestPromptIsTheEngines(t *testing.T) {
	e := idle(t, testmodel.Family("llama"), Options{Threads: 1})
	r := Request{Prompt: prompt(1, 40), Params: greedy(4), Choices: 2}
	l := submitTo(t, e, r)
	clear(r.Prompt)
	for !l.done() {
		e.advance()
	}
	want := generate(t, open(t, "llama", Options{Threads: 1}), Request{Prompt: prompt(1, 40), Params: greedy(4)})
	for i, s := range l.choices {
		if !slices.Equal(s.tokens, append(prompt(1, 40), ids(want)...)) {
			t.Errorf("choice %d: %v, want the prompt and %v", i, s.tokens, ids(want))
		}
	}
}
