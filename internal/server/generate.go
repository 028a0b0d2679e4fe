package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/foretoken/foretoken/internal/engine"
)

// generations are the generations of one HTTP request, one for each prompt.
type generations []*generation

// submit queues a request for each prompt, which came in field. All or none are
// accepted.
func (s *Server) submit(r *http.Request, f *samplingFields, q engine.Request, field string, prompts [][]int32) (generations, error) {
	choices := max(q.Choices, 1)
	if n := choices * len(prompts); n > maxPrompts {
		return nil, badRequest("n", "%d prompts with %d choices each: expected at most %d answers", len(prompts), choices, maxPrompts)
	}
	if most := s.engine.MaxQueued(); most > 0 && len(prompts) > most { // it would never find room
		return nil, badRequest(field, "%s has %d prompts: expected at most %d, as many as this server lets wait", field, len(prompts), most)
	}
	if err := s.limitOutput(&q, len(prompts)); err != nil {
		return nil, err
	}
	if err := s.checkSpeculation(f.Speculation); err != nil {
		return nil, err
	}
	q.ID, q.Key, q.Priority, q.Namespace = requestID(r.Context()), apiKey(r.Context()), f.Priority, f.CacheSalt
	q.Speculation = f.Speculation.RequestSpeculation
	var all generations
	for _, ids := range prompts {
		if room := s.engine.MaxModelLen() - len(ids); q.Params.MinTokens > room {
			all.Close()
			return nil, tooLong("min_tokens", "min_tokens is %d, but the prompt of %d tokens leaves %d of the model's %d", q.Params.MinTokens, len(ids), room, s.engine.MaxModelLen())
		}
		q.Prompt = ids
		g, err := s.start(r.Context(), q)
		if err != nil {
			all.Close()
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

// limitOutput holds a request to Limits.Output.
func (s *Server) limitOutput(q *engine.Request, prompts int) error {
	if s.Limits.Output <= 0 || q.PromptOnly {
		return nil
	}
	answers := prompts * max(q.Choices, 1)
	most := s.Limits.Output / answers
	switch {
	case most == 0:
		return badRequest("n", "%d answers: this server writes %d tokens for a request", answers, s.Limits.Output)
	case q.Params.MaxTokens > most:
		return badRequest("max_tokens", "max_tokens is %d for each of %d answers: this server writes %d tokens for a request", q.Params.MaxTokens, answers, s.Limits.Output)
	case q.Params.MaxTokens == 0:
		q.Params.MaxTokens = most
	}
	return nil
}

// Close ends what has not ended.
func (all generations) Close() {
	for _, g := range all {
		g.Close()
	}
}

// A batch is what has come of a prompt's generation since the last batch.
type batch struct {
	prompt int // whose; -1: nothing has come for a while
	tokens []engine.Token
	ended  bool // and no more will
}

// An event is a batch, or why there will be no more.
type event struct {
	batch
	err error // io.EOF: it has ended as it should
}

// read reads g until its end or ctx's.
func (g *generation) read(ctx context.Context, prompt int, events chan<- event) {
	for {
		tokens, err := g.Next(ctx)
		select {
		case events <- event{batch{prompt: prompt, tokens: tokens}, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// batches yields what comes, in the order in which it comes, or the error that
// ends it early. An empty batch comes whenever nothing else has come for the time
// of silence; 0: none does.
func (all generations) batches(ctx context.Context, silence time.Duration) iter.Seq2[batch, error] {
	return func(yield func(batch, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var readers sync.WaitGroup
		defer readers.Wait()
		defer cancel()
		events := make(chan event) // who does not take leaves it in the engine's queue
		for i, g := range all {
			readers.Go(func() { g.read(ctx, i, events) })
		}
		quiet := time.NewTimer(cmp.Or(silence, math.MaxInt64))
		defer quiet.Stop()
		for live := len(all); live > 0; {
			e := event{batch: batch{prompt: -1}}
			select {
			case e = <-events:
				if errors.Is(e.err, io.EOF) {
					live--
					e.err, e.ended = nil, true
				}
			case <-quiet.C:
			case <-ctx.Done():
				e.err = context.Cause(ctx)
			}
			if !yield(e.batch, e.err) || e.err != nil {
				return
			}
			quiet.Reset(cmp.Or(silence, math.MaxInt64))
		}
	}
}

// usage is what a request took, in tokens.
type usage struct {
	PromptTokens     int               `json:"prompt_tokens"`
	CompletionTokens int               `json:"completion_tokens"`
	TotalTokens      int               `json:"total_tokens"`
	PromptDetails    promptDetails     `json:"prompt_tokens_details"`
	Details          *completionDetail `json:"completion_tokens_details,omitempty"`
	Speculation      *speculationUsage `json:"speculation,omitempty"`
}

type promptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

type completionDetail struct {
	ReasoningTokens int     `json:"reasoning_tokens"`
	Accepted        *uint64 `json:"accepted_prediction_tokens,omitempty"` // of those that were drafted, if any were
	Rejected        *uint64 `json:"rejected_prediction_tokens,omitempty"` // the others
}

// usage is what all have taken so far. A prompt counts once, however many
// continuations it has.
func (all generations) usage() *usage {
	var u usage
	var drafts engine.SpeculationStats
	for _, g := range all {
		p := g.Progress()
		drafts.Add(p.Speculation)
		u.PromptTokens += p.Prompt
		u.CompletionTokens += p.Output
		u.PromptDetails.CachedTokens += p.Cached
	}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	if u.Speculation = speculationOf(&drafts); u.Speculation != nil {
		u.Details = &completionDetail{Accepted: &drafts.Accepted, Rejected: new(drafts.Drafted - drafts.Accepted)}
	}
	return &u
}

// generationFields are what requests for text have in common.
type generationFields struct {
	samplingFields
	N              *int           `json:"n"`
	Stream         bool           `json:"stream"`
	StreamOptions  *streamOptions `json:"stream_options"`
	PromptLogProbs *int           `json:"prompt_logprobs"`
	ReturnTokenIDs bool           `json:"return_token_ids"`
}

// checkGeneration says what is wrong with these fields beside their types.
func (f *generationFields) checkGeneration() error {
	switch {
	case f.StreamOptions != nil && !f.Stream:
		return badRequest("stream_options", "stream_options without stream: true")
	case f.N != nil && (*f.N < 1 || *f.N > engine.MaxChoices): // before there is anything for each
		return badRequest("n", "n is %d, expected 1 to %d", *f.N, engine.MaxChoices)
	case f.PromptLogProbs != nil && f.Stream:
		return badRequest("prompt_logprobs", "prompt_logprobs with stream: true; they come with an answer that is not streamed")
	}
	return checkTop("prompt_logprobs", f.PromptLogProbs)
}

func checkTop(field string, n *int) error {
	if n != nil && (*n < 0 || *n > maxTop) {
		return badRequest(field, "%s is %d, expected 0 to %d", field, *n, maxTop)
	}
	return nil
}

// choices is the number of continuations of a prompt.
func (f *generationFields) choices() int {
	if f.N == nil {
		return 1
	}
	return *f.N
}

// streamOptions say what a stream tells beside the answer.
type streamOptions struct {
	IncludeUsage    bool `json:"include_usage"`
	ContinuousUsage bool `json:"continuous_usage_stats"`
}

// usageOf is what a chunk of a stream says of usage: nothing, null where the
// last chunk will say it, or what it is so far.
func (f *generationFields) usageOf(all generations) any {
	switch o := f.StreamOptions; {
	case o == nil || !o.IncludeUsage && !o.ContinuousUsage:
		return nil
	case o.ContinuousUsage:
		return all.usage()
	}
	return json.RawMessage("null")
}

// checkModel refuses requests for another model.
func (s *Server) checkModel(name string) error {
	if name == "" {
		return nil
	}
	if slices.Contains(s.Models, name) {
		return nil
	}
	return &Error{
		Status: http.StatusNotFound, Type: "not_found_error", Param: "model", Code: "model_not_found",
		Message: "the model " + quote(name) + " is not here; this server has " + strings.Join(s.Models, ", "),
	}
}
