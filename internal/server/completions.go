package server

import (
	"net/http"
	"slices"
	"time"

	"github.com/foretoken/foretoken/internal/engine"
)

// completionRequest is the body of POST /v1/completions.
type completionRequest struct {
	openAIFields
	generationFields
	Prompt     promptField `json:"prompt"`
	MaxTokens  *int        `json:"max_tokens"`
	LogProbs   *int        `json:"logprobs"`
	BestOf     *int        `json:"best_of"`
	Echo       bool        `json:"echo"`
	AddSpecial *bool       `json:"add_special_tokens"`
}

func (q *completionRequest) check() error {
	if err := q.openAIFields.check(); err != nil {
		return err
	}
	if err := q.checkGeneration(); err != nil {
		return err
	}
	switch {
	case q.MaxTokens != nil && *q.MaxTokens < 0:
		return badRequest("max_tokens", "max_tokens is %d, expected 0 or more", *q.MaxTokens)
	case q.BestOf != nil && *q.BestOf < q.choices():
		return badRequest("best_of", "best_of is %d, expected at least n, %d", *q.BestOf, q.choices())
	case q.BestOf != nil && *q.BestOf > engine.MaxChoices:
		return badRequest("best_of", "best_of is %d, expected at most %d", *q.BestOf, engine.MaxChoices)
	case q.BestOf != nil && *q.BestOf > q.choices() && q.Stream:
		return badRequest("best_of", "best_of is %d with stream: true; which %d are best shows at their end", *q.BestOf, q.choices())
	}
	return checkTop("logprobs", q.LogProbs)
}

// completion is an answer, or a chunk of one.
type completion struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"` // text_completion
	Created int64              `json:"created"`
	Model   string             `json:"model"`
	Choices []completionChoice `json:"choices"`
	Usage   any                `json:"usage,omitempty"` // *usage
}

type completionChoice struct {
	Index          int                       `json:"index"`
	Text           string                    `json:"text"`
	LogProbs       *textLogProbs             `json:"logprobs"`
	FinishReason   *engine.FinishReason      `json:"finish_reason"`
	PromptLogProbs []map[int32]promptLogProb `json:"prompt_logprobs,omitempty"`
	TokenIDs       []int32                   `json:"token_ids,omitempty"`
	PromptTokenIDs []int32                   `json:"prompt_token_ids,omitempty"`
}

// completing is a request on its way.
type completing struct {
	*Server
	*completionRequest
	prompts [][]int32
	all     generations
	drawn   int                 // continuations of each prompt
	answers []*completionAnswer // drawn of each prompt, in order
	head    completion
}

// completions serves POST /v1/completions.
func (s *Server) completions(w http.ResponseWriter, r *http.Request) error {
	c, err := s.complete(r)
	if err != nil {
		return err
	}
	defer c.all.Close()
	if c.Stream {
		return c.stream(w, r)
	}
	for b, err := range c.all.batches(r.Context(), 0) {
		if err != nil {
			return err
		}
		c.add(b)
	}
	c.head.Choices, c.head.Usage = c.best(), c.all.usage()
	return respond(w, &c.head)
}

