package spec

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// tiny opens a tiny model to speculate with, and counts engines.
func tiny(t *testing.T, opened *[]engine.Speculation) func(context.Context, engine.Speculation) (*engine.Engine, error) {
	path := testmodel.GGUF(t, testmodel.Family("qwen3"))
	return func(ctx context.Context, s engine.Speculation) (*engine.Engine, error) {
		*opened = append(*opened, s)
		return engine.Open(ctx, path, engine.Options{Threads: 2, DType: "float32", Speculation: s})
	}
}

func words() Set {
	return Set{Name: "words", Prompts: []Prompt{
		{Text: strings.Repeat("the cat and the dog ", 4)}, {Text: "one two one two one two one"}, {Text: strings.Repeat("too long ", 600)},
	}}
}

// All variants take turns on all cells, with the same answers, and are counted.
func TestRun(t *testing.T) {
	var opened []engine.Speculation
	steps, total := 0, 0
	o := Options{
		Open: tiny(t, &opened), Methods: []Method{{"ngram", engine.Speculation{Method: "ngram"}}}, Fixed: []int{1, 3},
		Sets: []Set{words()}, Concurrency: []int{1, 5}, Requests: 2, MaxTokens: 24, IgnoreEOS: true, Runs: 2,
		Progress: func(done, of int) {
			if steps++; done != steps {
				t.Errorf("run %d is called %d", steps, done)
			}
			total = of
		},
	}
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	// Two numbers of requests, a round that does not count and two that do, four variants.
	if steps != total || total != 2*3*4 {
		t.Errorf("%d runs of %d, want 24", steps, total)
	}
	if len(opened) != 2 || opened[0].Fixed || !opened[1].Fixed || opened[1].Tokens != 3 {
		t.Errorf("opened %+v, want one engine that adapts and one of 3 fixed tokens", opened)
	}
	if len(r.Sets) != 1 || r.Sets[0].Prompts != 2 || r.Sets[0].Of != 3 || r.Threads != 2 || r.CPU == "" || r.PromptsTimed {
		t.Errorf("%+v, want 2 of 3 prompts: one leaves no room", r)
	}
	var names []string
	for i, row := range r.Rows {
		names = append(names, row.Name())
		if row.Concurrency != []int{1, 1, 1, 5, 5, 5}[i] || row.Differ == nil || *row.Differ != 0 {
			t.Errorf("row %d: %d at a time, differing %v", i, row.Concurrency, row.Differ)
		}
		if len(row.Samples) != 2 || len(row.PlainSamples) != 2 || !(row.TokS > 0 && row.Plain > 0 && row.Ratio > 0) {
			t.Errorf("row %d: %+v, want two rounds of some speed", i, row)
		}
		if row.Gamma > 0 && (row.Drafted == 0 || len(row.Acceptance) > row.Gamma || row.Tau < 1 || row.Tau > float64(1+row.Gamma) || row.TokensPerStep < 1) {
			t.Errorf("row %d: γ %d, %d drafted, acceptance %v, τ %v, %v a step", i, row.Gamma, row.Drafted, row.Acceptance, row.Tau, row.TokensPerStep)
		}
	}
	if want := []string{"ngram", "ngram, γ = 1", "ngram, γ = 3"}; !slices.Equal(names, append(want, want...)) {
		t.Errorf("rows %v", names)
	}
}

// Simulated acceptance comes out as it was put in, and answers may differ.
func TestRunSimulated(t *testing.T) {
	var opened []engine.Speculation
	o := Options{
		Open: tiny(t, &opened), Methods: []Method{{"simulated", engine.Speculation{Simulate: []float64{1, 1, 0}, Fixed: true}}},
		Sets: []Set{words()}, Concurrency: []int{1}, Requests: 2, MaxTokens: 25, IgnoreEOS: true, Runs: 1,
	}
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	row := r.Rows[0]
	if r.Simulated == nil || row.Differ != nil {
		t.Errorf("%+v, want it to be marked as simulated", r)
	}
	// 24 tokens after the first, three a step.
	if row.Tau != 3 || row.TokensPerStep != 3 || !slices.Equal(row.Acceptance, []float64{1, 1, 0}) {
		t.Errorf("τ %v, %v a step, acceptance %v, want 3 tokens a step", row.Tau, row.TokensPerStep, row.Acceptance)
	}
}

