package engine

import (
	"context"
	"fmt"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

// A Request asks for one continuation.
type Request struct {
	Prompt []int32 // not empty
	Params sample.Params
	// KeepSpecial leaves special tokens in the text.
	KeepSpecial bool
}

// A FinishReason says why a sequence ended.
type FinishReason string

// The reasons, as the OpenAI API names them.
const (
	Stop   FinishReason = "stop"   // an end token or a stop string
	Length FinishReason = "length" // max_tokens or the model's limit
)

// A Token is one generated token.
type Token struct {
	ID      int32
	Text    string                // what became certain with this token; may be empty
	Finish  FinishReason          // empty but for the last token
	LogProb float64               // if the request asked for it
	Top     []sample.TokenLogProb // the most likely tokens, likewise
}

// A sequence is a request on its way. The loop owns it.
type sequence struct {
	ctx    context.Context
	params sample.Params
	out    *stream

	tokens   []int32 // prompt and output
	prompt   int     // how many of them are the prompt
	computed int     // how many of them are in the cache
	table    kvcache.Table

	history *sample.History // nil unless penalties need it
	text    *tokenizer.Stream
	stop    *sample.StopMatcher
}

// generated is the number of output tokens.
func (s *sequence) generated() int { return len(s.tokens) - s.prompt }

// newSequence checks r.
func (e *Engine) newSequence(ctx context.Context, r Request) (*sequence, error) {
	vocab := e.vocab()
	if err := r.Params.Validate(vocab); err != nil {
		return nil, err
	}
	if n := len(r.Prompt); n == 0 {
		return nil, fmt.Errorf("the prompt is empty")
	} else if n >= e.maxLen {
		return nil, fmt.Errorf("the prompt has %d tokens, which leaves none of the model's %d for an answer", n, e.maxLen)
	}
	for i, id := range r.Prompt {
		if id < 0 || int(id) >= e.Config().Vocab {
			return nil, fmt.Errorf("prompt token %d is %d, expected 0 to %d", i, id, e.Config().Vocab-1)
		}
	}
	if len(r.Params.Stop) > 0 && e.tokenizer == nil {
		return nil, fmt.Errorf("stop strings: %w", e.noVocab)
	}
	s := &sequence{ctx: ctx, params: r.Params, out: newStream(), tokens: append([]int32(nil), r.Prompt...), prompt: len(r.Prompt)}
	if r.Params.Penalized() {
		s.history = sample.NewHistory(r.Prompt)
	}
	if e.tokenizer != nil {
		s.text = e.tokenizer.Stream(r.Prompt, !r.KeepSpecial)
		s.stop = sample.NewStopSet(r.Params.Stop).NewMatcher(r.Params.IncludeStop)
	}
	return s, nil
}

// vocab is the number of tokens that can be drawn: an embedding may have more
// rows than the tokenizer has tokens.
func (e *Engine) vocab() int {
	n := e.Config().Vocab
	if e.tokenizer != nil {
		n = min(n, e.tokenizer.Size())
	}
	return n
}

// next draws a token from logits and sends it. It reports whether it was the
// last.
func (s *sequence) next(e *Engine, logits []float32) (ended bool, err error) {
	r, err := e.sampler.Sample(logits, &sample.Row{
		Params: &s.params, Position: len(s.tokens), Generated: s.generated(), History: s.history, EOG: e.eog, Vocab: e.vocab(),
	})
	if err != nil {
		return true, err
	}
	s.tokens = append(s.tokens, r.Token)
	if s.history != nil {
		s.history.Add(r.Token)
	}
	t := Token{ID: r.Token, LogProb: r.LogProb, Top: append([]sample.TokenLogProb(nil), r.Top...)}
	switch {
	case s.params.Ends(r.Token, e.eog):
		t.Finish = Stop
	case s.generated() == s.params.MaxTokens, len(s.tokens) == e.maxLen:
		t.Finish = Length
	}
	if s.text != nil {
		s.decode(&t)
	}
	s.out.push(t)
	return t.Finish != "", nil
}

// decode adds the text that became certain with t: whole characters that
// cannot be the beginning of a stop string. A token that ends generation has
// no text.
func (s *sequence) decode(t *Token) {
	var text string
	if t.Finish != Stop {
		text = s.text.Push(t.ID)
	}
	if t.Finish != "" {
		text += s.text.Flush()
	}
	stopped := false
	if s.generated() < s.params.MinTokens {
		t.Text = s.stop.Pass(text)
	} else {
		t.Text, stopped = s.stop.Feed(text)
	}
	if stopped {
		t.Finish = Stop
	} else if t.Finish != "" {
		t.Text += s.stop.Flush()
	}
}
