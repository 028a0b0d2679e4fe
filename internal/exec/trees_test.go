package exec

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// A row of a tree of drafts has the bits of its path decoded one token at a
// time, and so have the rows that follow when a path is accepted: whatever else
// is in the step, wherever pages end, whether pages before are shared, in one
// step or in several, for every type of cache and on any number of workers.
func TestTrees(t *testing.T) {
	families, dtypes := []string{"llama", "qwen3", "gemma3_text", "mixtral", "smollm3"}, []tensor.DType{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0}
	if raced {
		families, dtypes = families[:1], dtypes[2:3]
	}
	for _, family := range families {
		for _, d := range dtypes {
			t.Run(fmt.Sprintf("%s/%v", family, d), func(t *testing.T) {
				spec := testmodel.Family(family)
				spec.HeadDim = 32
				path, mode := testmodel.Safetensors(t, spec), mode{true, d}
				reference := &oneByOne{subject: openMode(t, path, 1, mode), rows: map[string][]float32{}}
				for _, workers := range []int{1, 2} {
					f := newForest(t, openMode(t, path, workers, mode), reference)
					for n := 29; n <= 66; n++ {
						if n <= 34 || n >= 60 {
							f.run(n)
						}
					}
					f.checkShared()
				}
			})
		}
	}
}

// oneByOne computes sequences alone, a token at a time.
type oneByOne struct {
	*subject
	table  kvcache.Table
	tokens []int32 // in table
	rows   map[string][]float32
}

// row returns the logits of the last of tokens.
func (o *oneByOne) row(t *testing.T, tokens []int32) []float32 {
	t.Helper()
	name := fmt.Sprint(tokens)
	if row := o.rows[name]; row != nil {
		return row
	}
	same := 0
	for same < min(len(o.tokens), len(tokens)-1) && o.tokens[same] == tokens[same] {
		same++
	}
	if err := o.cache.Rewind(&o.table, same); err != nil {
		t.Fatal(err)
	}
	o.tokens = slices.Clone(tokens)
	logits := o.logits(t, &o.table, same, tokens[same:], 1)
	for i := same; i < len(tokens); i++ {
		o.rows[fmt.Sprint(tokens[:i+1])] = logits[(i-same)*o.vocab:][:o.vocab]
	}
	return o.rows[name]
}

// A forest is sequences that decode with trees of drafts, and others beside
// them.
type forest struct {
	*testing.T
	*subject
	reference *oneByOne
	random    *rand.Rand
	tree      *kvcache.Tree
	prompt    []int32 // that all sequences with trees begin with
	tables    []*kvcache.Table
	step      nn.Step
	expected  []text // of each row of step
}

// A text is what a row's logits depend on.
type text []int32

// A grower is a sequence with trees.
type grower struct {
	table   *kvcache.Table
	tokens  text // computed
	nodes   []text
	parents []int32
	base    int
}

func newForest(t *testing.T, s *subject, reference *oneByOne) *forest {
	f := &forest{T: t, subject: s, reference: reference, random: rand.New(rand.NewPCG(1, 2))}
	var err error
	if f.tree, err = kvcache.NewTree(s.cache, kvcache.TreeOptions{}); err != nil {
		t.Fatal(err)
	}
	f.prompt = f.draw(66)
	return f
}

// draw draws n tokens.
func (f *forest) draw(n int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = f.random.Int32N(int32(f.vocab))
	}
	return tokens
}

func (f *forest) table() *kvcache.Table {
	table := new(kvcache.Table)
	f.tables = append(f.tables, table)
	return table
}

// begin computes the first n tokens of the prompt, or finds them.
func (f *forest) begin(n int) *grower {
	g := &grower{table: f.table(), tokens: f.prompt[:n]}
	found := f.tree.Attach(g.table, "", g.tokens[:n-1])
	f.add(g.table, g.tokens[:found], g.tokens[found:])
	f.check()
	f.tree.Insert(g.table, "", g.tokens)
	return g
}

// run takes two sequences with trees through a few steps, one from position n
// on, beside the prompt of another and one that decodes.
func (f *forest) run(n int) {
	a, b := f.begin(n), f.begin(1+f.random.IntN(len(f.prompt)))
	plain, chunked := &grower{table: f.table()}, &grower{table: f.table()}
	for range 3 {
		add := []func(){
			func() { f.verify(a) },
			func() { f.verify(b) },
			func() { f.extend(plain, 1) },
			func() { f.extend(chunked, 2+f.random.IntN(12)) },
		}
		f.random.Shuffle(len(add), func(i, j int) { add[i], add[j] = add[j], add[i] })
		f.sow(a)
		f.sow(b)
		for _, add := range add {
			add()
		}
		f.check()
		f.accept(a)
		f.accept(b)
		if err := f.tree.Check(f.tables...); err != nil {
			f.Fatal(err)
		}
	}
	for _, table := range f.tables {
		f.cache.Release(table)
	}
	f.tables = f.tables[:0]
}

