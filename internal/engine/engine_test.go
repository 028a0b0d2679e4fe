package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/testmodel"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, clock) }

// clock is that of regexp2, the tokenizer's, which ends some time after its last
// match.
var clock = goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock")

func open(t *testing.T, family string, o Options) *Engine {
	t.Helper()
	e, err := Open(context.Background(), testmodel.Safetensors(t, testmodel.Family(family)), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func greedy(maxTokens int) sample.Params {
	p := sample.Default()
	p.Temperature, p.MaxTokens, p.IgnoreEOS = 0, maxTokens, true
	return p
}

// collect returns all tokens of a request.
func collect(e *Engine, ctx context.Context, r Request) (tokens []Token, err error) {
	for t, err := range e.Generate(ctx, r) {
		if err != nil {
			return tokens, err
		}
		tokens = append(tokens, t)
	}
	return tokens, nil
}

func generate(t *testing.T, e *Engine, r Request) []Token {
	t.Helper()
	tokens, err := collect(e, context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func ids(tokens []Token) (ids []int32) {
	for _, t := range tokens {
		ids = append(ids, t.ID)
	}
	return ids
}

func text(tokens []Token) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString(t.Text)
	}
	return b.String()
}

// prompt returns n tokens of a fixed stream.
func prompt(seed, n int) []int32 {
	p := make([]int32, n)
	for i := range p {
		p[i] = int32((seed*31 + i*i*7 + i) % 250)
	}
	return p
}

// The same request gives the same tokens alone and among others that come and
// go, with memory to spare and with so little that sequences are retracted.
func TestTokensDoNotDependOnCompany(t *testing.T) {
	e := open(t, "gemma3_text", Options{Threads: 2})
	small := open(t, "gemma3_text", Options{Threads: 2, MaxModelLen: 160, KVCacheMemory: cacheMemory(e, 160)})
	requests := make([]Request, 8)
	want := make([][]int32, len(requests))
	for i := range requests {
		p := greedy(20 + 7*i)
		if i%2 == 1 {
			p.Temperature, p.Seed, p.TopK = 0.9, uint64(i), 40
		}
		requests[i] = Request{Prompt: prompt(i, 1+11*i), Params: p}
		want[i] = ids(generate(t, e, requests[i]))
		if len(want[i]) != p.MaxTokens {
			t.Fatalf("request %d: %d tokens, want %d", i, len(want[i]), p.MaxTokens)
		}
	}
	for _, e := range []*Engine{e, small} {
		var wg sync.WaitGroup
		for i, r := range requests {
			wg.Go(func() {
				tokens, err := collect(e, context.Background(), r)
				if err != nil || !slices.Equal(ids(tokens), want[i]) {
					t.Errorf("request %d: %v, %v; alone %v", i, ids(tokens), err, want[i])
				}
			})
		}
		wg.Wait()
		reclaimed(t, e)
	}
}

func TestFinish(t *testing.T) {
	e := open(t, "llama", Options{Threads: 1, MaxModelLen: 64})
	all := generate(t, e, Request{Prompt: prompt(1, 10), Params: greedy(0)})
	if n, last := len(all), all[len(all)-1]; n != 54 || last.Finish != Length {
		t.Errorf("without limits: %d tokens, finish %q, want 54 to the model's limit", n, last.Finish)
	}
	for _, tok := range all[:len(all)-1] {
		if tok.Finish != "" {
			t.Errorf("a token before the last has finish %q", tok.Finish)
		}
	}
	p := greedy(50)
	p.StopIDs = []int32{all[7].ID}
	first := slices.IndexFunc(all, func(tok Token) bool { return tok.ID == all[7].ID })
	stopped := generate(t, e, Request{Prompt: prompt(1, 10), Params: p})
	if last := stopped[len(stopped)-1]; len(stopped) != first+1 || last.Finish != Stop || last.Text != "" {
		t.Errorf("stop id: %d tokens, last %+v; want %d ending in a stop without text", len(stopped), last, first+1)
	}
	p.MinTokens = 20
	for i, tok := range generate(t, e, Request{Prompt: prompt(1, 10), Params: p})[:20] {
		if tok.ID == all[7].ID {
			t.Errorf("min_tokens 20: stop id at %d", i)
		}
	}
}

func TestStopString(t *testing.T) {
	e := open(t, "llama", Options{Threads: 1})
	whole := text(generate(t, e, Request{Prompt: prompt(2, 5), Params: greedy(60)}))
	if len(whole) < 20 {
		t.Fatalf("the model says only %q", whole)
	}
	runes := []rune(whole)
	stop := string(runes[8:11])
	before, _, _ := strings.Cut(whole, stop)
	p := greedy(60)
	p.Stop = []string{"never said", stop}
	tokens := generate(t, e, Request{Prompt: prompt(2, 5), Params: p})
	if got := text(tokens); got != before || tokens[len(tokens)-1].Finish != Stop {
		t.Errorf("stop string %q: %q, %q; want %q", stop, got, tokens[len(tokens)-1].Finish, before)
	}
	p.IncludeStop = true
	if got := text(generate(t, e, Request{Prompt: prompt(2, 5), Params: p})); got != before+stop {
		t.Errorf("stop string %q included: %q, want %q", stop, got, before+stop)
	}
}

// A stop string that is complete before min_tokens does not end the text.
func TestStopStringWaitsForMinTokens(t *testing.T) {
	e := open(t, "llama", Options{Threads: 1})
	whole := generate(t, e, Request{Prompt: prompt(2, 5), Params: greedy(60)})
	p := greedy(60)
	p.Stop, p.MinTokens = []string{string([]rune(text(whole))[:1])}, 30
	if tokens := generate(t, e, Request{Prompt: prompt(2, 5), Params: p}); len(tokens) < 30 {
		t.Errorf("stop string %q ended the text after %d tokens, min_tokens is 30", p.Stop, len(tokens))
	}
}

func TestSeedsAndLogProbs(t *testing.T) {
	e := open(t, "qwen3", Options{Threads: 2})
	p := sample.Default()
	p.MaxTokens, p.IgnoreEOS, p.Seed, p.LogProbs = 12, true, 7, 3
	r := Request{Prompt: prompt(3, 9), Params: p}
	first := generate(t, e, r)
	if again := generate(t, e, r); !slices.Equal(ids(again), ids(first)) {
		t.Errorf("seed 7 gave %v, then %v", ids(first), ids(again))
	}
	r.Params.Seed = 8
	if other := generate(t, e, r); slices.Equal(ids(other), ids(first)) {
		t.Errorf("seeds 7 and 8 both gave %v", ids(first))
	}
	// Log-probabilities are those that Score computes for the same rows.
	tokens := append(prompt(3, 9), ids(first)...)
	err := e.Score(context.Background(), tokens, 8, 4, func(row int, logits []float32) error {
		if i := row - 8; i < len(first) {
			want, top, err := sample.LogProbs(logits, first[i].ID, 3, nil)
			if err != nil {
				return err
			}
			if first[i].LogProb != want || !slices.Equal(first[i].Top, top) {
				return fmt.Errorf("token %d: %v %v, score says %v %v", i, first[i].LogProb, first[i].Top, want, top)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// held runs a loop that takes one step of the first request, and goes on when
// until says so: a loop that runs freely may be done before anybody cancels.
func held(e *Engine, until func() <-chan struct{}) {
	go func() {
		<-e.loop.inbox.wake
		e.accept()
		e.advance()
		<-until()
		e.run()
	}()
}

// reclaimed reports what is held when nothing runs.
func reclaimed(t *testing.T, e *Engine) {
	t.Helper()
	err := e.exclusive(context.Background(), func() error { return balanced(e) })
	if s := e.Stats(); err != nil || s.CacheUsage != 0 || s.Running+s.Waiting != 0 {
		t.Errorf("%+v, %v; nothing runs", s, err)
	}
}

// Leaving the iteration and cancelling a context free the sequence; others go on.
func TestCancellation(t *testing.T) {
	e := idle(t, testmodel.Family("llama"), Options{Threads: 1})
	defer e.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	held(e, ctx.Done)
	n := 0
	for _, err := range e.Generate(ctx, Request{Prompt: prompt(1, 100), Params: greedy(250)}) {
		if n++; n == 1 {
			cancel()
		}
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
			break
		}
	}
	if n >= 250 {
		t.Error("the cancelled request ran to its end")
	}
	for range e.Generate(context.Background(), Request{Prompt: prompt(1, 200), Params: greedy(250)}) {
		break
	}
	generate(t, e, Request{Prompt: prompt(1, 3), Params: greedy(3)})
	reclaimed(t, e)
}

// Whoever cancels does not wait for what the engine is busy with: here a loop
// that takes one step and is then busy.
func TestCancellationDoesNotWaitForTheLoop(t *testing.T) {
	e := idle(t, testmodel.Family("llama"), Options{Threads: 1})
	defer e.Close()
	release := make(chan struct{})
	held(e, func() <-chan struct{} { return release })
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var err error
	n := 0
	for _, err = range e.Generate(ctx, Request{Prompt: prompt(1, 9), Params: greedy(400)}) {
		n++
		cancel()
	}
	if n != 2 || !errors.Is(err, context.Canceled) {
		t.Errorf("after %d tokens: %v, want %v after one", n-1, err, context.Canceled)
	}
	close(release)
}

// Close ends what is running: here a loop that takes one step and goes on when
// the engine is being closed.
func TestCloseEndsRequests(t *testing.T) {
	e := idle(t, testmodel.Family("llama"), Options{Threads: 1})
	held(e, func() <-chan struct{} { return e.loop.quit })
	var err error
	n := 0
	for _, err = range e.Generate(context.Background(), Request{Prompt: prompt(1, 4), Params: greedy(400)}) {
		if n++; n == 1 {
			go e.Close()
		}
	}
	if n != 2 || !errors.Is(err, ErrClosed) {
		t.Errorf("after %d tokens: %v, want ErrClosed after one", n-1, err)
	}
	<-e.loop.done
	if _, err := collect(e, context.Background(), Request{Prompt: prompt(1, 4), Params: greedy(4)}); !errors.Is(err, ErrClosed) {
		t.Errorf("a request after Close: %v, want ErrClosed", err)
	}
	if _, err := e.Embed(context.Background(), prompt(1, 4), MeanPooling); !errors.Is(err, ErrClosed) {
		t.Errorf("an embedding after Close: %v, want ErrClosed", err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	if n := e.arena.Bytes(); n != 0 {
		t.Errorf("%d bytes of weights are left", n)
	}
}

// Close ends a job between two of its chunks.
func TestCloseEndsScore(t *testing.T) {
	e, err := Open(context.Background(), testmodel.Safetensors(t, testmodel.Family("llama")), Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	err = e.Score(context.Background(), prompt(1, 400), 0, 4, func(int, []float32) error {
		if rows++; rows == 1 {
			go e.Close()
			<-e.loop.quit
		}
		return nil
	})
	if rows != 4 || !errors.Is(err, ErrClosed) {
		t.Errorf("%d rows, %v; want the 4 of the first chunk and ErrClosed", rows, err)
	}
}

func TestRequestsAreChecked(t *testing.T) {
	e := open(t, "llama", Options{Threads: 1, MaxModelLen: 32})
	bad := greedy(1)
	bad.TopP = float32(math.NaN())
	for _, tc := range []struct {
		name string
		r    Request
		want string
	}{
		{"empty", Request{Params: greedy(1)}, "prompt is empty"},
		{"too long", Request{Prompt: prompt(1, 32), Params: greedy(1)}, "32 tokens"},
		{"negative id", Request{Prompt: []int32{-1}, Params: greedy(1)}, "prompt token 0 is -1"},
		{"id beyond the vocabulary", Request{Prompt: []int32{5, 1 << 20}, Params: greedy(1)}, "prompt token 1 is 1048576"},
		{"parameters", Request{Prompt: []int32{1}, Params: bad}, "top_p is NaN"},
	} {
		_, err := collect(e, context.Background(), tc.r)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want an error with %q", tc.name, err, tc.want)
		}
	}
}

func TestEmbed(t *testing.T) {
	e := open(t, "qwen3", Options{Threads: 1})
	ctx := context.Background()
	tokens := prompt(4, 70)
	mean, err := e.Embed(ctx, tokens, MeanPooling)
	if err != nil {
		t.Fatal(err)
	}
	last, err := e.Embed(ctx, tokens, LastPooling)
	if err != nil {
		t.Fatal(err)
	}
	one, err := e.Embed(ctx, tokens[:1], MeanPooling)
	if err != nil {
		t.Fatal(err)
	}
	oneLast, err := e.Embed(ctx, tokens[:1], LastPooling)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range [][]float32{mean, last, one} {
		var sum float64
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		if math.Abs(sum-1) > 1e-5 {
			t.Errorf("length %v, want 1", math.Sqrt(sum))
		}
	}
	if slices.Equal(mean, last) {
		t.Error("mean and last pooling of 70 tokens are the same")
	}
	if !slices.Equal(one, oneLast) {
		t.Error("mean and last pooling of one token differ")
	}
	if _, err := e.Embed(ctx, tokens, "max"); err == nil {
		t.Error("pooling max was accepted")
	}
}

func TestOpenRefusesOptions(t *testing.T) {
	dir := testmodel.Safetensors(t, testmodel.Family("llama"))
	for _, o := range []Options{{DType: "int4"}, {KVCacheDType: "q3"}, {MaxModelLen: -1}, {MaxModelLen: 1 << 30}, {Threads: 1 << 40}, {MLA: "both"}, {MLA: "expanded"}, {RoundCache: true}} {
		if e, err := Open(context.Background(), dir, o); err == nil {
			e.Close()
			t.Errorf("%+v was accepted", o)
		}
	}
}
