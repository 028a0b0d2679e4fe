package server

import (
	"crypto/rand"
	"strings"

	"github.com/foretoken/foretoken/internal/chat/tools"
	"github.com/foretoken/foretoken/internal/engine"
)

// chatCompletion is an answer.
type chatCompletion struct {
	ID             string                    `json:"id"`
	Object         string                    `json:"object"` // chat.completion
	Created        int64                     `json:"created"`
	Model          string                    `json:"model"`
	Choices        []chatChoice              `json:"choices"`
	Usage          *usage                    `json:"usage"`
	PromptLogProbs []map[int32]promptLogProb `json:"prompt_logprobs,omitempty"`
	PromptTokenIDs []int32                   `json:"prompt_token_ids,omitempty"`
}

type chatChoice struct {
	Index        int           `json:"index"`
	Message      chatMessage   `json:"message"`
	LogProbs     *chatLogProbs `json:"logprobs"`
	FinishReason string        `json:"finish_reason"`
	TokenIDs     []int32       `json:"token_ids,omitempty"`
}

type chatMessage struct {
	Role             string     `json:"role"`
	Content          *string    `json:"content"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	Refusal          *string    `json:"refusal"` // null: models here know none
	ToolCalls        []toolCall `json:"tool_calls,omitempty"`
}

// toolCall is a call in an answer, or in a chunk what is new of one.
type toolCall struct {
	Index    *int         `json:"index,omitempty"` // in chunks
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"` // function
	Function functionCall `json:"function"`
}

type functionCall struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// A chatAnswer follows one answer of the model: it takes its text apart, and
// keeps what has come until somebody takes it.
type chatAnswer struct {
	of     *chatting
	index  int
	parser tools.Parser
	finish string // why it has ended; "": it has not
	cut    bool   // and the model has not
	told   bool   // in a chunk

	deltas []answerDelta // since the last take, as are ids and scores
	ids    []int32
	scores []chatLogProb
	spells *speller // gives scores to deltas of content; nil: they are those of the answer

	calls     int // that have begun
	output    int // tokens
	reasoning int // tokens before the first of the answer itself
	thought   bool
	answering bool
}

// An answerDelta is a delta with the scores of its tokens, if they are asked for
// by content.
type answerDelta struct {
	tools.Delta
	scores []chatLogProb
}

func newChatAnswer(of *chatting, index int, p tools.Parser) *chatAnswer {
	return &chatAnswer{of: of, index: index, parser: p}
}

// add takes a token. What comes behind the only call that a request wants does
// not count.
func (a *chatAnswer) add(t *engine.Token) {
	if a.finish != "" {
		return
	}
	a.output++
	if a.of.ReturnTokenIDs {
		a.ids = append(a.ids, t.ID)
	}
	switch {
	case a.spells != nil:
		a.spells.add(t.Text, a.of.chatLogProb(t), a.of.hidden(t))
	case a.of.LogProbs:
		a.scores = append(a.scores, a.of.chatLogProb(t))
	}
	a.take(a.parser.Write(t.Text))
	if t.Finish != "" && a.finish == "" {
		a.take(a.parser.Close())
		if a.finish == "" {
			a.finish = string(t.Finish)
		}
		if a.calls > 0 && t.Finish == engine.Stop {
			a.finish = "tool_calls"
		}
	}
}

// take keeps deltas and counts.
func (a *chatAnswer) take(deltas []tools.Delta) {
	for _, d := range deltas {
		if a.finish != "" {
			return
		}
		switch d.Kind {
		case tools.Reasoning:
			a.thought = true
		case tools.CallName:
			a.calls++
			if d.ID == "" {
				d.ID = "call_" + rand.Text()
			}
			fallthrough
		case tools.Content:
			if !a.answering && a.thought {
				a.reasoning = a.output - 1
			}
			a.answering = true
		case tools.CallEnd:
			if one := a.of.ParallelCalls; one != nil && !*one {
				a.finish, a.cut = "tool_calls", true
			}
		}
		told := answerDelta{Delta: d}
		if a.spells != nil {
			told.scores = a.spells.tell(d)
		}
		a.deltas = append(a.deltas, told)
	}
	if a.thought && !a.answering {
		a.reasoning = a.output
	}
}

// logProbs are the scores since the last take, nil if nobody asked.
func (a *chatAnswer) logProbs() *chatLogProbs {
	if !a.of.LogProbs {
		return nil
	}
	p := &chatLogProbs{Content: a.scores}
	if p.Content == nil {
		p.Content = []chatLogProb{}
	}
	return p
}

// choice is the whole answer.
func (a *chatAnswer) choice() chatChoice {
	m := chatMessage{Role: "assistant"}
	var content, reasoning strings.Builder
	var arguments []*strings.Builder // of each call
	for _, d := range a.deltas {
		switch d.Kind {
		case tools.Reasoning:
			reasoning.WriteString(d.Text)
		case tools.Content:
			content.WriteString(d.Text)
		case tools.CallName:
			m.ToolCalls = append(m.ToolCalls, toolCall{ID: d.ID, Type: "function", Function: functionCall{Name: d.Text}})
			arguments = append(arguments, new(strings.Builder))
		case tools.CallArguments:
			arguments[d.Call].WriteString(d.Text)
		}
	}
	for i, text := range arguments {
		m.ToolCalls[i].Function.Arguments = text.String()
	}
	m.ReasoningContent = reasoning.String()
	if text := content.String(); text != "" || len(m.ToolCalls) == 0 {
		m.Content = &text
	}
	return chatChoice{Index: a.index, Message: m, LogProbs: a.logProbs(), FinishReason: a.finish, TokenIDs: a.ids}
}