// sow draws an anchor and a tree for g.
func (f *forest) sow(g *grower) {
	anchor := f.draw(1)
	g.tokens = append(slices.Clip(g.tokens), anchor...)
	g.base, g.nodes, g.parents = len(g.tokens), nil, []int32{}
	for node := range f.random.IntN(13) {
		parent := max(-1, node-1-f.random.IntN(4))
		before := g.tokens
		if parent >= 0 {
			before = g.nodes[parent]
		}
		g.nodes, g.parents = append(g.nodes, append(slices.Clip(before), f.draw(1)...)), append(g.parents, int32(parent))
	}
}

// verify adds the anchor and the tree of g to the step. Sometimes the first of
// its nodes are computed before.
func (f *forest) verify(g *grower) {
	before, anchor := g.tokens[:g.base-1], g.tokens[g.base-1:]
	step, expected := f.step, f.expected
	f.step, f.expected = nn.Step{}, nil
	done := 0
	for cut := f.random.IntN(2 * (len(g.nodes) + 1)); cut < len(g.nodes); cut += 1 + f.random.IntN(4) {
		f.add(g.table, before, anchor)
		f.draft(g, done, cut)
		f.check()
		before, anchor, done = g.tokens, nil, cut
	}
	f.step, f.expected = step, expected
	f.add(g.table, before, anchor)
	f.draft(g, done, len(g.nodes))
}

// add adds tokens behind those of a sequence to the step.
func (f *forest) add(table *kvcache.Table, before text, tokens []int32) {
	if err := f.cache.Grow(table, len(before)+len(tokens)); err != nil {
		f.Fatal(err)
	}
	f.step.Add(table, len(before), tokens)
	for i := range tokens {
		f.expected = append(f.expected, append(slices.Clip(before), tokens[:i+1]...))
	}
}

// draft adds nodes [from, to) of the tree of g.
func (f *forest) draft(g *grower, from, to int) {
	if err := f.cache.Grow(g.table, g.base+to); err != nil {
		f.Fatal(err)
	}
	var tokens []int32
	for _, node := range g.nodes[from:to] {
		tokens = append(tokens, node[len(node)-1])
	}
	f.step.Draft(g.parents[:to], tokens)
	f.expected = append(f.expected, g.nodes[from:to]...)
}

// extend adds n tokens of a sequence without a tree.
func (f *forest) extend(g *grower, n int) {
	tokens := f.draw(n)
	f.add(g.table, g.tokens, tokens)
	g.tokens = append(slices.Clip(g.tokens), tokens...)
}

// check runs the step, compares its rows and empties it.
func (f *forest) check() {
	f.Helper()
	if err := f.subject.Run(&f.step, nil); err != nil {
		f.Fatal(err)
	}
	rows := make([]int, f.step.Rows())
	for i := range rows {
		rows[i] = i
	}
	logits := f.Logits(rows)
	for i, tokens := range f.expected {
		if !slices.Equal(logits[i*f.vocab:][:f.vocab], f.reference.row(f.T, tokens)) {
			f.Fatalf("row %d of %d, at position %d in slots %v with path %v: logits are not those of %d tokens one at a time",
				i, len(rows), f.step.Positions[i], f.step.Slots, f.step.Paths, len(tokens))
		}
	}
	f.step.Reset()
	f.expected = nil
}

// accept accepts a path of the tree of g.
func (f *forest) accept(g *grower) {
	var path []int32
	for node := int32(f.random.IntN(len(g.nodes)+1)) - 1; node >= 0; node = g.parents[node] {
		path = append(path, node)
	}
	slices.Reverse(path)
	if err := f.Keep(g.table, g.base, path); err != nil {
		f.Fatal(err)
	}
	if len(path) > 0 {
		g.tokens = g.nodes[path[len(path)-1]]
	}
	if err := f.cache.Rewind(g.table, len(g.tokens)); err != nil {
		f.Fatal(err)
	}
	f.tree.Insert(g.table, "", g.tokens)
}

// checkShared checks that the pages of the prompt are as they were.
func (f *forest) checkShared() {
	table, n := f.table(), len(f.prompt)
	if found := f.tree.Attach(table, "", f.prompt); found != n/f.cache.PageSize()*f.cache.PageSize() {
		f.Fatalf("%d positions of the prompt are shared", found)
	}
	found := f.cache.Shared(table)
	f.add(table, f.prompt[:found], f.prompt[found:])
	f.check()
}

