package server

import (
	"cmp"
	"strings"

	"github.com/foretoken/foretoken/internal/engine"
)

// A completionAnswer collects one continuation of a prompt.
type completionAnswer struct {
	of     *completing
	index  int // among all answers
	prompt int
	begun  bool
	news   bool // there is something to take
	finish engine.FinishReason

	text      strings.Builder // since the last take, as are ids and scores
	ids       []int32
	scores    *textScorer // nil: nobody asked
	firstIDs  []int32     // those of the prompt, to be taken once
	ofPrompt  []map[int32]promptLogProb
	logProb   float64 // of all tokens
	generated int
}

func (c *completing) newAnswer(index int) *completionAnswer {
	a := &completionAnswer{of: c, index: index, prompt: index / c.drawn}
	if c.LogProbs != nil {
		a.scores = c.newTextScorer(*c.LogProbs, c.prompts[a.prompt], c.Echo, c.keepsSpecial())
	}
	return a
}

// begin adds what the prompt has in the answer, once it has been computed.
func (a *completionAnswer) begin(g *generation) {
	if a.begun {
		return
	}
	a.begun = true
	c := a.of
	if c.ReturnTokenIDs {
		a.firstIDs, a.news = c.prompts[a.prompt], true
	}
	if c.PromptLogProbs != nil {
		a.ofPrompt, a.news = c.promptLogProbs(*c.PromptLogProbs, g.Prompt()), true
	}
	if !c.Echo {
		return
	}
	a.news = true
	a.text.WriteString(c.echo(a.prompt))
	if a.scores == nil {
		return
	}
	for i, t := range g.Prompt() {
		a.scores.add(t.ID, t.LogProb, t.Top, i == 0)
	}
}

// echo is the text of a prompt.
func (c *completing) echo(prompt int) string {
	if len(c.Prompt.texts) > 0 && !c.keepsSpecial() {
		return c.Prompt.texts[prompt]
	}
	t, err := c.engine.Tokenizer()
	if err != nil {
		return "" // the model has no texts
	}
	return t.Decode(c.prompts[prompt], !c.keepsSpecial())
}

func (a *completionAnswer) add(t *engine.Token) {
	a.news = true
	a.text.WriteString(t.Text)
	a.ids = append(a.ids, t.ID)
	a.logProb += t.LogProb
	a.generated++
	if a.scores != nil {
		a.scores.addToken(t)
	}
	if t.Finish != "" {
		a.end(t.Finish)
	}
}

func (a *completionAnswer) end(why engine.FinishReason) { a.finish, a.news = why, true }

// compare orders by log-probability per token, the most likely first.
func (a *completionAnswer) compare(b *completionAnswer) int {
	mean := func(a *completionAnswer) float64 { return a.logProb / float64(max(a.generated, 1)) }
	return cmp.Compare(mean(b), mean(a))
}

// take returns what has come since the last call.
func (a *completionAnswer) take() completionChoice {
	choice := completionChoice{Index: a.index, Text: a.text.String(), PromptLogProbs: a.ofPrompt, PromptTokenIDs: a.firstIDs}
	if a.scores != nil {
		choice.LogProbs = a.scores.take()
	}
	if a.of.ReturnTokenIDs {
		choice.TokenIDs = a.ids
	}
	if a.finish != "" {
		choice.FinishReason = &a.finish
	}
	a.text.Reset()
	a.ids, a.firstIDs, a.ofPrompt, a.news = nil, nil, nil, false
	return choice
}
