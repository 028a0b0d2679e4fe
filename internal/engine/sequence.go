package engine

import (
	"hash/maphash"
	"slices"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/sched"
	"github.com/foretoken/foretoken/internal/spec"
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
	Drafted bool                  // was proposed by a drafter, and the model agreed
	LogProb float64               // if the request asked for it
	Top     []sample.TokenLogProb // the most likely tokens, likewise
}

// A group is a request on its way. The loop owns it, and the sequences of its
// choices.
type group struct {
	Request
	out      *Generation
	choices  []*sequence
	live     int  // choices that have not ended
	begun    bool // the first of them has begun to run
	prompted bool // it has computed the prompt

	scores []TokenScore // of the prompt, if they were asked for
	pool   []float64    // sum of final states, likewise
}

// A sequence is one choice of a request.
type sequence struct {
	*group
	id     uint64 // in the scheduler
	choice int

	tokens   []int32 // prompt and output
	prompt   int     // how many of them are the prompt
	computed int     // how many of them are in the cache
	cached   int     // how many were found there
	table    kvcache.Table

	draftState

	history *sample.History // nil unless penalties need it
	text    *tokenizer.Stream
	stop    *sample.StopMatcher
}

// generated is the number of output tokens.
func (s *sequence) generated() int { return len(s.tokens) - s.prompt }

// newGroup makes the sequences of a request's choices.
func (e *Engine) newGroup(out *Generation, r Request) *group {
	r.Prompt = slices.Clone(r.Prompt) // the caller may use its own again
	g := &group{Request: r, out: out, live: max(r.Choices, 1)}
	stops := sample.NewStopSet(r.Params.Stop)
	for i := range g.live {
		s := &sequence{group: g, choice: i, tokens: slices.Clip(r.Prompt), prompt: len(r.Prompt), draftState: e.speculator.admit(&r)}
		if r.Params.Penalized() {
			s.history = sample.NewHistory(r.Prompt)
		}
		if e.tokenizer != nil {
			s.text = e.tokenizer.Stream(r.Prompt, !r.KeepSpecial)
			s.stop = stops.NewMatcher(r.Params.IncludeStop)
		}
		g.choices = append(g.choices, s)
	}
	return g
}

// demand is what the scheduler has to know of s.
func (e *Engine) demand(s *sequence) sched.Request {
	r := sched.Request{ID: s.id, Prompt: s.prompt, Key: s.Key, Priority: s.Priority}
	if !s.PromptOnly {
		r.MaxNew = e.maxLen - s.prompt
		if s.Params.MaxTokens > 0 {
			r.MaxNew = min(r.MaxNew, s.Params.MaxTokens)
		}
	}
	if s.prompt >= sched.InBatchPrefix {
		var h maphash.Hash
		h.SetSeed(e.hashSeed)
		h.WriteString(s.Namespace)
		for _, token := range s.Prompt[:sched.InBatchPrefix] {
			maphash.WriteComparable(&h, token)
		}
		r.Prefix = max(h.Sum64(), 1)
	}
	return r
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

// sampling is what drawing the next token of s needs besides logits.
func (s *sequence) sampling(e *Engine) sample.Row {
	return sample.Row{
		Params: &s.Params, Choice: uint32(s.choice), Position: len(s.tokens), Generated: s.generated(), History: s.history, EOG: e.eog, Vocab: e.vocab(),
	}
}

// next draws a token from logits, which follow a row of a draft, and commits it.
// It reports whether it was the last.
func (s *sequence) next(e *Engine, logits []float32, d *spec.Draft, row int) (ended bool, err error) {
	at := s.sampling(e)
	r, err := e.sampler.Sample(logits, &at)
	if err != nil {
		return true, err
	}
	return s.add(e, r, d != nil && d.Child(row, r.Token) >= 0), nil
}

// add commits a token and sends it. It reports whether it was the last.
func (s *sequence) add(e *Engine, r sample.Result, drafted bool) (ended bool) {
	s.tokens = append(s.tokens, r.Token)
	if s.history != nil {
		s.history.Add(r.Token)
	}
	e.stats.OutputTokens++
	t := Token{Choice: s.choice, ID: r.Token, Drafted: drafted, LogProb: r.LogProb, Top: append([]sample.TokenLogProb(nil), r.Top...)}
	switch {
	case s.Params.Ends(r.Token, e.eog):
		t.Finish = Stop
	case s.generated() == s.Params.MaxTokens, len(s.tokens) == e.maxLen:
		t.Finish = Length
	}
	if s.text != nil {
		s.decode(&t)
	}
	s.group.out.push(t)
	return t.Finish != ""
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
	if s.generated() < s.Params.MinTokens {
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
