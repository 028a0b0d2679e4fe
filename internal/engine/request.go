package engine

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/sample"
)

// A Request asks for continuations of a prompt.
type Request struct {
	Prompt []int32 // not empty
	Params sample.Params
	// KeepSpecial leaves special tokens in the text.
	KeepSpecial bool

	// Choices is the number of continuations; 0 is one. They differ in their
	// random numbers, and the prompt is computed once for all.
	Choices int
	// PromptOnly computes the prompt and generates nothing.
	PromptOnly bool
	// ScorePrompt asks for the log-probability of the prompt's tokens, with as
	// many of the most likely tokens as Params.LogProbs says. No cached prefix can
	// be used then.
	ScorePrompt bool
	// Pooling asks for the pooled final states of the prompt; "": none.
	Pooling Pooling
	// Speculation changes how tokens are drafted; nil: as the engine does.
	Speculation *RequestSpeculation

	// ID is what logs and Requests call it; "": its number.
	ID string
	// Key is whose request it is: keys get equal shares of the engine.
	Key string
	// Priority orders requests under the priority policy, the highest first.
	Priority int
	// Namespace keeps the request's cached prefixes from those of other
	// namespaces: whether a prefix is cached shows in how long an answer takes.
	Namespace string
}

// A RequestError reports a request that cannot be meant. Field is the name
// that the HTTP API has for what is wrong, if it is one field.
type RequestError struct {
	Field string
	Err   error
}

func (e *RequestError) Error() string { return e.Err.Error() }
func (e *RequestError) Unwrap() error { return e.Err }

// MaxChoices bounds Request.Choices.
const MaxChoices = 128

// check returns what is wrong with r.
func (e *Engine) check(r *Request) error {
	refuse := func(field, format string, args ...any) error {
		return &RequestError{Field: field, Err: fmt.Errorf(format, args...)}
	}
	if err := r.Params.Validate(e.vocab()); err != nil {
		return &RequestError{Err: err}
	}
	switch n := len(r.Prompt); {
	case n == 0:
		return refuse("prompt", "the prompt is empty")
	case n > e.maxLen:
		return refuse("prompt", "the prompt has %d tokens, the model takes %d", n, e.maxLen)
	case n == e.maxLen && !r.PromptOnly:
		return refuse("prompt", "the prompt has %d tokens, which leaves none of the model's %d for an answer", n, e.maxLen)
	}
	for i, id := range r.Prompt {
		if id < 0 || int(id) >= e.Config().Vocab {
			return refuse("prompt", "prompt token %d is %d, expected 0 to %d", i, id, e.Config().Vocab-1)
		}
	}
	switch {
	case r.Choices < 0 || r.Choices > MaxChoices:
		return refuse("n", "n is %d, expected 1 to %d", r.Choices, MaxChoices)
	case r.Choices > 1 && r.PromptOnly:
		return refuse("n", "n is %d where nothing is generated", r.Choices)
	case r.Speculation != nil && (r.Speculation.Tokens < 0 || r.Speculation.Tokens > mostDrafted):
		return refuse("speculation", "num_speculative_tokens is %d, expected 0 to %d", r.Speculation.Tokens, mostDrafted)
	case r.Speculation != nil && !e.speculator.has(r.Speculation.Method):
		return refuse("speculation", "speculative method %q: this server drafts with %s", r.Speculation.Method, e.speculator.names())
	case r.Pooling != "" && r.Pooling != MeanPooling && r.Pooling != LastPooling:
		return refuse("pooling", "pooling %q: expected %s or %s", r.Pooling, MeanPooling, LastPooling)
	case len(r.Params.Stop) > 0 && e.tokenizer == nil:
		return refuse("stop", "stop strings: %w", e.noVocab)
	}
	return nil
}
