package draft

import (
	"fmt"
	"math/rand/v2"
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

// mtpWorld is a model with modules of multi-token prediction, its sequences and
// the drafter under test.
type mtpWorld struct {
	*testing.T
	model   model.Model
	pool    *kernel.Pool
	cache   *kvcache.Pool
	runner  *exec.Runner // of the target
	step    nn.Step
	drafter Drafter
	random  *rand.Rand
	ids     uint64
}

func newMTPWorld(t *testing.T, family string, modules int) *mtpWorld {
	t.Helper()
	s := testmodel.Family(family)
	s.MTP = modules
	if family == "deepseek_v4" { // the modules read their window alone
		s.Compressed.Ratios = append(slices.Clone(s.Compressed.Ratios[:s.Layers]), make([]int, modules)...)
	}
	c, err := checkpoint.Open(testmodel.Safetensors(t, s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	pool, arena := kernel.NewPool(2), new(kernel.Arena)
	t.Cleanup(pool.Close)
	t.Cleanup(func() { arena.Free() })
	m, err := model.Load(c, model.Options{MTP: true, Packing: nn.Packing{Packer: &kernel.Packer{Pool: pool, Arena: arena}}})
	if err != nil {
		t.Fatal(err)
	}
	cache, err := kvcache.NewPool(m.Cache(), tensor.F32, 8192, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := &mtpWorld{T: t, model: m, pool: pool, cache: cache, random: rand.New(rand.NewPCG(1, 2))}
	w.runner = exec.NewRunner(m, pool, cache, 0)
	if w.drafter, err = NewMTP(m, pool, cache); err != nil {
		t.Fatal(err)
	}
	return w
}

// run computes the step with the target.
func (w *mtpWorld) run() {
	w.Helper()
	if err := w.runner.Run(&w.step, nil); err != nil {
		w.Fatal(err)
	}
}

// mtpText is a sequence that is served.
type mtpText struct {
	Sequence
	computed int
	draft    spec.Draft
}

// start begins a sequence with a random prompt.
func (w *mtpWorld) start(prompt int, change func(*sample.Params)) *mtpText {
	p := sample.Default()
	p.Temperature, p.Seed = 0, uint64(prompt)
	if change != nil {
		change(&p)
	}
	w.ids++
	x := &mtpText{Sequence: Sequence{ID: w.ids, Tokens: w.tokens(prompt), Prompt: prompt, Table: new(kvcache.Table)}}
	x.Row = sample.Row{Params: &p, Vocab: w.model.Config().Vocab, History: sample.NewHistory(x.Tokens)}
	return x
}

func (w *mtpWorld) tokens(n int) (tokens []int32) {
	for range n {
		tokens = append(tokens, w.random.Int32N(int32(w.model.Config().Vocab)))
	}
	return tokens
}

// grow gives the sequence memory for tokens.
func (w *mtpWorld) grow(x *mtpText, tokens int) {
	w.Helper()
	if err := w.cache.Grow(x.Table, tokens); err != nil {
		w.Fatal(err)
	}
}

// ask is a question for a draft of x.
func (x *mtpText) ask(depth int, drawn bool) Ask {
	x.Row.Position, x.Row.Generated = len(x.Tokens), len(x.Tokens)-x.Prompt
	return Ask{Sequence: &x.Sequence, Depth: depth, Nodes: depth, Drawn: drawn, Draft: &x.draft}
}

// serve computes one step: the next rows of prompts, rows at most of each, and
// the drafts of sequences that decode, of which accept(drafted) are accepted. A
// token that is none of the model's follows.
func (w *mtpWorld) serve(texts []*mtpText, rows int, accept func(drafted int) int) {
	w.Helper()
	w.step.Reset()
	for _, x := range texts {
		tokens := x.Tokens[x.computed:min(len(x.Tokens), x.computed+rows)]
		if x.computed+len(tokens) == len(x.Tokens) {
			tokens = slices.Concat(tokens, x.draft.Tokens)
		}
		w.grow(x, x.computed+len(tokens))
		w.step.Add(x.Table, x.computed, tokens)
	}
	w.run()
	var observed []Observed
	for i, x := range texts {
		span := w.step.Spans[i]
		n := span.To - span.From - len(x.draft.Tokens)
		from := x.computed
		if from+n == len(x.Tokens) {
			accepted := accept(len(x.draft.Tokens))
			next := slices.Concat(x.draft.Tokens[:accepted], w.tokens(1))
			x.Tokens = append(x.Tokens, next...)
			x.Row.History.Add(next...)
			n += accepted
		}
		x.draft.Reset()
		x.computed += n
		if err := w.cache.Rewind(x.Table, x.computed); err != nil {
			w.Fatal(err)
		}
		o := Observed{Sequence: &x.Sequence, From: from}
		for row := range n {
			o.Rows = append(o.Rows, span.From+row)
		}
		observed = append(observed, o)
	}
	if err := w.drafter.Observe(w.runner, observed); err != nil {
		w.Fatal(err)
	}
}

// prefill computes the prompts, rows at a time.
func (w *mtpWorld) prefill(texts []*mtpText, rows int) {
	w.Helper()
	for {
		left := slices.DeleteFunc(slices.Clone(texts), func(x *mtpText) bool { return x.computed >= x.Prompt })
		if len(left) == 0 {
			return
		}
		w.serve(left, rows, func(int) int { return 0 })
	}
}

// propose asks for drafts of all texts.
func (w *mtpWorld) propose(texts []*mtpText, depth int, drawn bool) {
	w.Helper()
	var asks []Ask
	for _, x := range texts {
		w.grow(x, x.computed+1+depth)
		asks = append(asks, x.ask(depth, drawn))
	}
	if err := w.drafter.Propose(asks, nil); err != nil {
		w.Fatal(err)
	}
}

// mtpRow is what the modules predict at a depth.
type mtpRow struct {
	token int32
	peak  float64
}

// expect drafts from scratch and by the paper: each module on the whole
// sequence, at one depth after another.
func (w *mtpWorld) expect(x *mtpText, depth int, drawn bool) (rows []mtpRow) {
	w.Helper()
	a := x.ask(depth, drawn)
	var sampler sample.Sampler
	tokens := slices.Clone(x.Tokens)
	n := len(tokens) - 1
	for d := 1; d <= depth; d++ {
		logits := w.predict(tokens, n, d)
		peak := 1 / kernel.ExpSum(logits, slices.Max(logits))
		row := a.Row
		row.Position, row.Generated = len(tokens), len(tokens)-x.Prompt
		if d > 1 {
			row.Allowed = nil
		}
		row.History = sample.NewHistory(x.Tokens[:x.Prompt])
		row.History.Add(tokens[x.Prompt:]...)
		dist, err := sampler.Dist(logits, &row)
		if err != nil {
			w.Fatal(err)
		}
		token := dist.Draw(row.Key().Noise(sample.Token))
		if drawn {
			var q, rest spec.Row
			q.Set(dist)
			token = spec.Siblings(nil, q, 1, spec.DraftNoise(a.Row.Key(), d), &rest)[0]
			if got := x.draft.Q[d-1]; !slices.Equal(got.W, q.W) || !slices.Equal(got.IDs, q.IDs) {
				w.Errorf("the draft of depth %d was drawn of another distribution", d)
			}
		}
		rows = append(rows, mtpRow{token, peak})
		tokens = append(tokens, token)
	}
	return rows
}

// predict returns the logits of depth d, where tokens has d-1 drafts behind token n.
func (w *mtpWorld) predict(tokens []int32, n, d int) []float32 {
	w.Helper()
	var table kvcache.Table
	defer w.cache.Release(&table)
	if err := w.cache.Grow(&table, n+d); err != nil {
		w.Fatal(err)
	}
	w.step.Reset()
	w.step.Add(&table, 0, tokens[:n])
	w.run()
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	width, modules := w.model.StateWidth(), w.model.MTP()
	states := slices.Clone(w.runner.States(all))
	st := nn.State{Pool: w.pool, Cache: w.cache}
	forward := func(k, pos int, tokens []int32, in []float32) (out []float32) {
		w.step.Reset()
		w.step.Add(&table, pos, tokens)
		if err := modules[k-1].Forward(&w.step, &st, in); err != nil {
			w.Fatal(err)
		}
		out = make([]float32, len(in))
		modules[k-1].States(&st, all[:len(tokens)], out)
		return out
	}
	k := 1
	for ; k <= min(d, len(modules)); k++ {
		states = forward(k, 0, tokens[k:k+n], states)
	}
	k--
	row := n - 1
	for pos := n; pos < n+d-k; pos++ {
		states, row = forward(k, pos, tokens[pos+k:pos+k+1], states[len(states)-width:]), 0
	}
	hidden := make([]float32, w.model.Config().Hidden)
	modules[k-1].Hidden(&st, []int{row}, hidden)
	logits := make([]float32, w.model.Config().Vocab)
	modules[k-1].Logits(&st, hidden, logits)
	return logits
}

// check compares the drafts of texts with those from scratch.
func (w *mtpWorld) check(texts []*mtpText, depth int, drawn bool) {
	w.Helper()
	for _, x := range texts {
		var got []mtpRow
		for i, token := range x.draft.Tokens {
			got = append(got, mtpRow{token, x.draft.Peak[i]})
		}
		if err := x.draft.Check(w.model.Config().Vocab); err != nil {
			w.Error(err)
		}
		if (len(x.draft.Q) > 0) != drawn || x.draft.Parents != nil {
			w.Errorf("%d distributions, parents %v, drawn %v", len(x.draft.Q), x.draft.Parents, drawn)
		}
		if want := w.expect(x, depth, drawn); !slices.Equal(got, want) {
			w.Errorf("sequence %d, %d tokens: drafts %v, from scratch %v", x.ID, len(x.Tokens), got, want)
		}
	}
}

// Drafts are those of the modules on the whole sequence: for sequences of any
// lengths in one batch, prompts in chunks, some longer than a pass, and after
// rounds of which any part of the draft was accepted, or without drafts.
func TestMTPDrafts(t *testing.T) {
	for _, family := range []string{"deepseek_v3", "deepseek_v32", "deepseek_v4"} {
		for modules := 1; modules <= 3; modules++ {
			t.Run(fmt.Sprintf("%s/%d", family, modules), func(t *testing.T) {
				w := newMTPWorld(t, family, modules)
				texts := []*mtpText{w.start(1, nil), w.start(2, nil), w.start(150, nil), w.start(37, nil)}
				w.prefill(texts, 29)
				for round := range 7 {
					depth := 1 + (round+2)%4
					if round != 5 {
						asked := texts[round%2:]
						w.propose(asked, depth, false)
						w.check(asked, depth, false)
					}
					if round == 3 { // others come: drafts and prompts in one step
						texts = append(texts, w.start(90, nil))
					}
					w.serve(texts, 50, func(drafted int) int { return w.random.IntN(drafted + 1) })
					if round >= 3 {
						w.prefill(texts[4:], 11)
					}
				}
			})
		}
	}
}
