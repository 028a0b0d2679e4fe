package engine

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/sample"
)

// A forest grows random requests whose prompts begin alike, as those of users
// do: once more the same, a conversation that goes on, the same beginning. Each
// request is run alone when it is new.
type forest struct {
	t       *testing.T
	rnd     *rand.Rand
	subject subject
	alone   *Engine
	grown   []grown
	known   map[string]outcome // by request, but for what concerns its place among others
}

// A grown request with what it gets alone.
type grown struct {
	Request
	outcome
}

func (g *grown) describe() string {
	r := g.Request
	r.Prompt = nil
	return fmt.Sprintf("request %+v\nof %d tokens %v", r, len(g.Prompt), g.Prompt)
}

// newForest opens an engine that shares nothing and computes prompts in as few
// pieces as there can be.
func newForest(t *testing.T, s subject) *forest {
	t.Helper()
	o := s.base
	o.NoPrefixCache, o.MaxBatchedTokens = true, o.MaxModelLen
	e, err := Open(context.Background(), s.path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return &forest{t: t, rnd: rand.New(rand.NewPCG(*metamorphicSeed, 0)), subject: s, alone: e, known: map[string]outcome{}}
}

// run is what r gets alone.
func (f *forest) run(r Request) outcome {
	key := fmt.Sprintf("%+v", r)
	if o, ok := f.known[key]; ok {
		return o
	}
	g, err := f.alone.Submit(context.Background(), r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer g.Close()
	var o outcome
	for err == nil {
		var tokens []Token
		tokens, err = g.Next(context.Background())
		o.add(tokens)
	}
	o.prompt, o.pooled = g.Prompt(), g.Pooled()
	if err != io.EOF {
		f.t.Fatalf("alone: %v\n%s", err, (&grown{Request: r}).describe())
	}
	f.known[key] = o
	return o
}

// visits grows n requests and says when they come and leave. If they press,
// most come at once, and want another page soon.
func (f *forest) visits(n int, press bool) []visit {
	visits := make([]visit, n)
	together := press || f.oneIn(2)
	arrival := 0
	for i := range visits {
		v := visit{grown: f.grow(press && !f.oneIn(5)), arrival: arrival, leave: -1, gone: -1}
		if f.oneIn(4) {
			v.Speculation = &RequestSpeculation{Off: f.oneIn(3), Tokens: f.rnd.IntN(4)}
		}
		v.Key, v.Priority, v.Namespace = pick(f.rnd, "", "a", "b"), f.rnd.IntN(50)-25, pick(f.rnd, "", "", "", "other")
		switch f.rnd.IntN(12) {
		case 0:
			v.leave = f.rnd.IntN(f.subject.output)
		case 1:
			v.gone = arrival + f.rnd.IntN(2*f.subject.output)
		}
		visits[i] = v
		if !together || f.oneIn(4) {
			arrival += f.rnd.IntN(2 * f.subject.output)
		}
	}
	return visits
}

func (f *forest) grow(press bool) grown {
	r := f.request(press)
	if len(f.grown) > 0 && !press && f.oneIn(8) {
		r = f.recent().Request
	}
	g := grown{r, f.run(r)}
	if r.Choices > 1 {
		// That choices are company for each other changes nothing, either.
		r.Choices = 1
		first := f.run(r)
		if diff := first.differs(&outcome{g.choices[:1], g.prompt, g.pooled}); diff != "" {
			f.t.Fatalf("one choice and the first of %d: %s\n%s", g.Choices, diff, g.describe())
		}
	}
	f.grown = append(f.grown, g)
	return g
}

// recent is a request of those that were grown last.
func (f *forest) recent() *grown {
	n := len(f.grown)
	return &f.grown[n-1-f.rnd.IntN(min(n, max(f.subject.requests, 2)))]
}

// prompt grows a prompt from the root or from another one.
func (f *forest) prompt() []int32 {
	most, page := f.subject.prompt, f.alone.cache.PageSize()
	var p []int32
	if len(f.grown) > 0 && !f.oneIn(6) {
		from := f.recent()
		p = slices.Clone(from.Prompt)
		switch f.rnd.IntN(5) {
		case 0: // once more
			return p
		case 1, 2: // the conversation goes on
			if len(from.choices) > 0 {
				p = append(p, ids(from.choices[0])...)
			}
		case 3: // goes another way from somewhere on
			p = p[:f.rnd.IntN(len(p))]
		case 4: // from the end of a page on
			p = p[:len(p)/page*page]
		}
	}
	n := 1 + f.rnd.IntN(most)
	pages := (n + page - 1) / page * page
	switch f.rnd.IntN(6) {
	case 0: // ends at the end of a page, or a token before or behind it
		n = pages + f.rnd.IntN(3) - 1
	case 1, 2: // the answer goes on behind it
		n = pages - f.rnd.IntN(f.subject.output)
	}
	n = max(min(n, most), 1)
	if f.oneIn(30) { // few, since this takes time: the model's limit ends the answer
		n = f.subject.base.MaxModelLen - 1 - f.rnd.IntN(f.subject.output)
		most = n
	}
	return f.extend(p, n)[:min(max(n, len(p)), most)]
}

// extend appends random tokens until there are n.
func (f *forest) extend(p []int32, n int) []int32 {
	for len(p) < n {
		p = append(p, int32(f.rnd.IntN(f.alone.vocab())))
	}
	return p
}

// oneIn is true once in so many times.
func (f *forest) oneIn(n int) bool { return f.rnd.IntN(n) == 0 }

func (f *forest) request(press bool) Request {
	r := Request{Prompt: f.prompt()}
	if press { // in the last places of a page
		page := f.alone.cache.PageSize()
		n := (1+f.rnd.IntN(f.subject.prompt/page))*page - f.rnd.IntN(min(page, f.subject.output-1))
		r.Prompt = f.extend(r.Prompt, n)[:n]
	}
	p := sample.Default()
	p.LogProbs = pick(f.rnd, -1, 0, 3)
	switch {
	case f.oneIn(12):
		p.MaxTokens, r.PromptOnly, r.Pooling = 1, true, pick(f.rnd, MeanPooling, LastPooling)
		r.Params = p
		return r
	case f.oneIn(12):
		r.ScorePrompt, p.LogProbs = true, pick(f.rnd, 0, 2)
	}
	if f.oneIn(5) {
		r.Choices = 2 + f.rnd.IntN(3)
	}
	if f.oneIn(12) {
		r.Pooling = pick(f.rnd, MeanPooling, LastPooling)
	}
	if p.MaxTokens = 1 + f.rnd.IntN(f.subject.output); f.oneIn(3) {
		p.MaxTokens = f.subject.output
	}
	p.Seed, p.IgnoreEOS = uint64(f.rnd.IntN(4)), f.oneIn(2)
	if p.Temperature = 0.5 + f.rnd.Float32(); f.oneIn(3) {
		p.Temperature = 0
	}
	for _, set := range []func(){
		func() { p.TopK = 1 + f.rnd.IntN(50) },
		func() { p.TopP = 0.5 + f.rnd.Float32()/2 },
		func() { p.MinP = f.rnd.Float32() / 10 },
		func() { p.TypicalP = 0.5 + f.rnd.Float32()/2 },
		func() { p.RepetitionPenalty = 0.8 + f.rnd.Float32() },
		func() { p.PresencePenalty = 2*f.rnd.Float32() - 1 },
		func() { p.FrequencyPenalty = 2*f.rnd.Float32() - 1 },
		func() { p.LogitBias = map[int32]float32{int32(f.rnd.IntN(f.alone.vocab())): 10*f.rnd.Float32() - 5} },
		func() { p.MinTokens = f.rnd.IntN(p.MaxTokens + 1) },
		func() { p.StopIDs = f.stopIDs() },
		func() { p.ProcessedLogProbs = true },
	} {
		if f.oneIn(6) {
			set()
		}
	}
	if press {
		p.MaxTokens, p.IgnoreEOS, p.StopIDs = f.subject.output, true, nil
	}
	r.Params = p
	if f.alone.tokenizer != nil && !press && f.oneIn(4) {
		f.stop(&r)
	}
	return r
}

// stopIDs are some tokens that were generated elsewhere.
func (f *forest) stopIDs() (stop []int32) {
	for range min(len(f.grown), 3) {
		if from := f.recent(); len(from.choices) > 0 {
			stop = append(stop, pick(f.rnd, ids(from.choices[0])...))
		}
	}
	return stop
}

// stop gives r a stop string that occurs in what it would generate.
func (f *forest) stop(r *Request) {
	o := f.run(*r)
	said := []rune(text(o.choices[0]))
	if n := len(said); n > 0 {
		from := f.rnd.IntN(n)
		r.Params.Stop = []string{"never said", string(said[from:min(n, from+1+f.rnd.IntN(3))])}
		r.Params.IncludeStop = f.oneIn(2)
	}
}

// options are random, but for what values depend on.
func (f *forest) options(dir string) Options {
	o, r := f.subject.base, f.rnd
	o.Threads = 1 + r.IntN(2)
	o.MaxBatchedTokens = 1 + r.IntN(pick(r, 8, 40, 160))
	o.MaxSeqs = 1 + r.IntN(min(o.MaxBatchedTokens, 12))
	if f.oneIn(2) {
		o.ChunkSize = 1 + r.IntN(o.MaxBatchedTokens)
	}
	if f.oneIn(2) {
		o.MaxPartial = 1 + r.IntN(o.MaxSeqs)
	}
	if f.oneIn(3) {
		o.MaxQueued = 1 + r.IntN(8)
	}
	o.SeparatePrefill = f.oneIn(3)
	o.Policy = pick(r, "", "fcfs", "lpm", "dfs-weight", "priority")
	o.Conservativeness = pick(r, 0, 0.1, 0.5, 1.4)
	o.ITLTarget = pick(r, 0, time.Nanosecond, time.Millisecond, time.Hour)
	o.Speculation = f.speculation()
	o.PageSize = pick(r, 0, 1, 2, 3) * f.alone.cache.PageSize()
	o.KVCacheMemory = f.memory(pick(r, 1, 8, 16, 48), o)
	o.NoPrefixCache = f.oneIn(4)
	o.EvictionPolicy = pick(r, "", "lru", "lfu", "fifo")
	if f.oneIn(3) && !o.NoPrefixCache {
		o.PrefixCacheDir = dir
	}
	return o
}

// speculation drafts in some way, or not at all.
func (f *forest) speculation() Speculation {
	r, model := f.rnd, f.alone.model
	o := Speculation{Method: pick(r, "", ngram, suffix, draftModel, draftModel, draftModel, auto)}
	if model.Config().MTPLayers > 0 && f.oneIn(2) {
		o.Method = mtp
	}
	if o.Method == "" {
		return o
	}
	if o.Tokens = r.IntN(9); f.oneIn(20) {
		o.Tokens = mostDrafted
	}
	if o.Method == draftModel || o.Method == auto && f.oneIn(2) {
		o.Model = pick(r, "self:q4", "self:layers=0", "self:layers=1")
		if !rings(model.Cache()) {
			o.Model = pick(r, o.Model, f.subject.path)
		}
		if model.Config().Trees() == nil {
			o.TopK, o.Tree = pick(r, 0, 0, 2, 3), pick(r, "", "", staticTree)
		}
	}
	o.Fixed, o.Async = !f.oneIn(3), f.oneIn(4)
	return o
}

// press leaves o little memory and has it promised to many: they retract each
// other.
func (f *forest) press(o *Options) {
	o.MaxBatchedTokens, o.MaxSeqs, o.MaxPartial, o.MaxQueued = 64+f.rnd.IntN(64), 16, 4, 0
	o.Conservativeness, o.SeparatePrefill, o.ITLTarget = 0.01, false, time.Hour
	o.ChunkSize, o.PageSize = pick(f.rnd, 0, 7, 31), 0
	o.KVCacheMemory = f.memory(8+f.rnd.IntN(4), *o)
}

// memory is how many bytes a cache of so many pages takes, or of as many as the
// longest sequence needs.
func (f *forest) memory(pages int, o Options) int64 {
	layers, dtype := f.alone.model.Cache(), f.alone.cache.DType()
	if o.Speculation.Model == f.subject.path {
		layers = slices.Concat(layers, layers)
	}
	page := cmp.Or(o.PageSize, f.alone.cache.PageSize())
	tokens := max(pages*page, o.MaxModelLen)
	budget := kvcache.Budget{Sequences: o.MaxSeqs}
	// The least budget that has them, by halving: what a page takes is the pool's
	// business.
	low, high := int64(0), int64(1)<<40
	for low+1 < high {
		budget.Bytes = (low + high) / 2
		if n, err := budget.Tokens(layers, dtype, page); err == nil && n >= tokens {
			high = budget.Bytes
		} else {
			low = budget.Bytes
		}
	}
	return high
}

// rings reports whether layers keep rings: a draft model cannot.
func rings(layers []kvcache.LayerSpec) bool {
	return slices.ContainsFunc(layers, func(l kvcache.LayerSpec) bool {
		return slices.ContainsFunc(l, func(s kvcache.Store) bool { return s.Ring > 0 })
	})
}