// Two models keep what they compute of the same sequences in one cache. Each
// accepts drafts of the tree that it has computed: that of a draft model has
// nodes that are not verified.
func TestModelsOfOneCache(t *testing.T) {
	target, drafter := open(t, testmodel.Safetensors(t, testmodel.Family("llama")), 2), open(t, testmodel.Safetensors(t, testmodel.Family("gemma3_text")), 2)
	layers := slices.Concat(target.model.Cache(), drafter.model.Cache())
	cache, err := kvcache.NewPool(layers, tensor.F32, 512, 0)
	if err != nil {
		t.Fatal(err)
	}
	// The runners above compute alone what is expected.
	a := NewRunner(target.model, target.st.Pool, cache, 0)
	b := NewRunner(drafter.model, drafter.st.Pool, cache, len(target.model.Cache()))
	prompt := randomTokens(30)[0]
	drafted, parents := []int32{7, 8, 9, 10, 11, 12}, []int32{-1, -1, 0, 1, 1, 4}
	verified, kept := []int32{8, 10, 11}, []int32{-1, 0, 0} // nodes 1, 3 and 4
	accepted := slices.Concat(prompt, []int32{8, 11})

	var table, alone kvcache.Table
	if err := cache.Grow(&table, 64); err != nil {
		t.Fatal(err)
	}
	var step nn.Step
	run := func(r *Runner) {
		t.Helper()
		if err := r.Run(&step, nil); err != nil {
			t.Fatal(err)
		}
		step.Reset()
	}
	step.Add(&table, 0, prompt)
	run(b)
	for from := range len(drafted) / 2 {
		step.Add(&table, len(prompt), nil)
		step.Draft(parents[:2*from+2], drafted[2*from:2*from+2])
		run(b)
	}
	step.Add(&table, 0, prompt)
	step.Draft(kept, verified)
	run(a)
	if err := errors.Join(a.Keep(&table, len(prompt), []int32{0, 2}), b.Keep(&table, len(prompt), []int32{1, 4})); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		alone  *subject
		runner *Runner
	}{"target": {target, a}, "drafter": {drafter, b}} {
		want := test.alone.logits(t, &alone, 0, append(accepted, 3), 1)
		test.alone.cache.Release(&alone)
		step.Add(&table, len(accepted), []int32{3})
		run(test.runner)
		if !slices.Equal(test.runner.Logits([]int{0}), want[len(accepted)*test.alone.vocab:]) {
			t.Errorf("%s: logits behind accepted drafts are not those of the tokens alone", name)
		}
	}
}

// What cannot be kept is refused, and nothing moves.
func TestKeepRefuses(t *testing.T) {
	s := open(t, testmodel.Safetensors(t, testmodel.Family("llama")), 1)
	tree, err := kvcache.NewTree(s.cache, kvcache.TreeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var table kvcache.Table
	tokens := randomTokens(40)[0]
	s.logits(t, &table, 0, tokens, len(tokens))
	tree.Insert(&table, "", tokens)
	for _, test := range []struct {
		base int
		path []int32
		want string
	}{
		{40, []int32{1, 1}, "ascending"},
		{40, []int32{-1}, "ascending"},
		{40, []int32{2, 1}, "ascending"},
		{31, []int32{1}, "positions 31 to 32, expected 32 to 63"},
		{40, []int32{0, 24}, "positions 40 to 64, expected 32 to 63"},
		{40, []int32{0, 23}, ""},
		{32, []int32{1}, ""},
		{62, []int32{0, 1, 2}, ""}, // nothing to move
	} {
		if err := s.Keep(&table, test.base, test.path); test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("nodes %v behind position %d: %v, want %q", test.path, test.base, err, test.want)
		}
	}
}

// Attention that reads entries by their positions takes chains and refuses
// trees.
func TestTreesAreRefused(t *testing.T) {
	for family, design := range map[string]string{
		"deepseek_v3": "multi-head latent attention", "deepseek_v32": "sparse latent attention", "nsa": "native sparse attention", "deepseek_v4": "compressed",
	} {
		s := open(t, testmodel.Safetensors(t, testmodel.Family(family)), 1)
		var table kvcache.Table
		var step nn.Step
		if err := s.cache.Grow(&table, 9); err != nil {
			t.Fatal(err)
		}
		step.Add(&table, 0, []int32{1})
		step.Draft([]int32{-1, 0}, []int32{2, 3})
		if err := errors.Join(s.Run(&step, nil), s.Keep(&table, 1, []int32{0, 1})); err != nil {
			t.Errorf("%s: a chain: %v", family, err)
		}
		step.Reset()
		step.Add(&table, 0, []int32{1})
		step.Draft([]int32{-1, -1}, []int32{2, 3})
		for what, err := range map[string]error{"a step": s.Run(&step, nil), "keeping": s.Keep(&table, 1, []int32{1})} {
			if err == nil || !strings.Contains(err.Error(), design) {
				t.Errorf("%s: %s of a tree: %v, want an error that names %s", family, what, err, design)
			}
		}
	}
}
