package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/chat/tools"
	"github.com/foretoken/foretoken/internal/chat/value"
	"github.com/foretoken/foretoken/internal/engine"
)

// conversationFields say how a conversation becomes a prompt.
type conversationFields struct {
	Messages   []messageField `json:"messages"`
	Tools      []toolField    `json:"tools"`
	Kwargs     *value.Object  `json:"chat_template_kwargs"`
	Generation *bool          `json:"add_generation_prompt"`
	Continue   bool           `json:"continue_final_message"`
}

// chatRequest is the body of POST /v1/chat/completions.
type chatRequest struct {
	openAIFields
	generationFields
	conversationFields
	AddSpecial          bool           `json:"add_special_tokens"` // beside those of the template
	MaxTokens           *int           `json:"max_tokens"`
	MaxCompletionTokens *int           `json:"max_completion_tokens"`
	LogProbs            bool           `json:"logprobs"`
	TopLogProbs         *int           `json:"top_logprobs"`
	ToolChoice          toolChoice     `json:"tool_choice"`
	ParallelCalls       *bool          `json:"parallel_tool_calls"`
	ResponseFormat      responseFormat `json:"response_format"`
	ReasoningEffort     string         `json:"reasoning_effort"`
	Modalities          modalities     `json:"modalities"`
}

func (q *chatRequest) check() error {
	if err := q.openAIFields.check(); err != nil {
		return err
	}
	if err := q.checkGeneration(); err != nil {
		return err
	}
	switch max, newer := q.MaxTokens, q.MaxCompletionTokens; {
	case max != nil && newer != nil && *max != *newer:
		return badRequest("max_tokens", "max_tokens is %d and max_completion_tokens %d: one will do", *max, *newer)
	case max != nil && *max < 1:
		return badRequest("max_tokens", "max_tokens is %d, expected 1 or more", *max)
	case newer != nil && *newer < 1:
		return badRequest("max_completion_tokens", "max_completion_tokens is %d, expected 1 or more", *newer)
	case q.TopLogProbs != nil && !q.LogProbs:
		return badRequest("top_logprobs", "top_logprobs without logprobs: true")
	case q.ToolChoice != "" && q.ToolChoice != "none" && len(q.Tools) == 0:
		return badRequest("tool_choice", "tool_choice without tools")
	}
	return checkTop("top_logprobs", q.TopLogProbs)
}

// maxTokens is the bound of an answer, nil for none, under either name.
func (q *chatRequest) maxTokens() *int {
	if q.MaxTokens != nil {
		return q.MaxTokens
	}
	return q.MaxCompletionTokens
}

// offered are the functions that the model may call: with tool_choice none the
// model does not hear of any, so that it calls none.
func (q *chatRequest) offered() []chat.Value {
	if q.ToolChoice == "none" {
		return nil
	}
	return toolValues(q.Tools)
}

// promptOf renders a conversation and encodes it. special adds the tokens that
// texts begin and end with; most templates write them.
func (s *Server) promptOf(ctx context.Context, f *conversationFields, offered []chat.Value, kwargs *value.Object, special bool) ([]int32, error) {
	if len(f.Messages) == 0 {
		return nil, badRequest("messages", "messages is missing or empty")
	}
	if !s.engine.HasTemplate() {
		return nil, badRequest("messages", "the model has no chat template; /v1/completions continues text, and --chat-template gives it one")
	}
	if len(offered) > 0 && s.Format.Calls == "" {
		return nil, badRequest("tools", "how this model writes calls of tools is not known; --tool-call-parser says it")
	}
	c := chat.Conversation{Tools: offered, Kwargs: kwargs, ContinueFinalMessage: f.Continue, AddGenerationPrompt: !f.Continue}
	set(&c.AddGenerationPrompt, f.Generation)
	for i := range f.Messages {
		c.Messages = append(c.Messages, f.Messages[i].message())
	}
	text, err := s.engine.Prompt(ctx, c)
	if err != nil {
		return nil, promptError(ctx, err)
	}
	ids, err := s.tokens("messages", text, special)
	if err != nil {
		return nil, err
	}
	return ids, s.checkPrompt("messages", "the prompt of the conversation", ids)
}

// promptError says whose fault it is that a conversation has no prompt: its own,
// but for what ended the rendering from outside.
func promptError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if variable := (*chat.VariableError)(nil); errors.As(err, &variable) {
		return badRequest("chat_template_kwargs", "%v", err)
	}
	return badRequest("messages", "%v", err)
}

