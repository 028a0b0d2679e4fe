package engine

import (
	"context"
	"fmt"

	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/spec/adapt"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

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
