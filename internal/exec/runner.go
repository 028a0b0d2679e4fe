// Package exec runs steps on a model: today on one rank.
package exec

import (
	"errors"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// A Runner runs steps of one model. It is used by one goroutine at a time.
type Runner struct {
	model model.Model
	st    nn.State
	rows  int // of the last step
}

// NewRunner runs m on the workers of pool, keeping sequences in cache.
func NewRunner(m model.Model, pool *kernel.Pool, cache *kvcache.Pool) *Runner {
	return &Runner{model: m, st: nn.State{Pool: pool, Cache: cache}}
}

// ErrStopped is returned by Run when it was told to stop.
var ErrStopped = errors.New("the step was stopped")

// Run computes the step and stores its rows in the cache. Its results are
// asked for with Hidden and Logits before the next Run. stop, which may be
// nil, is asked before each layer; when it says so, Run returns ErrStopped and
// what the cache holds of the step's rows is of no use.
func (r *Runner) Run(step *nn.Step, stop func() bool) error {
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
