package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/foretoken/foretoken/internal/exec"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// scoreRows is how many rows of logits are computed at once; it bounds memory
// and changes no bits.
const scoreRows = 32

// Score evaluates tokens from position 0 on and calls visit with the row
// index and the logits of every row from first on, in order. chunk is the
// number of rows of a step; 0 takes all at once. visit must not use the engine,
// which waits for it; the logits are valid during the call only.
func (e *Engine) Score(ctx context.Context, tokens []int32, first, chunk int, visit func(row int, logits []float32) error) error {
	return e.exclusive(ctx, func() error {
		return e.forward(ctx, tokens, chunk, func(from int, rows []int) error {
			for len(rows) > 0 && from+rows[0] < first {
				rows = rows[1:]
			}
			for len(rows) > 0 {
				n := min(len(rows), scoreRows)
				logits := e.runner.Logits(rows[:n])
				vocab := len(logits) / n
				for i, row := range rows[:n] {
					if err := visit(from+row, logits[i*vocab:(i+1)*vocab]); err != nil {
						return err
					}
				}
				rows = rows[n:]
			}
			return nil
		})
	})
}

// forward runs tokens through the model, chunk rows at a time, and calls
// visit after each step with the index of its first token and its rows.
func (e *Engine) forward(ctx context.Context, tokens []int32, chunk int, visit func(from int, rows []int) error) error {
	if len(tokens) == 0 || len(tokens) > e.maxLen {
		return fmt.Errorf("sequence of %d tokens: expected 1 to %d", len(tokens), e.maxLen)
	}
	if chunk <= 0 {
		chunk = len(tokens)
	}
	var table kvcache.Table
	defer e.cache.Release(&table)
	if err := e.cache.Grow(&table, len(tokens)); err != nil {
		e.retractAll() // a sequence of maxLen tokens fits when nothing runs
		if err := e.cache.Grow(&table, len(tokens)); err != nil {
			return err
		}
	}
	var step nn.Step
	for from := 0; from < len(tokens); from += chunk {
		part := tokens[from:min(from+chunk, len(tokens))]
		step.Reset()
		step.Add(&table, from, part)
		stop := func() bool { return ctx.Err() != nil || e.loop.stopping() }
		if err := e.runner.Run(&step, stop); errors.Is(err, exec.ErrStopped) {
			return cmp.Or(ctx.Err(), ErrClosed)
		} else if err != nil {
			return err
		}
		rows := make([]int, len(part))
		for i := range rows {
			rows[i] = i
		}
		if err := visit(from, rows); err != nil {
			return err
		}
	}
	return nil
}
