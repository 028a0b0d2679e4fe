package engine

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/testmodel"
)

// bad is the token of poisonedModel whose state is not finite; prompt makes none.
const bad = 280

func poisonedModel(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	m := testmodel.New(testmodel.Family("llama"))
	embedding := m.Tensor("model.embed_tokens.weight")
	embedding.Values[bad*embedding.Shape[1]+3] = float32(math.NaN())
	if err := m.WriteSafetensors(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A token whose state is not finite fails the requests that have it, and only
// them; what came before it is cached, it is not.
func TestNotFiniteFailsAlone(t *testing.T) {
	e := openDir(t, poisonedModel(t), Options{Threads: 2})
	good := Request{Prompt: prompt(1, 100), Params: greedy(20)}
	want := ids(generate(t, e, good))
	poisoned := good
	poisoned.Prompt = slices.Clone(good.Prompt)
	poisoned.Prompt[70] = bad
	alongside := submit(t, e, good)
	for range 2 {
		g := submit(t, e, poisoned)
		if tokens, err := rest(g); err == nil || !strings.Contains(err.Error(), "position 70 is not finite") || len(tokens) > 0 {
			t.Errorf("%d tokens, %v; want an error that names position 70", len(tokens), err)
		}
		if n := g.Progress().Cached; n != 64 {
			t.Errorf("%d tokens were cached, want the 64 of the good prompt", n)
		}
	}
	if tokens, err := rest(alongside); err != nil || !slices.Equal(ids(tokens), want) {
		t.Errorf("beside it: %v, %v; want %v", ids(tokens), err, want)
	}
	reclaimed(t, e)
}

// Where one choice of a request fails, the others end with it in the same step,
// and what they had begun to compute is not cached.
func TestNotFiniteFailsAllChoices(t *testing.T) {
	e := idleAt(t, poisonedModel(t), Options{Threads: 1})
	l := submitTo(t, e, Request{Prompt: prompt(1, 40), Params: greedy(20), Choices: 3})
	for len(e.loop.seqs) < 3 || l.choices[2].generated() == 0 {
		e.advance()
	}
	first := l.choices[0]
	first.tokens[len(first.tokens)-1] = bad
	e.advance()
	if !l.done() || l.err == nil || !strings.Contains(l.err.Error(), "is not finite") || len(e.loop.seqs) > 0 {
		t.Errorf("ended %v, %v, %d sequences; want all to have failed", l.done(), l.err, len(e.loop.seqs))
	}
	if err := balanced(e); err != nil {
		t.Error(err)
	}
}

// A request that breaks an invariant, in the model or behind it, fails alone.
func TestPanicFailsAlone(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(*sequence)
		want  string
	}{
		{"in the model", func(s *sequence) { s.tokens[2] = 1 << 30 }, "token 1073741824 is outside the vocabulary"},
		{"in its text", func(s *sequence) { s.stop = nil }, "broken invariant"},
		{"in its sampling", func(s *sequence) { s.Params.LogitBias = map[int32]float32{-5: 1} }, "broken invariant"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log bytes.Buffer
			e := idle(t, testmodel.Family("llama"), Options{Threads: 2, Log: slog.New(slog.NewTextHandler(&log, nil))})
			good := Request{Prompt: prompt(4, 40), Params: greedy(10)}
			alone := submitTo(t, e, good)
			for !alone.done() {
				e.advance()
			}
			beside, broken := submitTo(t, e, good), submitTo(t, e, Request{Prompt: prompt(1, 9), Params: greedy(10)})
			test.spoil(broken.sequence)
			for !beside.done() || !broken.done() {
				e.advance()
			}
			if broken.err == nil || !strings.Contains(broken.err.Error(), test.want) {
				t.Errorf("the broken request: %v, want an error with %q", broken.err, test.want)
			}
			if strings.Contains(test.want, "invariant") && !strings.Contains(log.String(), "stack=") {
				t.Errorf("the log says %q, want where it happened", log.String())
			}
			if beside.err != nil || !slices.Equal(beside.ids, alone.ids) {
				t.Errorf("the one beside it: %v, %v; alone %v", beside.ids, beside.err, alone.ids)
			}
			if err := balanced(e); err != nil {
				t.Error(err)
			}
		})
	}
}

// A context that panics once, when it has been asked so many times whether it
// ended: between two layers of a step.
type faulty struct {
	context.Context
	left int
}

func (c *faulty) Err() error {
	if c.left--; c.left == 0 {
		panic("between two layers")
	}
	return c.Context.Err()
}

// What a step has overwritten that failed in its middle is not read when its
// spans run again, also where layers keep rings.
func TestStepThatFailedRunsAgain(t *testing.T) {
	for _, family := range []string{"llama", "deepseek_v4"} {
		for _, o := range []Options{{Threads: 1, MaxBatchedTokens: 200}, {Threads: 1, MaxBatchedTokens: 200, NoPrefixCache: true}} {
			e := idle(t, testmodel.Family(family), o)
			long, short := Request{Prompt: prompt(1, 330), Params: greedy(10)}, Request{Prompt: prompt(2, 9), Params: greedy(10)}
			var want [2]*live
			for i, r := range []Request{long, short} {
				want[i] = submitTo(t, e, r)
				for !want[i].done() {
					e.advance()
				}
				if want[i].err != nil {
					t.Fatal(want[i].err)
				}
			}
			if e.tree != nil {
				e.tree.Evict(e.tree.Stats().Pages)
			}
			first := submitTo(t, e, long)
			e.advance()
			second := submitTo(t, e, short)
			first.out.ctx = &faulty{first.out.ctx, 3}
			for !first.done() || !second.done() {
				e.advance()
				if err := balanced(e); err != nil {
					t.Fatal(err)
				}
			}
			if first.err != nil || !slices.Equal(first.ids, want[0].ids) {
				t.Errorf("%s, prefixes shared %v: %v, %v; alone %v", family, e.tree != nil, first.ids, first.err, want[0].ids)
			}
			if second.err != nil || !slices.Equal(second.ids, want[1].ids) {
				t.Errorf("%s: the one beside it: %v, %v; alone %v", family, second.ids, second.err, want[1].ids)
			}
		}
	}
}
