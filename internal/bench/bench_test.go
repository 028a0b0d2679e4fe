package bench

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/exec"
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/testmodel"
)

func open(t *testing.T, s testmodel.Spec) *engine.Engine {
	t.Helper()
	e, err := engine.Open(context.Background(), testmodel.GGUF(t, s), engine.Options{Threads: 2, DType: "float32"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// ticks is a clock that is read a millisecond later each time, so that what
// is timed takes that long.
func ticks() func() time.Time {
	now := time.Unix(0, 0)
	return func() time.Time {
		now = now.Add(time.Millisecond)
		return now
	}
}

// free checks that nothing is left in the cache.
func free(t *testing.T, e *engine.Engine) {
	t.Helper()
	err := e.Exclusive(context.Background(), func(_ *exec.Runner, cache *kvcache.Pool) error {
		if n := cache.Free() * cache.PageSize(); n != cache.Capacity() {
			t.Errorf("%d of %d positions of the cache are free", n, cache.Capacity())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestRun(t *testing.T) {
	s := testmodel.Family("llama")
	e := open(t, s)
	var steps, total, probes int
	r, err := Run(context.Background(), e, Options{
		Prefill: []int{40, 3}, Decode: 10, Contexts: []int{0, 100}, Batches: []int{1, 2}, Verify: []int{4, 1, 2}, Runs: 3,
		Progress: func(done, of int) {
			if steps++; done != steps {
				t.Errorf("step %d is called %d", steps, done)
			}
			total = of
		},
		now:   ticks(),
		probe: func() float64 { probes++; return 0.5 },
	})
	if err != nil {
		t.Fatal(err)
	}

	weights, kv := int(e.WeightBytes(1)), s.KVHeads*s.HeadDim
	token := 4 * s.Layers * 2 * kv
	// 10 tokens in a millisecond are 10000 a second; half of them precede an average step.
	limit := func(context, batch int) float64 {
		return float64(weights+batch*(context+5)*token) * 10000 / 0.5e9
	}
	want := &Report{
		Prefill: []Prefill{{Tokens: 40, TokS: 40e3, Best: 40e3}, {Tokens: 3, TokS: 3e3, Best: 3e3}},
		Decode: []Decode{
			{Context: 0, TokS: 10e3, Best: 10e3, Probe: 0.5, OfLimit: limit(0, 1)},
			{Context: 0, Batch: 2, TokS: 20e3, Best: 20e3, Probe: 0.5, OfLimit: limit(0, 2)},
			{Context: 100, TokS: 10e3, Best: 10e3, Probe: 0.5, OfLimit: limit(100, 1)},
			{Context: 100, Batch: 2, TokS: 20e3, Best: 20e3, Probe: 0.5, OfLimit: limit(100, 2)},
		},
		Verify: []Verify{
			{Context: 0, K: 1, MS: 1, Best: 1, Ratio: 1},
			{Context: 0, K: 4, MS: 1, Best: 1, Ratio: 1},
			{Context: 0, K: 2, MS: 1, Best: 1, Ratio: 1},
			{Context: 100, K: 1, MS: 1, Best: 1, Ratio: 1},
			{Context: 100, K: 4, MS: 1, Best: 1, Ratio: 1},
			{Context: 100, K: 2, MS: 1, Best: 1, Ratio: 1},
		},
		Threads: 2, Runs: 3, WeightsBytes: int64(weights), KVBytes: int64(token),
	}
	if diff := cmp.Diff(want, r, cmpopts.EquateApprox(1e-9, 1e-9), cmpopts.IgnoreFields(Report{}, "CPU")); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	// Two contexts, and eight measurements that ran once before their three runs.
	if r.CPU == "" {
		t.Error("the report names no processor")
	}
	if steps != total || total != 2+8*4 {
		t.Errorf("%d steps of %d, want 34", steps, total)
	}
	if probes != 4*3 {
		t.Errorf("memory was probed %d times, want 12: beside every run of decoding", probes)
	}
	free(t, e)
}

// What is not asked for is empty rather than missing.
func TestRunNothing(t *testing.T) {
	e := open(t, testmodel.Family("qwen3"))
	r, err := Run(context.Background(), e, Options{Contexts: []int{0}, Batches: []int{1}, Runs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Prefill == nil || r.Decode == nil || r.Verify == nil || len(r.Prefill)+len(r.Decode)+len(r.Verify) != 0 {
		t.Errorf("%+v, want empty lists", r)
	}
}

func TestRunErrors(t *testing.T) {
	e := open(t, testmodel.Family("llama")) // of 512 tokens
	valid := Options{Prefill: []int{8}, Decode: 8, Contexts: []int{0}, Batches: []int{1}, Verify: []int{1, 16}, Runs: 1}
	for _, c := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"prompt too long", func(o *Options) { o.Prefill = []int{8, 513} }, "prompt of 513: expected 1 to 512"},
		{"no room to decode", func(o *Options) { o.Decode, o.Contexts = 32, []int{481} }, "context of 481: expected 0 to 480"},
		{"no room to verify", func(o *Options) { o.Contexts = []int{497} }, "context of 497: expected 0 to 496"},
		{"negative context", func(o *Options) { o.Contexts = []int{-1} }, "context of -1"},
		{"empty batch", func(o *Options) { o.Batches = []int{0} }, "batch of 0"},
		{"no rows", func(o *Options) { o.Verify = []int{0} }, "forward to verify of 0"},
		{"no runs", func(o *Options) { o.Runs = 0 }, "0 runs"},
		{"negative decode", func(o *Options) { o.Decode = -1 }, "-1 tokens"},
		{"contexts too long together", func(o *Options) { o.Contexts = []int{250, 250} }, "contexts and prompt take 608 tokens together, and the cache holds 512"},
		{"batch too large", func(o *Options) { o.Batches = []int{1, 20} }, "take 672 tokens together"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := valid
			o.now, o.probe = ticks(), func() float64 { return 1 }
			c.change(&o)
			_, err := Run(context.Background(), e, o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// What a token takes of the cache is what show says, and a sequence takes whole
// pages: of 128 tokens, where index keys lie in blocks of entries of four.
func TestRunOfCompressedEntries(t *testing.T) {
	e := open(t, testmodel.Family("deepseek_v4")) // of 512 tokens
	if got := e.CachePageSize(); got != 128 {
		t.Fatalf("pages of %d tokens, want 128", got)
	}
	o := Options{Prefill: []int{8}, Contexts: []int{0}, Batches: []int{1}, Verify: []int{1}, Runs: 1, now: ticks()}
	r, err := Run(context.Background(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(e.CacheBytesPerToken()); r.KVBytes != want || want%int64(e.Config().Layers) == 0 {
		t.Errorf("%d bytes a token, want %d, no multiple of %d layers", r.KVBytes, want, e.Config().Layers)
	}
	o.Contexts = []int{0, 100, 200, 10}
	const want = "contexts and prompt take 768 tokens together, and the cache holds 512"
	if _, err := Run(context.Background(), e, o); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	free(t, e)
}

// Whenever a measurement is interrupted, it ends and leaves nothing behind.
func TestRunInterrupted(t *testing.T) {
	e := open(t, testmodel.Family("llama"))
	for _, at := range []int{1, 2, 3, 5} {
		ctx, cancel := context.WithCancel(context.Background())
		_, err := Run(ctx, e, Options{
			Prefill: []int{16}, Decode: 2, Contexts: []int{40}, Batches: []int{3}, Verify: []int{2}, Runs: 2,
			Progress: func(done, _ int) {
				if done == at {
					cancel()
				}
			},
			now: ticks(), probe: func() float64 { return 1 },
		})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted after step %d: %v", at, err)
		}
		free(t, e)
	}
}

// A layer with a window reads no more of the cache than it sees.
func TestTrafficOfWindows(t *testing.T) {
	s := testmodel.Family("gemma3_text") // every third of four layers sees all, others 20 tokens
	got := trafficOf(open(t, s))
	perLayer := int64(4 * 2 * s.KVHeads * s.HeadDim)
	for context, want := range map[int]int64{0: 0, 7: 4 * 7, 20: 4 * 20, 100: 3*20 + 100} {
		if b := got.cache(context); b != want*perLayer {
			t.Errorf("context %d: %d bytes, want %d of %d", context, b, want, perLayer)
		}
	}
}

func TestMemoryProbe(t *testing.T) {
	for _, threads := range []int{1, 3} {
		var arena kernel.Arena
		probe, err := newMemory(&arena, 1<<20, threads)
		if err != nil {
			t.Fatal(err)
		}
		if v := probe(); !(v > 0) {
			t.Errorf("%d threads: %v GB/s", threads, v)
		}
		arena.Free()
	}
	// Every word counts once.
	data := make([]byte, 1<<10)
	for i := 0; i < len(data); i += 8 {
		data[i] = 1
	}
	before := sink.Load()
	read(data)
	if got := sink.Load() - before; got != 128 {
		t.Errorf("%d words were read, want 128", got)
	}
}
