package engine

import (
	"slices"
	"time"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/spec/adapt"
)

// profileTime bounds what the profile of rows takes once the weights are in memory.
// Of a model whose steps are long, numbers of rows that there is no time for are
// taken to lie between those that were measured, or to be in proportion to the
// last, and steps show more as the engine runs. Contexts take two seconds more at most.
const profileTime = 5 * time.Second

// profileEnough is the time within which what has been measured is measured again,
// at most profileSweeps times: the machine may do something else meanwhile.
const (
	profileEnough = 3 * time.Second
	profileSweeps = 3
)

// profileRows bounds the rows of a step in the profile: logits of all rows are
// memory that is kept.
const profileRows = 128

// profile measures what a step takes by the number of its rows, with logits for
// all of them, as in verification. The rows are a short prompt of one sequence.
// What reading contexts adds is measured apart.
func (e *Engine) profile() (*adapt.Steps, error) {
	p := &profiler{e: e, grid: profileGrid(min(e.stepRows, profileRows, e.cache.Capacity(), e.maxLen))}
	defer e.cache.Release(&p.table)
	most := p.grid[len(p.grid)-1]
	if err := e.cache.Grow(&p.table, most); err != nil {
		return nil, err
	}
	for i := range most {
		p.tokens = append(p.tokens, int32(i*7919%e.Config().Vocab)) // spread, so that experts are
		p.rows = append(p.rows, i)
	}
	if _, err := p.run(min(8, most), 0); err != nil { // that pages the weights in
		return nil, err
	}
	least, err := p.times()
	if err != nil {
		return nil, err
	}
	measured, times := p.grid[:0:0], least[:0:0]
	for i, took := range least {
		if took > 0 {
			measured, times = append(measured, p.grid[i]), append(times, took)
		}
	}
	steps, err := adapt.NewSteps(measured, times)
	if err == nil {
		err = p.attention(steps)
	}
	return steps, err
}

// A profiler runs steps of one sequence.
type profiler struct {
	e      *Engine
	grid   []int
	table  kvcache.Table
	tokens []int32
	rows   []int
	step   nn.Step
}

// times returns the least time that steps of each number of rows took; 0: there was
// no time to measure it.
func (p *profiler) times() ([]time.Duration, error) {
	least := make([]time.Duration, len(p.grid))
	begin := time.Now()
	measure := func(i int, most time.Duration) (late bool, err error) {
		if time.Since(begin) > most && (least[i] > 0 || !coarse(p.grid[i])) {
			return true, nil
		}
		took, err := p.run(p.grid[i], 0)
		if least[i] == 0 || took < least[i] {
			least[i] = took
		}
		return false, err
	}
	for _, i := range profileOrder(p.grid) {
		if late, err := measure(i, profileTime); late || err != nil {
			return least, err
		}
	}
	for range profileSweeps {
		for i := range p.grid {
			if late, err := measure(i, profileEnough); late || err != nil {
				return least, err
			}
		}
	}
	return least, nil
}

// run runs a step of n rows that follow so many positions, whatever is there.
func (p *profiler) run(n, context int) (time.Duration, error) {
	p.step.Reset()
	p.step.Add(&p.table, context, p.tokens[:n])
	start := time.Now()
	if err := p.e.runner.Run(&p.step, nil); err != nil {
		return 0, err
	}
	p.e.runner.Logits(p.rows[:n])
	return time.Since(start), nil
}

// coarse are the rows that are measured however long it takes: they say where
// products stop being bound by memory, and what a row adds from there.
func coarse(rows int) bool { return rows == 1 || rows == 8 || rows == 32 }

// fine is the number of rows up to which each is measured: a kernel's tile that is
// begun costs as much as a full one.
const fine = 32

// profileGrid returns the numbers of rows that are measured, rising.
func profileGrid(most int) (grid []int) {
	for rows := 1; rows <= min(most, fine); rows++ {
		grid = append(grid, rows)
	}
	for _, rows := range adapt.Grid(most) {
		if rows > fine {
			grid = append(grid, rows)
		}
	}
	return grid
}

// profileOrder is the order in which a grid is measured, by index: first what is
// coarse; then those of few rows, with wider gaps and without; then the others; and
// once more those of few rows, whose differences say what pays.
func profileOrder(grid []int) (order []int) {
	wide := adapt.Grid(grid[len(grid)-1])
	add := func(of func(rows int) bool) {
		for i, rows := range grid {
			if of(rows) {
				order = append(order, i)
			}
		}
	}
	few := func(rows int) bool { return rows <= fine }
	add(coarse)
	add(func(rows int) bool { return few(rows) && slices.Contains(wide, rows) })
	add(few)
	add(func(rows int) bool { return !few(rows) })
	add(few)
	return order
}
