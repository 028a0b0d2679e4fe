package server

import (
	"net/http"
	"strings"

	"github.com/foretoken/foretoken/internal/chat/tools"
)

// chatChunk is a part of an answer that is streamed.
type chatChunk struct {
	ID             string            `json:"id"`
	Object         string            `json:"object"` // chat.completion.chunk
	Created        int64             `json:"created"`
	Model          string            `json:"model"`
	Choices        []chatChunkChoice `json:"choices"`
	Usage          any               `json:"usage,omitempty"` // *usage
	PromptTokenIDs []int32           `json:"prompt_token_ids,omitempty"`
}

type chatChunkChoice struct {
	Index        int           `json:"index"`
	Delta        chatDelta     `json:"delta"`
	LogProbs     *chatLogProbs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
	TokenIDs     []int32       `json:"token_ids,omitempty"`
}

type chatDelta struct {
	Role             string     `json:"role,omitempty"`
	Content          *string    `json:"content,omitempty"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	ToolCalls        []toolCall `json:"tool_calls,omitempty"`
}

// chunks returns what is new of an answer: one chunk for each stretch of the
// same kind, and one for its end. Clients that put streams together take an
// empty delta for the end of what came before it.
func (a *chatAnswer) chunks() []chatChunkChoice {
	var all []chatChunkChoice
	for i := 0; i < len(a.deltas); {
		var delta chatDelta
		i += delta.add(a.deltas[i:])
		if delta.Content != nil || delta.ReasoningContent != "" || delta.ToolCalls != nil {
			all = append(all, chatChunkChoice{Index: a.index, Delta: delta})
		}
	}
	if len(a.scores) > 0 || len(a.ids) > 0 { // tokens are told of once
		if len(all) == 0 {
			all = append(all, chatChunkChoice{Index: a.index})
		}
		all[0].LogProbs, all[0].TokenIDs = a.logProbs(), a.ids
	}
	if a.finish != "" && !a.told {
		all = append(all, chatChunkChoice{Index: a.index, FinishReason: &a.finish})
		a.told = true
	}
	a.deltas, a.scores, a.ids = nil, nil, nil
	return all
}

// add takes the deltas that go into one chunk and returns how many.
func (c *chatDelta) add(deltas []answerDelta) int {
	var b strings.Builder
	first := deltas[0]
	n := 0
	for _, d := range deltas {
		if d.Kind != first.Kind || d.Call != first.Call || first.Kind == tools.CallName && n > 0 {
			break
		}
		b.WriteString(d.Text)
		n++
	}
	text := b.String()
	switch first.Kind {
	case tools.Reasoning:
		c.ReasoningContent = text
	case tools.Content:
		c.Content = &text
	case tools.CallName:
		c.ToolCalls = []toolCall{{Index: &first.Call, ID: first.ID, Type: "function", Function: functionCall{Name: text}}}
	case tools.CallArguments:
		c.ToolCalls = []toolCall{{Index: &first.Call, Function: functionCall{Arguments: text}}}
	}
	return n
}

// stream sends what comes as it comes.
func (c *chatting) stream(w http.ResponseWriter, r *http.Request) error {
	e := &eventStream{w: w}
	begun := false
	for b, err := range c.all.batches(r.Context(), c.Limits.Ping) {
		switch {
		case err != nil:
			return e.fail(err)
		case b.prompt < 0:
			if err := e.ping(); err != nil {
				return err
			}
			continue
		}
		if !begun {
			begun = true
			if err := c.begin(e); err != nil {
				return err
			}
		}
		for i := range b.tokens {
			a := c.add(&b.tokens[i])
			if c.LogProbs || c.ReturnTokenIDs { // tokens are told apart
				if err := c.send(e, a.chunks()); err != nil {
					return err
				}
			}
		}
		for _, a := range c.answers {
			if err := c.send(e, a.chunks()); err != nil {
				return err
			}
		}
		if err := e.flush(); err != nil {
			return err
		}
		if c.over() {
			break
		}
	}
	if o := c.StreamOptions; o != nil && o.IncludeUsage {
		last := c.chunk()
		last.Usage = c.usage()
		if err := e.data(&last); err != nil {
			return err
		}
	}
	return e.done()
}

// begin sends the chunks that say who speaks.
func (c *chatting) begin(e *eventStream) error {
	empty := ""
	for i := range c.answers {
		chunk := c.chunk(chatChunkChoice{Index: i, Delta: chatDelta{Role: "assistant", Content: &empty}})
		if c.ReturnTokenIDs && i == 0 {
			chunk.PromptTokenIDs = c.promptIDs
		}
		if err := e.data(&chunk); err != nil {
			return err
		}
	}
	return nil
}

func (c *chatting) send(e *eventStream, choices []chatChunkChoice) error {
	for _, choice := range choices {
		chunk := c.chunk(choice)
		if err := e.data(&chunk); err != nil {
			return err
		}
	}
	return nil
}

func (c *chatting) chunk(choices ...chatChunkChoice) chatChunk {
	chunk := chatChunk{ID: c.head.ID, Object: "chat.completion.chunk", Created: c.head.Created, Model: c.head.Model, Choices: choices, Usage: c.usageOf(c.all)}
	if choices == nil {
		chunk.Choices = []chatChunkChoice{}
	}
	return chunk
}