// turn says what a parser has to know of a request with that prompt.
func (s *Server) turn(prompt []int32, offered []chat.Value) tools.Turn {
	t, err := s.engine.Tokenizer()
	if err != nil {
		return tools.Turn{Tools: offered}
	}
	inside := s.Format.Inside(prompt, func(id int32) (string, bool) { return string(t.Bytes(id)), t.IsSpecial(id) })
	return tools.Turn{Reasoning: inside, Tools: offered}
}

// needsSpecial reports whether marks of reasoning or calls are special tokens of
// the model.
func (s *Server) needsSpecial(offered bool) bool {
	t, err := s.engine.Tokenizer()
	return err == nil && s.Format.Special(offered, func(token string) bool {
		id, ok := t.ID(token)
		return ok && t.IsSpecial(id)
	})
}

// chatting is a request on its way.
type chatting struct {
	*Server
	*chatRequest
	promptIDs []int32
	all       generations
	answers   []*chatAnswer
	head      chatCompletion
}

// chatCompletions serves POST /v1/chat/completions.
func (s *Server) chatCompletions(w http.ResponseWriter, r *http.Request) error {
	q := new(chatRequest)
	if err := readRequest(r, q); err != nil {
		return err
	}
	var err error
	if q.Kwargs, err = s.kwargs(q.Kwargs, "reasoning_effort", q.ReasoningEffort, len(q.offered()) > 0); err != nil {
		return err
	}
	c, err := s.chat(r, q)
	if err != nil {
		return err
	}
	defer c.all.Close()
	if c.Stream {
		return c.stream(w, r)
	}
	if err := c.collect(r.Context()); err != nil {
		return err
	}
	for _, a := range c.answers {
		c.head.Choices = append(c.head.Choices, a.choice())
	}
	if c.PromptLogProbs != nil {
		c.head.PromptLogProbs = c.promptLogProbs(*c.PromptLogProbs, c.all[0].Prompt())
	}
	if c.ReturnTokenIDs {
		c.head.PromptTokenIDs = c.promptIDs
	}
	c.head.Usage = c.usage()
	return respond(w, &c.head)
}

// chat submits a request.
func (s *Server) chat(r *http.Request, q *chatRequest) (*chatting, error) {
	if err := s.checkModel(q.Model); err != nil {
		return nil, err
	}
	p, err := s.params(&q.samplingFields, q.maxTokens())
	if err != nil {
		return nil, err
	}
	offered := q.offered()
	ids, err := s.promptOf(r.Context(), &q.conversationFields, offered, q.Kwargs, q.AddSpecial)
	if err != nil {
		return nil, err
	}
	if q.LogProbs {
		p.LogProbs = 0
		set(&p.LogProbs, q.TopLogProbs)
	}
	if q.PromptLogProbs != nil {
		p.LogProbs = max(p.LogProbs, *q.PromptLogProbs)
	}
	turn := s.turn(ids, offered)
	c := &chatting{Server: s, chatRequest: q, promptIDs: ids}
	for i := range q.choices() {
		c.answers = append(c.answers, newChatAnswer(c, i, s.Format.NewParser(turn)))
	}
	c.all, err = s.submit(r, &q.samplingFields, engine.Request{
		Params: p, Choices: q.choices(), ScorePrompt: q.PromptLogProbs != nil,
		KeepSpecial: q.keepsSpecial() || s.needsSpecial(len(offered) > 0),
	}, "messages", [][]int32{ids})
	if err != nil {
		return nil, err
	}
	c.head = chatCompletion{ID: "chatcmpl-" + requestID(r.Context()), Object: "chat.completion", Created: time.Now().Unix(), Model: s.Models[0]}
	return c, nil
}

func (c *chatting) add(t *engine.Token) *chatAnswer {
	a := c.answers[t.Choice]
	a.add(t)
	return a
}

// collect reads the answers to their end.
func (c *chatting) collect(ctx context.Context) error {
	for b, err := range c.all.batches(ctx, 0) {
		if err != nil {
			return err
		}
		for i := range b.tokens {
			c.add(&b.tokens[i])
		}
		if c.over() {
			break
		}
	}
	return nil
}

// over reports whether all answers have ended, one of them before the model has:
// what it may still write behind the only call that a request wants is not waited
// for.
func (c *chatting) over() bool {
	cut := false
	for _, a := range c.answers {
		if a.finish == "" {
			return false
		}
		cut = cut || a.cut
	}
	return cut
}

func (c *chatting) usage() *usage {
	u := c.all.usage()
	if u.Details == nil {
		u.Details = new(completionDetail)
	}
	for _, a := range c.answers {
		u.Details.ReasoningTokens += a.reasoning
	}
	return u
}
