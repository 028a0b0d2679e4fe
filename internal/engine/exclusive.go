package engine

import (
	"context"

	"github.com/foretoken/foretoken/internal/exec"
	"github.com/foretoken/foretoken/internal/kvcache"
)

// Exclusive runs f between steps, with the model and its cache to itself:
// requests that run give their memory back first, and are computed anew
// afterwards; so are prefixes that were cached. f releases what it takes of the
// cache, and must not use the engine otherwise, which waits for it. The error is
// that of f, ErrClosed, or ctx's if it ended before f began.
func (e *Engine) Exclusive(ctx context.Context, f func(*exec.Runner, *kvcache.Pool) error) error {
	return e.exclusive(ctx, func() error {
		e.retractAll()
		if e.tree != nil {
			e.tree.Evict(e.tree.Stats().Pages)
		}
		return f(e.runner, e.cache)
	})
}

// StepRows is the most rows of one step; longer prompts are cut.
func (e *Engine) StepRows() int { return e.stepRows }

// Threads is the number of workers.
func (e *Engine) Threads() int { return e.threads }

// WeightBytes is what a step of the given number of rows reads of the weights as
// they were prepared for products, if it chooses any expert as often as any other:
// all but vectors, rows of the embedding and experts that it does not choose.
func (e *Engine) WeightBytes(rows int) int64 { return e.arena.Bytes() - e.model.Idle(rows) }
