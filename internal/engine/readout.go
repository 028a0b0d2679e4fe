package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/foretoken/foretoken/internal/sample"
)

// A Pooling says how the states of a text's tokens become one vector.
type Pooling string

// The poolings. Embedding models say which they were trained for.
const (
	MeanPooling Pooling = "mean"
	LastPooling Pooling = "last"
)

// Embed returns the pooled final states of tokens, scaled to length 1:
// [hidden] values.
func (e *Engine) Embed(ctx context.Context, tokens []int32, pooling Pooling) ([]float32, error) {
	if pooling == "" {
		return nil, fmt.Errorf("pooling %q: expected %s or %s", pooling, MeanPooling, LastPooling)
	}
	g, err := e.Submit(ctx, Request{Prompt: tokens, Params: sample.Default(), PromptOnly: true, Pooling: pooling})
	if err != nil {
		return nil, err
	}
	defer g.Close()
	if _, err := g.Next(ctx); !errors.Is(err, io.EOF) {
		return nil, err
	}
	return g.Pooled(), nil
}

// readPrompt takes what was asked for of the rows [from, to) of the step that
// continue s, as far as they are its prompt.
func (e *Engine) readPrompt(s *sequence, from, to int) error {
	g := s.group
	if g.prompted || !g.ScorePrompt && g.Pooling == "" {
		return nil
	}
	at, to := s.computed, min(to, from+s.prompt-s.computed) // position of the first
	rows := make([]int, 0, scoreRows)
	for ; from < to; from, at = from+len(rows), at+len(rows) {
		rows = rows[:0]
		for row := from; row < min(from+scoreRows, to); row++ {
			rows = append(rows, row)
		}
		if g.ScorePrompt {
			if err := e.scorePrompt(g, at, rows); err != nil {
				return err
			}
		}
		if g.Pooling == MeanPooling || g.Pooling == LastPooling && at+len(rows) == s.prompt {
			e.poolPrompt(g, rows)
		}
	}
	return nil
}

// scorePrompt takes the log-probabilities of the tokens behind rows, the first
// of which is at a position of the prompt.
func (e *Engine) scorePrompt(g *group, at int, rows []int) error {
	if g.scores == nil {
		g.scores = make([]TokenScore, len(g.Prompt))
		g.scores[0].ID = g.Prompt[0]
	}
	if at+len(rows) == len(g.Prompt) {
		rows = rows[:len(rows)-1] // what follows the last is not the prompt's
	}
	if len(rows) == 0 {
		return nil
	}
	logits := e.runner.Logits(rows)
	vocab := len(logits) / len(rows)
	for i := range rows {
		token := g.Prompt[at+i+1]
		logProb, top, err := sample.LogProbs(logits[i*vocab:(i+1)*vocab], token, max(g.Params.LogProbs, 0), nil)
		if err != nil {
			return err
		}
		g.scores[at+i+1] = TokenScore{ID: token, LogProb: logProb, Top: top}
	}
	return nil
}

// poolPrompt adds the final states of rows, or keeps that of the last.
func (e *Engine) poolPrompt(g *group, rows []int) {
	if g.pool == nil {
		g.pool = make([]float64, e.Config().Hidden)
	}
	if g.Pooling == LastPooling {
		rows = rows[len(rows)-1:]
	}
	for i, v := range e.runner.Hidden(rows) {
		g.pool[i%len(g.pool)] += float64(v)
	}
}

// normalized scales a vector to length 1; nil stays nil.
func normalized(vector []float64) []float32 {
	if vector == nil {
		return nil
	}
	var sum float64
	for _, v := range vector {
		sum += v * v
	}
	out := make([]float32, len(vector))
	for i, v := range vector {
		out[i] = float32(v / math.Sqrt(max(sum, math.SmallestNonzeroFloat64)))
	}
	return out
}
