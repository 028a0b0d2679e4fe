// Package exec runs steps on a model: today on one rank.
package exec

import (
	"errors"
	"fmt"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// A Runner runs steps of one model. It is used by one goroutine at a time.
type Runner struct {
	model model.Model
	st    nn.State
	rows  int   // of the last step
	trees error // why steps cannot have trees of drafts
}

// NewRunner runs m on the workers of pool, keeping sequences in the layers of
// cache from first on, which are made as m.Cache says. Models with runners on
// the same cache share its tables: what both have computed of a sequence is
// rewound and given up together.
func NewRunner(m model.Model, pool *kernel.Pool, cache *kvcache.Pool, first int) *Runner {
	return &Runner{model: m, st: nn.State{Pool: pool, Cache: cache, First: first}, trees: m.Config().Trees()}
}

// ErrStopped is returned by Run when it was told to stop.
var ErrStopped = errors.New("the step was stopped")

// Run computes the step and stores its rows in the cache. Its results are
// asked for with Hidden and Logits before the next Run. stop, which may be
// nil, is asked before each layer; when it says so, Run returns ErrStopped and
// what the cache holds of the step's rows is of no use.
func (r *Runner) Run(step *nn.Step, stop func() bool) error {
	if step.Paths != nil && r.trees != nil {
		return r.trees
	}
	r.rows = step.Rows()
	if err := r.model.Embed(step, &r.st); err != nil {
		return err
	}
	for _, l := range r.model.Layers() {
		if stop != nil && stop() {
			return ErrStopped
		}
		l.Attention(step, &r.st)
		l.FFN(step, &r.st)
		if err := r.st.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Hidden returns the final normalised states of rows of the last step,
// [len(rows), hidden], valid until the next call of any method.
func (r *Runner) Hidden(rows []int) []float32 {
	mark := r.st.Mark()
	defer r.st.Release(mark)
	hidden := r.st.Take(len(rows) * r.model.Config().Hidden)
	r.model.Hidden(&r.st, rows, hidden)
	return hidden
}

// Logits returns the logits of rows of the last step, [len(rows), vocab],
// valid until the next call of any method.
func (r *Runner) Logits(rows []int) []float32 {
	mark := r.st.Mark()
	defer r.st.Release(mark)
	hidden := r.st.Take(len(rows) * r.model.Config().Hidden)
	r.model.Hidden(&r.st, rows, hidden)
	logits := r.st.Take(len(rows) * r.model.Config().Vocab)
	r.model.Logits(&r.st, hidden, logits)
	return logits
}

// States returns what modules of multi-token prediction read of rows of the last
// step, [len(rows), StateWidth], valid until the next call of any method.
func (r *Runner) States(rows []int) []float32 {
	mark := r.st.Mark()
	defer r.st.Release(mark)
	states := r.st.Take(len(rows) * r.model.StateWidth())
	r.model.States(&r.st, rows, states)
	return states
}

// Keep makes accepted drafts of t consecutive positions: what the model keeps
// of node path[i] of a tree (nn.Step.Draft) moves from slot base+path[i] to
// position base+i. path is the nodes from a child of the anchor down; base is
// the position behind the anchor. Positions behind those kept hold anything from
// then on, for kvcache.Pool.Rewind to take back. On an error nothing has moved.
//
// Each runner keeps what it has computed: a draft model's tree need not be the
// one that is verified.
func (r *Runner) Keep(t *kvcache.Table, base int, path []int32) error {
	before := int32(-1)
	for _, node := range path {
		if node <= before {
			return fmt.Errorf("accepted drafts are %v, expected nodes in ascending order", path)
		}
		before = node
	}
	if int(before) == len(path)-1 {
		return nil // a chain lies where it should
	}
	if r.trees != nil {
		return r.trees
	}
	shared, held := r.st.Cache.Shared(t), r.st.Cache.Held(t)
	if end := base + int(before); base < shared || end >= held {
		return fmt.Errorf("accepted drafts lie at positions %d to %d, expected %d to %d", base, end, shared, held-1)
	}
	r.st.Keep(r.model.Cache(), t, base, path)
	return nil
}

// Finite reports whether the last step's rows [from, to) have come out of the
// last layer without NaN or infinity, or else the first row that has not. What
// the cache holds of such a row is of no use either.
func (r *Runner) Finite(from, to int) (row int, ok bool) {
	width := len(r.st.X) / r.rows
	for row := from; row < to; row++ {
		var sum float32 // of zeros, or NaN
		for _, v := range r.st.X[row*width : (row+1)*width] {
			sum += v * 0
		}
		if sum != 0 {
			return row, false
		}
	}
	return 0, true
}
