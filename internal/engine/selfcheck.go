package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/spec/adapt"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

// profileTime bounds what the profile takes. Of a model whose steps are long,
// numbers of rows that there is no time for are taken to lie between those that
// were measured, and steps show more as the engine runs.
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
	begin := time.Now()
	if _, err := run(min(8, len(tokens))); err != nil { // that pages the weights in
		return nil, err
	}
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

// The self-check drafts for a few tokens of a text that any model goes on with
// in some way.
const (
	checkedText   = "Question: What is the capital of France, and what is it known for?\n\nAnswer: The capital of France is"
	checkedTokens = 24
)

// selfCheck has drafters that are models draft for a short text, and says in the
// log what share of their tokens the model has accepted: a draft model that does
// not fit its target loses nothing but time, and nobody would see it.
func (e *Engine) selfCheck(ctx context.Context) error {
	sp := e.speculator
	for _, a := range sp.arms {
		if a.Free || sp.simulated != nil {
			continue
		}
		r := Request{Prompt: e.checkedPrompt(), Params: sample.Default(), Speculation: &RequestSpeculation{Method: a.Name}}
		r.Params.Temperature, r.Params.MaxTokens, r.Params.IgnoreEOS = 0, checkedTokens, true
		if len(r.Prompt)+checkedTokens > e.maxLen {
			continue // nothing can be said
		}
		if err := e.checkArm(ctx, r); err != nil {
			return fmt.Errorf("self-check of %s: %w", a.Name, err)
		}
		rate := float64(a.stats.Accepted) / float64(max(a.stats.Drafted, 1))
		report := e.log.Info
		if rate < sp.Floor {
			report = e.log.Warn
		}
		report("self-check of speculation", "method", a.Name, "drafted", a.stats.Drafted, "accepted", a.stats.Accepted, "acceptance", rate, "floor", sp.Floor)
		a.stats = SpeculationStats{}
	}
	e.stats = Stats{} // nobody has asked for anything yet
	e.publish()
	return nil
}

// checkedPrompt is the text's tokens, or some where there is no tokenizer.
func (e *Engine) checkedPrompt() []int32 {
	if e.tokenizer != nil {
		if ids, err := e.tokenizer.Encode(checkedText, tokenizer.Options{Special: true}); err == nil && len(ids) > 0 {
			return ids
		}
	}
	prompt := make([]int32, 16)
	for i := range prompt {
		prompt[i] = int32(i % e.Config().Vocab)
	}
	return prompt
}

// checkArm runs a request to its end, before there is a loop, with all drafts of
// one arm verified.
func (e *Engine) checkArm(ctx context.Context, r Request) error {
	sp, adaptive := e.speculator, e.speculator.ctl
	sp.ctl = adapt.New(adapt.Config{Arms: adaptive.Arms, Steps: adaptive.Steps, Fixed: true})
	defer func() { sp.ctl = adaptive }()
	g := newGeneration(ctx, r)
	defer g.Close()
	if err := e.loop.inbox.put(e.newGroup(g, r), 0); err != nil {
		return err
	}
	e.accept()
	for len(e.loop.seqs) > 0 {
		e.dropCancelled()
		e.advance()
	}
	_, _, err := g.take()
	return err
}
