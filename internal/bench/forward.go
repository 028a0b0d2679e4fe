package bench

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/exec"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// A forwarder runs steps of random tokens.
type forwarder struct {
	ctx      context.Context
	runner   *exec.Runner
	cache    *kvcache.Pool
	vocab    int
	stepRows int // of the engine's own steps

	random *rand.Rand
	step   nn.Step
	tokens []int32
	rows   []int
}

func newForwarder(ctx context.Context, r *exec.Runner, cache *kvcache.Pool, e *engine.Engine) *forwarder {
	return &forwarder{
		ctx: ctx, runner: r, cache: cache, vocab: e.Config().Vocab, stepRows: e.StepRows(),
		random: rand.New(rand.NewPCG(1, 2)),
	}
}

// sequences have the same number of tokens in the cache, and room for more.
type sequences struct {
	context int
	tables  []kvcache.Table
}

// draw returns n random tokens, valid until the next call.
func (f *forwarder) draw(n int) []int32 {
	f.tokens = f.tokens[:0]
	for range n {
		f.tokens = append(f.tokens, f.random.Int32N(int32(f.vocab)))
	}
	return f.tokens
}

// run runs the step at hand.
func (f *forwarder) run() error {
	err := f.runner.Run(&f.step, func() bool { return f.ctx.Err() != nil })
	if errors.Is(err, exec.ErrStopped) {
		return f.ctx.Err()
	}
	return err
}

// prompt runs n tokens from position 0 on in steps as the engine's, without
// logits, and returns the number of rows of the last step.
func (f *forwarder) prompt(t *kvcache.Table, n int) (last int, err error) {
	for from := 0; from < n; from += f.stepRows {
		last = min(f.stepRows, n-from)
		f.step.Reset()
		f.step.Add(t, from, f.draw(last))
		if err := f.run(); err != nil {
			return 0, err
		}
	}
	return last, nil
}

// follow runs rows tokens at position pos of each sequence and returns the
// logits of all of them, [len(tables)·rows, vocab].
func (f *forwarder) follow(tables []kvcache.Table, pos, rows int) ([]float32, error) {
	f.step.Reset()
	f.rows = f.rows[:0]
	for i := range tables {
		f.step.Add(&tables[i], pos, f.draw(rows))
	}
	for i := range f.step.Rows() {
		f.rows = append(f.rows, i)
	}
	if err := f.run(); err != nil {
		return nil, err
	}
	return f.runner.Logits(f.rows), nil
}

// reserve gives t memory for tokens positions, of which it keeps the first keep.
func (f *forwarder) reserve(t *kvcache.Table, keep, tokens int) error {
	if f.cache.Rewind(t, keep) != nil {
		// Layers with a window do not remember that far back.
		f.cache.Release(t)
		if err := f.cache.Grow(t, keep); err != nil {
			return err
		}
		if _, err := f.prompt(t, keep); err != nil {
			return err
		}
	}
	return f.cache.Grow(t, tokens)
}