// complete reads a request and submits it.
func (s *Server) complete(r *http.Request) (*completing, error) {
	q := new(completionRequest)
	if err := readRequest(r, q); err != nil {
		return nil, err
	}
	if err := s.checkModel(q.Model); err != nil {
		return nil, err
	}
	prompts, err := s.encode(&q.Prompt, "prompt", q.AddSpecial == nil || *q.AddSpecial)
	if err != nil {
		return nil, err
	}
	maxTokens := 16 // OpenAI's default
	set(&maxTokens, q.MaxTokens)
	p, err := s.params(&q.samplingFields, &maxTokens)
	if err != nil {
		return nil, err
	}
	c := &completing{Server: s, completionRequest: q, prompts: prompts, drawn: q.choices()}
	set(&c.drawn, q.BestOf)
	for _, n := range []*int{q.LogProbs, q.PromptLogProbs} {
		if n != nil {
			p.LogProbs = max(p.LogProbs, *n)
		}
	}
	if c.drawn > q.choices() {
		p.LogProbs = max(p.LogProbs, 0)
	}
	c.all, err = s.submit(r, &q.samplingFields, engine.Request{
		Params: p, KeepSpecial: q.keepsSpecial(), Choices: c.drawn, PromptOnly: maxTokens == 0,
		ScorePrompt: q.PromptLogProbs != nil || q.Echo && q.LogProbs != nil,
	}, "prompt", prompts)
	if err != nil {
		return nil, err
	}
	c.head = completion{ID: "cmpl-" + requestID(r.Context()), Object: "text_completion", Created: time.Now().Unix(), Model: s.Models[0]}
	for i := range c.drawn * len(prompts) {
		c.answers = append(c.answers, c.newAnswer(i))
	}
	return c, nil
}

// add takes what has come and returns the answers that have more to say, in order.
func (c *completing) add(b batch) []*completionAnswer {
	of := c.answers[b.prompt*c.drawn : (b.prompt+1)*c.drawn]
	for _, a := range of {
		if len(b.tokens) > 0 || b.ended {
			a.begin(c.all[b.prompt])
		}
		if b.ended && len(b.tokens) == 0 && a.finish == "" {
			a.end(engine.Length) // nothing was to be generated
		}
	}
	for i := range b.tokens {
		of[b.tokens[i].Choice].add(&b.tokens[i])
	}
	return slices.DeleteFunc(slices.Clone(of), func(a *completionAnswer) bool { return !a.news })
}

// best returns the choices of the answer: of those that were drawn, the most
// likely of each prompt.
func (c *completing) best() []completionChoice {
	choices := make([]completionChoice, 0, len(c.prompts)*c.choices())
	for i := range c.prompts {
		of := slices.Clone(c.answers[i*c.drawn : (i+1)*c.drawn])
		if c.drawn > c.choices() {
			slices.SortStableFunc(of, func(a, b *completionAnswer) int { return a.compare(b) })
		}
		for _, a := range of[:c.choices()] {
			choice := a.take()
			choice.Index = len(choices)
			choices = append(choices, choice)
		}
	}
	return choices
}

// stream sends what comes as it comes.
func (c *completing) stream(w http.ResponseWriter, r *http.Request) error {
	e := &eventStream{w: w}
	for b, err := range c.all.batches(r.Context(), c.Limits.Ping) {
		switch {
		case err != nil:
			return e.fail(err)
		case b.prompt < 0:
			err = e.ping()
		default:
			err = c.send(e, b)
		}
		if err != nil {
			return err
		}
	}
	if o := c.StreamOptions; o != nil && o.IncludeUsage {
		c.head.Choices, c.head.Usage = []completionChoice{}, c.all.usage()
		if err := e.data(&c.head); err != nil {
			return err
		}
	}
	return e.done()
}

// send sends one chunk for each choice of a batch, or one for each token where
// tokens are told apart.
func (c *completing) send(e *eventStream, b batch) error {
	if c.LogProbs != nil || c.ReturnTokenIDs {
		for i := range b.tokens {
			if err := c.chunks(e, c.add(batch{prompt: b.prompt, tokens: b.tokens[i : i+1]})); err != nil {
				return err
			}
		}
		b.tokens = nil
	}
	if err := c.chunks(e, c.add(b)); err != nil {
		return err
	}
	return e.flush()
}

func (c *completing) chunks(e *eventStream, answers []*completionAnswer) error {
	for _, a := range answers {
		chunk := c.head
		chunk.Choices, chunk.Usage = []completionChoice{a.take()}, c.usageOf(c.all)
		if err := e.data(&chunk); err != nil {
			return err
		}
	}
	return nil
}
