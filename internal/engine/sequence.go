package engine

import (
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

// A FinishReason says why a sequence ended.
type FinishReason string

// The reasons, as the OpenAI API names them.
const (
	Stop   FinishReason = "stop"   // an end token or a stop string
	Length FinishReason = "length" // max_tokens or the model's limit
)

// A Token is one generated token.
type Token struct {
	Choice  int // which continuation, from 0
	ID      int32
	Text    string                // what became certain with this token; may be empty
	Finish  FinishReason          // empty but for the last token
	LogProb float64               // if the request asked for it
	Top     []sample.TokenLogProb // the most likely tokens, likewise
}

// A sequence is a request on its way. The loop owns it.
type sequence struct {
	request Request
	choice  int
	out     *Generation
	live    *int // choices of the request that have not ended

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

// newRequest makes the sequences of r's choices.
func (e *Engine) newRequest(g *Generation, r Request) []*sequence {
	live := max(r.Choices, 1)
	seqs := make([]*sequence, live)
	stops := sample.NewStopSet(r.Params.Stop)
	for i := range seqs {
		s := &sequence{request: r, choice: i, out: g, live: &live, tokens: append([]int32(nil), r.Prompt...), prompt: len(r.Prompt)}
		if r.Params.Penalized() {
			s.history = sample.NewHistory(r.Prompt)
		}
		if e.tokenizer != nil {
			s.text = e.tokenizer.Stream(r.Prompt, !r.KeepSpecial)
			s.stop = stops.NewMatcher(r.Params.IncludeStop)
		}
		seqs[i] = s
	}
	return seqs
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
		Params: &s.request.Params, Choice: uint32(s.choice), Position: len(s.tokens), Generated: s.generated(), History: s.history, EOG: e.eog, Vocab: e.vocab(),
	})
	if err != nil {
		return true, err
	}
	s.tokens = append(s.tokens, r.Token)
	if s.history != nil {
		s.history.Add(r.Token)
	}
	t := Token{Choice: s.choice, ID: r.Token, LogProb: r.LogProb, Top: append([]sample.TokenLogProb(nil), r.Top...)}
	switch {
	case s.request.Params.Ends(r.Token, e.eog):
		t.Finish = Stop
	case s.generated() == s.request.Params.MaxTokens, len(s.tokens) == e.maxLen:
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
	if s.generated() < s.request.Params.MinTokens {
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