// Runs ask the same, and the first requests end one after another. What is learned in one is not known in another, nor from one
// repetition of a prompt to the next; what drafters have seen and have not is apart.
func TestRequests(t *testing.T) {
	b := &measurement{Options: Options{Requests: 2, MaxTokens: 9, Temperature: 0.5, Seed: 7}}
	for _, c := range []struct {
		method      string
		speculation engine.RequestSpeculation
		want        map[string]int
	}{
		{"suffix", engine.RequestSpeculation{Tokens: 3}, map[string]int{
			"bench-spec-0-0": 2, "bench-spec-0-1": 2, "bench-spec-0-2": 2, "bench-spec-0-3": 2, "bench-spec-0-4": 2,
			"bench-spec-1-0": 2, "bench-spec-1-1": 2, "bench-spec-1-2": 2, "bench-spec-1-3": 2, "bench-spec-1-4": 2,
		}},
		{"auto", engine.RequestSpeculation{Off: true}, map[string]int{"bench-spec-plain": 20}},
		{"draft_model", engine.RequestSpeculation{}, map[string]int{"bench-spec": 20}},
	} {
		cell := &cell{method: &Method{Speculation: engine.Speculation{Method: c.method}}, asked: [][]int32{{1}, {2}}, concurrency: 5}
		v := &variant{speculation: c.speculation}
		got := map[string]int{}
		for b.runs = range 2 {
			for i, r := range b.requests(cell, v) {
				got[r.Namespace]++
				most := []int{1, 3, 5, 7, 9, 9, 9, 9, 9, 9}[i]
				if r.Prompt[0] != int32(1+i%2) || r.Params.Seed != uint64(7+i) || r.Params.MaxTokens != most || r.Params.Temperature != 0.5 || *r.Speculation != c.speculation {
					t.Errorf("%s, run %d, request %d: %+v", c.method, b.runs, i, r)
				}
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: namespaces (-want +got):\n%s", c.method, diff)
		}
	}
}

// Drawn answers too are the same with drafts.
func TestRunDrawn(t *testing.T) {
	var opened []engine.Speculation
	o := Options{
		Open: tiny(t, &opened), Methods: []Method{{"suffix", engine.Speculation{Method: "suffix", Fixed: true}}},
		Sets: []Set{words()}, Concurrency: []int{3}, Requests: 4, MaxTokens: 24, Temperature: 0.5, Seed: 7, IgnoreEOS: true, Runs: 1,
	}
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if row := r.Rows[0]; len(r.Rows) != 1 || row.Differ == nil || *row.Differ != 0 || r.Retractions != 0 {
		t.Errorf("%+v, want one row and no answer that differs", r)
	}
}

func TestCheck(t *testing.T) {
	valid := Options{
		Methods: []Method{{"ngram", engine.Speculation{Method: "ngram"}}}, Sets: []Set{words()}, Concurrency: []int{1}, Requests: 1, MaxTokens: 2, Runs: 1,
	}
	if err := valid.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Options){
		"no method":                        func(o *Options) { o.Methods = nil },
		"no prompts":                       func(o *Options) { o.Sets = nil },
		"concurrency [1 0]":                func(o *Options) { o.Concurrency = []int{1, 0} },
		"concurrency []":                   func(o *Options) { o.Concurrency = nil },
		"0 runs":                           func(o *Options) { o.Runs = 0 },
		"for 1 tokens":                     func(o *Options) { o.MaxTokens = 1 },
		"0 requests":                       func(o *Options) { o.Requests = 0 },
		"fixed number of drafted tokens 0": func(o *Options) { o.Fixed = []int{0} },
		"concurrency 4 is to be measured":  func(o *Options) { o.Concurrency = []int{4, 1, 4} },
		"3 drafted tokens are to be":       func(o *Options) { o.Fixed = []int{3, 3} },
		"method ngram is to be measured":   func(o *Options) { o.Methods = append(o.Methods, o.Methods...) },
		"configured not to adapt": func(o *Options) {
			o.Fixed, o.Methods = []int{1}, []Method{{"ngram", engine.Speculation{Method: "ngram", Fixed: true}}}
		},
	} {
		o := valid
		change(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// A model too small for the prompts is said to be, and a run can be interrupted.
func TestRunErrors(t *testing.T) {
	var opened []engine.Speculation
	o := Options{
		Open: tiny(t, &opened), Methods: []Method{{"ngram", engine.Speculation{Method: "ngram"}}},
		Sets: []Set{words()}, Concurrency: []int{1}, Requests: 1, MaxTokens: 510, Runs: 1,
	}
	const want = "method ngram: prompts words: none leaves room for 510 tokens in the model's 512"
	if _, err := Run(context.Background(), o); err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	o.MaxTokens = 16
	ctx, cancel := context.WithCancel(context.Background())
	o.Progress = func(int, int) { cancel() }
	if _, err := Run(ctx, o); err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("error %v, want that it was interrupted", err)
	}
}

// Answers of which none begins have no speed.
func TestAnswersThatDoNotBegin(t *testing.T) {
	var opened []engine.Speculation
	e, err := tiny(t, &opened)(context.Background(), engine.Speculation{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r := engine.Request{Prompt: []int32{1, 2, 3}, Params: sample.Default()}
	r.Params.MaxTokens = 2
	const want = "only 1 requests of 1 had an answer that begins: expected 2 at least"
	if _, err := answer(context.Background(), e, []engine.Request{r}, 2); err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}
