package draft

import (
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/exec"
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/spec"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// A world is a target and a draft model on one cache, and what an engine does
// with them.
type world struct {
	*testing.T
	pool          *kernel.Pool
	cache         *kvcache.Pool
	tree          *kvcache.Tree
	target, draft model.Model
	runner        *exec.Runner // of the target
	sampler       sample.Sampler
	last          uint64
}

// subject is the family that tests draft with, of that seed.
func subject(seed uint64) testmodel.Spec {
	s := testmodel.Family("llama")
	s.Seed = seed
	return s
}

func newWorld(t *testing.T, target, draft *testmodel.Model) *world {
	w := &world{T: t, pool: kernel.NewPool(1)}
	t.Cleanup(w.pool.Close)
	w.target, w.draft = w.load(target, kernel.Packer{}), w.load(draft, kernel.Packer{})
	var err error
	if w.cache, err = kvcache.NewPool(slices.Concat(w.target.Cache(), w.draft.Cache()), tensor.F32, 4096, 0); err != nil {
		t.Fatal(err)
	}
	if w.tree, err = kvcache.NewTree(w.cache, kvcache.TreeOptions{}); err != nil {
		t.Fatal(err)
	}
	w.runner = exec.NewRunner(w.target, w.pool, w.cache, 0)
	return w
}

// twins is a world whose draft model is the target.
func twins(t *testing.T) *world {
	return newWorld(t, testmodel.New(subject(1)), testmodel.New(subject(1)))
}

func (w *world) load(m *testmodel.Model, packer kernel.Packer) model.Model {
	w.Helper()
	dir := w.TempDir()
	if err := m.WriteSafetensors(dir); err != nil {
		w.Fatal(err)
	}
	return w.loadFrom(dir, packer)
}

func (w *world) loadFrom(path string, packer kernel.Packer) model.Model {
	w.Helper()
	c, err := checkpoint.Open(path)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { c.Close() })
	arena := new(kernel.Arena)
	w.Cleanup(func() { arena.Free() })
	packer.Pool, packer.Arena, packer.Exact = w.pool, arena, true
	m, err := model.Load(c, model.Options{Packing: nn.Packing{Packer: &packer}})
	if err != nil {
		w.Fatal(err)
	}
	return m
}

// drafter is one of the draft model.
func (w *world) drafter(o ModelOptions) *Model {
	w.Helper()
	if o.Model == nil {
		o.Model, o.First = w.draft, len(w.target.Cache())
	}
	o.Pool, o.Cache = w.pool, w.cache
	m, err := NewModel(o)
	if err != nil {
		w.Fatal(err)
	}
	return m
}

// A running sequence.
type running struct {
	Sequence
	computed int
}

// begin starts a sequence with what is cached of its prompt.
func (w *world) begin(p sample.Params, prompt []int32) *running {
	w.last++
	s := &running{Sequence: Sequence{ID: w.last, Tokens: slices.Clone(prompt), Prompt: len(prompt), Table: new(kvcache.Table)}}
	s.Row = sample.Row{Params: &p, History: sample.NewHistory(prompt), Vocab: testmodel.Tokens}
	s.computed = w.tree.Attach(s.Table, "", prompt[:len(prompt)-1])
	return s
}

// compute runs rows of the target and returns the logits after the last.
func (w *world) compute(s *running, rows int) []float32 {
	w.Helper()
	if err := w.cache.Grow(s.Table, s.computed+rows); err != nil {
		w.Fatal(err)
	}
	var step nn.Step
	step.Add(s.Table, s.computed, s.Tokens[s.computed:s.computed+rows])
	if err := w.runner.Run(&step, nil); err != nil {
		w.Fatal(err)
	}
	s.computed += rows
	return w.runner.Logits([]int{rows - 1})
}

// next samples the token after logits.
func (w *world) next(s *running, logits []float32) {
	w.Helper()
	s.Row.Position, s.Row.Generated = len(s.Tokens), len(s.Tokens)-s.Prompt
	r, err := w.sampler.Sample(slices.Clone(logits), &s.Row)
	if err != nil {
		w.Fatal(err)
	}
	s.Tokens = append(s.Tokens, r.Token)
	s.Row.History.Add(r.Token)
	s.Row.Position, s.Row.Generated = len(s.Tokens), len(s.Tokens)-s.Prompt
}

// observe tells a drafter of the rows from a position on.
func (w *world) observe(d Drafter, s *running, from int) {
	w.Helper()
	if d == nil {
		return
	}
	if err := d.Observe(w.runner, []Observed{{&s.Sequence, from, make([]int, s.computed-from)}}); err != nil {
		w.Fatal(err)
	}
}

// prefill computes the prompt in chunks, and gets the first token.
func (w *world) prefill(s *running, chunk int, d Drafter) {
	w.Helper()
	for s.computed < s.Prompt {
		from := s.computed
		logits := w.compute(s, min(chunk, s.Prompt-s.computed))
		if s.computed == s.Prompt {
			w.next(s, logits)
		}
		w.observe(d, s, from)
	}
}

// start is begin and prefill.
func (w *world) start(p sample.Params, prompt []int32, d Drafter) *running {
	w.Helper()
	s := w.begin(p, prompt)
	w.prefill(s, 16, d)
	return s
}

// ask asks for a draft of s.
func (w *world) ask(s *running, depth, nodes int) Ask {
	w.Helper()
	if err := w.cache.Grow(s.Table, len(s.Tokens)+nodes); err != nil {
		w.Fatal(err)
	}
	return Ask{Sequence: &s.Sequence, Depth: depth, Nodes: nodes, Draft: new(spec.Draft)}
}

// verify lets the target go on as far as a draft goes with it, and returns how
// many of its tokens were accepted.
func (w *world) verify(s *running, d *spec.Draft, drafter Drafter) (accepted int) {
	w.Helper()
	from := s.computed
	for row := 0; ; accepted++ {
		w.next(s, w.compute(s, 1))
		node := d.Child(row, s.Tokens[len(s.Tokens)-1])
		if node < 0 {
			break
		}
		row = node + 1
	}
	if err := w.cache.Rewind(s.Table, s.computed); err != nil {
		w.Fatal(err)
	}
	w.observe(drafter, s, from)
	return accepted
}

// propose is Propose of one sequence.
func (w *world) propose(d Drafter, s *running, depth, nodes int) *spec.Draft {
	w.Helper()
	a := w.ask(s, depth, nodes)
	propose(w.T, d, a)
	return a.Draft
}

// logits computes the draft model's logits after tokens, on their own.
func (w *world) logits(tokens []int32) []float32 {
	w.Helper()
	var table kvcache.Table
	defer w.cache.Release(&table)
	if err := w.cache.Grow(&table, len(tokens)); err != nil {
		w.Fatal(err)
	}
	var step nn.Step
	step.Add(&table, 0, tokens)
	runner := exec.NewRunner(w.draft, w.pool, w.cache, len(w.target.Cache()))
	if err := runner.Run(&step, nil); err != nil {
		w.Fatal(err)
	}
	return slices.Clone(runner.Logits([]int{len(tokens) - 1}))
}

// text is a prompt of that many tokens.
func text(n int, seed int32) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = (int32(i)*int32(i+7)*31 + seed*17) % int32(testmodel.Tokens)
	}
	return tokens
}

// heated are parameters that sample.
func heated(seed uint64) sample.Params {
	p := sample.Default()
	p.Seed = seed
	return p
}

func greedy() sample.Params {
	p := sample.Default()
	p.Temperature = 0
	return p
}
