package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/testmodel"
)

func submit(t *testing.T, e *Engine, r Request) *Generation {
	t.Helper()
	g, err := e.Submit(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// rest reads what is left of a request.
func rest(g *Generation) (tokens []Token, err error) {
	for {
		more, err := g.Next(context.Background())
		tokens = append(tokens, more...)
		if errors.Is(err, io.EOF) {
			return tokens, nil
		} else if err != nil {
			return tokens, err
		}
	}
}

// Choices are what the same request gives with other numbers in its random
// keys; their prompt is computed once, but for the tail behind its last page.
func TestChoices(t *testing.T) {
	for _, o := range []Options{{Threads: 1}, {Threads: 1, NoPrefixCache: true}} {
		e := open(t, "llama", o)
		p := sample.Default()
		p.MaxTokens, p.IgnoreEOS, p.Seed = 8, true, 5
		r := Request{Prompt: prompt(1, 3*32+5), Params: p, Choices: 3}
		tokens, err := rest(submit(t, e, r))
		if err != nil {
			t.Fatal(err)
		}
		byChoice := make([][]int32, 3)
		for _, token := range tokens {
			byChoice[token.Choice] = append(byChoice[token.Choice], token.ID)
		}
		r.Choices = 0
		if want := ids(generate(t, e, r)); !slices.Equal(byChoice[0], want) {
			t.Errorf("choice 0 is %v, alone %v", byChoice[0], want)
		}
		if len(byChoice[1]) != 8 || len(byChoice[2]) != 8 || slices.Equal(byChoice[0], byChoice[1]) || slices.Equal(byChoice[1], byChoice[2]) {
			t.Errorf("choices %v", byChoice)
		}
		want := uint64(101 + 5 + 5 + 5) // and that of the request alone
		if o.NoPrefixCache {
			want = 4 * 101
		}
		reclaimed(t, e)
		if s := e.Stats(); s.PromptTokens != want || s.OutputTokens != 4*8 {
			t.Errorf("%+v: %d tokens of prompts were computed and %d generated, want %d and 32", o, s.PromptTokens, s.OutputTokens, want)
		}
	}
}

// A request for its prompt alone generates nothing; its scores are those of
// Score, whatever is cached, and whether or not something is generated.
func TestScorePrompt(t *testing.T) {
	e := open(t, "qwen3", Options{Threads: 2, MaxBatchedTokens: 48})
	tokens := prompt(3, 130)
	want := make([]TokenScore, len(tokens))
	want[0].ID = tokens[0]
	err := e.Score(context.Background(), tokens, 0, 0, func(row int, logits []float32) error {
		if row+1 == len(tokens) {
			return nil
		}
		logProb, top, err := sample.LogProbs(logits, tokens[row+1], 2, nil)
		want[row+1] = TokenScore{ID: tokens[row+1], LogProb: logProb, Top: slices.Clone(top)}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	p := greedy(3)
	p.LogProbs = 2
	same := func(a, b TokenScore) bool {
		return a.ID == b.ID && a.LogProb == b.LogProb && slices.Equal(a.Top, b.Top)
	}
	for _, only := range []bool{true, false, true} {
		g := submit(t, e, Request{Prompt: tokens, Params: p, PromptOnly: only, ScorePrompt: true})
		generated, err := rest(g)
		if err != nil || (len(generated) == 0) != only {
			t.Errorf("prompt only %v: %d tokens, %v", only, len(generated), err)
		}
		if !slices.EqualFunc(g.Prompt(), want, same) {
			t.Errorf("prompt only %v: the scores differ from those of Score", only)
		}
		if pr := g.Progress(); pr.Cached != 0 || pr.Prompted.IsZero() || pr.Ended.IsZero() {
			t.Errorf("prompt only %v: %+v", only, pr)
		}
	}
	if g := submit(t, e, Request{Prompt: tokens, Params: greedy(1)}); true {
		if _, err := rest(g); err != nil || g.Progress().Cached != 128 {
			t.Errorf("%d tokens of the scored prompt are cached, want 128; %v", g.Progress().Cached, err)
		}
	}
	whole := submit(t, e, Request{Prompt: prompt(9, e.MaxModelLen()), Params: greedy(1), PromptOnly: true})
	if _, err := rest(whole); err != nil {
		t.Errorf("a prompt as long as the model takes: %v", err)
	}
}

// The second of two equal prompts is cached but for its tail, and a
// conversation goes on from its answers. Other namespaces share nothing.
func TestPrefixIsShared(t *testing.T) {
	e := open(t, "llama", Options{Threads: 1})
	first := Request{Prompt: prompt(2, 100), Params: greedy(40)}
	cached := func(r Request) int {
		g := submit(t, e, r)
		if _, err := rest(g); err != nil {
			t.Fatal(err)
		}
		return g.Progress().Cached
	}
	if n := cached(first); n != 0 {
		t.Errorf("%d tokens of the first request are cached", n)
	}
	if n := cached(first); n != 96 {
		t.Errorf("%d of 100 tokens are cached, want 96", n)
	}
	answer := ids(generate(t, e, first))
	next := Request{Prompt: append(append(slices.Clone(first.Prompt), answer...), 1, 2, 3), Params: greedy(1)}
	if n := cached(next); n != 128 { // the last answer token was not computed: 139 were
		t.Errorf("%d of 143 tokens are cached, want 128", n)
	}
	other := first
	other.Namespace = "other"
	if n := cached(other); n != 0 {
		t.Errorf("%d tokens of another namespace are cached", n)
	}
}

// What was cached when an engine was closed is there when the next one opens,
// unless it computes something else.
func TestPrefixCacheDir(t *testing.T) {
	dir := t.TempDir()
	model := testmodel.GGUF(t, testmodel.Family("llama"))
	run := func(o Options) (cached int, tokens []int32) {
		o.Threads, o.PrefixCacheDir = 1, dir
		e, err := Open(context.Background(), model, o)
		if err != nil {
			t.Fatal(err)
		}
		g := submit(t, e, Request{Prompt: prompt(2, 100), Params: greedy(9)})
		generated, err := rest(g)
		if err := errors.Join(err, e.Close()); err != nil {
			t.Fatal(err)
		}
		return g.Progress().Cached, ids(generated)
	}
	_, want := run(Options{})
	for _, test := range []struct {
		name string
		o    Options
		want int
	}{
		{"the same", Options{}, 96},
		{"rounded weights", Options{Quantize: "q8_0"}, 0},
		{"other activations", Options{DType: "float32", KVCacheDType: "bf16"}, 0},
		{"layers of a draft model", Options{Speculation: Speculation{Method: draftModel, Model: model}}, 0},
		{"the first again", Options{}, 96},
	} {
		n, got := run(test.o)
		if n != test.want {
			t.Errorf("%s: %d tokens are cached, want %d", test.name, n, test.want)
		}
		if test.want > 0 && !slices.Equal(got, want) {
			t.Errorf("%s: %v, before %v", test.name, got, want)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing was saved: %v", err)
	}
	for _, f := range files {
		if err := os.Truncate(f, 100); err != nil {
			t.Fatal(err)
		}
	}
	if n, got := run(Options{}); n != 0 || !slices.Equal(got, want) {
		t.Errorf("after damage: %d cached, %v; want 0, %v", n, got, want)
	}
}

// Of what was saved for other models the newest is kept, and nothing that is not
// an engine's is touched.
func TestPrefixCacheDirIsBounded(t *testing.T) {
	dir := t.TempDir()
	name := func(i int) string { return fmt.Sprintf("%024x.prefixes", i) }
	write := func(name string, age time.Duration) {
		path, at := filepath.Join(dir, name), time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for i := range keptPrefixes + 3 {
		write(name(i), time.Duration(i+1)*24*time.Hour)
		if i < keptPrefixes-1 {
			want = append(want, name(i))
		}
	}
	write(name(1)+".123", 2*time.Hour)    // of an engine that was killed
	write(name(1)+".456", 59*time.Minute) // of one that may still write
	others := []string{"notes.prefixes", "x" + name(1), name(1) + ".bak", name(1) + ".123.gz"}
	for _, other := range others {
		write(other, 9999*time.Hour)
	}
	if err := os.Mkdir(filepath.Join(dir, name(99)), 0o700); err != nil {
		t.Fatal(err)
	}
	want = append(append(want, name(1)+".456", name(99)), others...)

	e := open(t, "llama", Options{Threads: 1, PrefixCacheDir: dir})
	generate(t, e, Request{Prompt: prompt(2, 100), Params: greedy(1)})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Size() > 0 && !entry.IsDir() && savedPrefixes.MatchString(entry.Name()) {
			continue // the engine's own
		}
		got = append(got, entry.Name())
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" || len(entries) != len(want)+1 {
		t.Errorf("files (-want +got), and the engine's own:\n%s", diff)
	}
}

// Who finds no place in the queue learns it while a step runs, and who left it
// makes a place.
func TestQueueIsFullAtOnce(t *testing.T) {
	e := idle(t, testmodel.Family("llama"), Options{Threads: 1, MaxQueued: 2}) // its loop does not run
	r := Request{Prompt: prompt(1, 4), Params: greedy(2)}
	first := submit(t, e, r)
	submit(t, e, r)
	var full *QueueFull
	if _, err := e.Submit(context.Background(), r); !errors.As(err, &full) || full.Limit != 2 {
		t.Errorf("a third request: %v, want a full queue of 2", err)
	}
	first.Close()
	e.accept()
	e.dropCancelled()
	submit(t, e, r)
	if _, err := e.Submit(context.Background(), r); !errors.As(err, &full) {
		t.Errorf("after one has left and one has come: %v, want a full queue", err)
	}
	e.advance() // two run
	submit(t, e, r)
}

// A request that is cancelled holds nothing after the next step, be it in the
// queue, in its prompt or decoding, and the others are not touched.
func TestCancelledIsFreeInAStep(t *testing.T) {
	e := idle(t, testmodel.Family("llama"), Options{Threads: 1, MaxBatchedTokens: 32, MaxSeqs: 2, NoPrefixCache: true})
	step := func() {
		e.accept()
		e.dropCancelled()
		e.advance()
	}
	other := submitTo(t, e, Request{Prompt: prompt(9, 3), Params: greedy(40)})
	step()
	for _, test := range []struct {
		state string
		fill  bool // every place to run is taken
	}{{"waiting", true}, {"prefill", false}, {"decode", false}} {
		var filler *live
		if test.fill {
			filler = submitTo(t, e, Request{Prompt: prompt(8, 3), Params: greedy(200)})
			step()
		}
		before := e.cache.Free()
		l := submitTo(t, e, Request{Prompt: prompt(1, 120), Params: greedy(200)})
		for step(); l.state().State != test.state; step() {
			if l.done() {
				t.Fatalf("the request has ended and was not in %s", test.state)
			}
		}
		l.cancel()
		step()
		if free := e.cache.Free(); free < before-1 || !l.done() || !errors.Is(l.err, context.Canceled) { // others may have grown by a page
			t.Errorf("%s: %d pages are free, %d were before; %v", test.state, free, before, l.err)
		}
		if filler != nil {
			filler.cancel()
		}
	}
	for !other.done() {
		step()
	}
	if other.err != nil || len(other.ids) != 40 {
		t.Errorf("the other request: %d tokens, %v", len(other.ids), other.err)
	}
}

// signal is a log that tells when something is written.
type signal chan string

func (s signal) Write(p []byte) (int, error) {
	select {
	case s <- string(p):
	default:
	}
	return len(p), nil
}

// The watchdog names the stage that takes too long.
func TestWatchdog(t *testing.T) {
	said := make(signal, 1)
	e := open(t, "llama", Options{Threads: 1, WatchdogTimeout: 4 * time.Millisecond, Log: slog.New(slog.NewTextHandler(said, nil))})
	err := e.exclusive(context.Background(), func() error {
		if line := <-said; !strings.Contains(line, "stage=job") {
			t.Errorf("the log says %q, want that the stage is a job", line)
		}
		if s := e.Stats(); s.Stage != "job" || s.For <= 0 {
			t.Errorf("stage %q for %v, want the job", s.Stage, s.For)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The table of requests tells of each what it is at.
func TestRequests(t *testing.T) {
	e := idle(t, testmodel.Family("llama"), Options{Threads: 1, MaxSeqs: 1})
	if s := e.Stats(); s.CacheTokens != e.cache.Capacity() || s.CacheTokens == 0 {
		t.Errorf("before the first step: %+v, want a cache of %d tokens", s, e.cache.Capacity())
	}
	submit(t, e, Request{Prompt: prompt(1, 40), Params: greedy(9), ID: "first", Key: "a"})
	e.accept()
	e.advance()
	e.advance()
	submit(t, e, Request{Prompt: prompt(1, 5), Params: greedy(9), Priority: 3})
	list := e.list()
	if len(list) != 2 {
		t.Fatalf("%+v, want two", list)
	}
	if r := list[0]; r.ID != "first" || r.Key != "a" || r.State != "decode" || r.Prompt != 40 || r.Output != 2 || r.Computed != 41 {
		t.Errorf("%+v", r)
	}
	if r := list[1]; r.ID != "2" || r.State != "waiting" || r.Priority != 3 || r.Computed != 0 {
		t.Errorf("%+v", r)
	}
}

func TestServingOptionsAreChecked(t *testing.T) {
	dir := testmodel.Safetensors(t, testmodel.Family("llama"))
	for _, tc := range []struct {
		o    Options
		want string
	}{
		{Options{MaxSeqs: -1}, "max-num-seqs -1"},
		{Options{MaxBatchedTokens: 8, MaxSeqs: 9}, "max-num-seqs 9: expected at most the 8"},
		{Options{ChunkSize: 4096}, "chunk: 4096"},
		{Options{Policy: "lottery"}, `policy "lottery"`},
		{Options{EvictionPolicy: "random"}, `eviction policy "random"`},
		{Options{PageSize: 48}, "page size 48"},
		{Options{KVCacheMemory: 1}, "kv-cache-memory: cache of 1 bytes"},
		{Options{KVCacheMemory: 1 << 16}, "tokens, expected the 512 of the longest"},
		{Options{NoPrefixCache: true, PrefixCacheDir: "x"}, "prefixes are not shared: switched off"},
		{Options{ITLTarget: -time.Second}, "itl-target-ms -1"},
		{Options{Conservativeness: -1}, "conservativeness: -1"},
		{Options{Speculation: Speculation{Method: ngram, Simulate: []float64{0.5}}}, `simulated acceptances beside speculative method "ngram"`},
	} {
		e, err := Open(context.Background(), dir, tc.o)
		if err == nil {
			e.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want an error with %q", tc.o, err, tc.want)
		}
	}
}

// The pooled states of a prompt do not depend on how many choices follow it.
func TestPoolingWithChoices(t *testing.T) {
	for _, o := range []Options{{Threads: 1}, {Threads: 1, NoPrefixCache: true}} {
		e := open(t, "llama", o)
		var want []float32
		for _, choices := range []int{1, 4} {
			g := submit(t, e, Request{Prompt: prompt(1, 40), Params: greedy(2), Choices: choices, Pooling: MeanPooling})
			if tokens, err := rest(g); err != nil || len(tokens) != 2*choices {
				t.Fatalf("%d tokens, %v; want %d", len(tokens), err, 2*choices)
			}
			if want == nil {
				want = g.Pooled()
			} else if !slices.Equal(g.Pooled(), want) {
				t.Errorf("no prefix cache: %v; with %d choices the pooled states differ", o.NoPrefixCache, choices)
			}
		}
	}
}
