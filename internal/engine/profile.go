package engine

import (
	"time"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/spec/adapt"
)

// profileTime bounds what the profile takes once the weights are in memory. Of a
// model whose steps are long, numbers of rows that there is no time for are taken
// to lie between those that were measured, or to be in proportion to the last, and
// steps show more as the engine runs.
const profileTime = 5 * time.Second

// profileRows bounds the rows of a step in the profile: logits of all rows are
// memory that is kept.
const profileRows = 128

// profile measures what a step takes by the number of its rows, with logits for
// all of them, as in verification. The rows are a short prompt of one sequence:
// products are most of a step, and the table learns as the engine runs.
func (e *Engine) profile() (*adapt.Steps, error) {
	var table kvcache.Table
	defer e.cache.Release(&table)
	grid := adapt.Grid(min(e.stepRows, profileRows, e.cache.Capacity(), e.maxLen))
	if err := e.cache.Grow(&table, grid[len(grid)-1]); err != nil {
		return nil, err
	}
	tokens, rows := make([]int32, grid[len(grid)-1]), make([]int, grid[len(grid)-1])
	for i := range tokens {
		tokens[i], rows[i] = int32(i*7919%e.Config().Vocab), i // spread, so that experts are
	}
	var step nn.Step
	run := func(n int) (time.Duration, error) {
		step.Reset()
		step.Add(&table, 0, tokens[:n])
		start := time.Now()
		if err := e.runner.Run(&step, nil); err != nil {
			return 0, err
		}
		e.runner.Logits(rows[:n])
		return time.Since(start), nil
	}
	if _, err := run(min(8, len(tokens))); err != nil { // that pages the weights in
		return nil, err
	}
	begin := time.Now()
	least := make([]time.Duration, len(grid)) // 0: not measured
	for _, i := range profileOrder(grid) {
		if time.Since(begin) > profileTime && (least[i] > 0 || !coarse(grid[i])) {
			break
		}
		took, err := run(grid[i])
		if err != nil {
			return nil, err
		}
		if least[i] == 0 || took < least[i] {
			least[i] = took
		}
	}
	measured, times := grid[:0:0], least[:0:0]
	for i, took := range least {
		if took > 0 {
			measured, times = append(measured, grid[i]), append(times, took)
		}
	}
	return adapt.NewSteps(measured, times)
}

// coarse are the rows that are measured however long it takes: they say where
// products stop being bound by memory, and what a row adds from there.
func coarse(rows int) bool { return rows == 1 || rows == 8 || rows == 32 }

// profileOrder is the order in which a grid is measured, by index: first what is
// coarse; then three times the steps that most services have, whose differences say
// what pays; then the others.
func profileOrder(grid []int) (order []int) {
	add := func(of func(rows int) bool) {
		for i, rows := range grid {
			if of(rows) {
				order = append(order, i)
			}
		}
	}
	add(coarse)
	for range 3 {
		add(func(rows int) bool { return rows <= 32 })
	}
	for range 2 {
		add(func(rows int) bool { return rows > 32 })
	}
	return order
}
