// Package deepseek is the chat format of DeepSeek V3.2 and V4, both ways: conversations to prompts, and
// what the model generates to reasoning, content and tool calls. Their checkpoints have no chat template;
// they come with a program instead. Prompts here are its, byte for byte.
//
// Calls are written in DSML, tags with a control token in them:
//
//	<｜DSML｜tool_calls>
//	<｜DSML｜invoke name="get_weather">
//	<｜DSML｜parameter name="city" string="true">Köln</｜DSML｜parameter>
//	<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>
//	</｜DSML｜invoke>
//	</｜DSML｜tool_calls>
package deepseek

import (
	"fmt"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/chat"
)

// Control tokens, as text. ｜ is U+FF5C and ▁ is U+2581.
const (
	bos           = "<｜begin▁of▁sentence｜>"
	eos           = "<｜end▁of▁sentence｜>"
	userMark      = "<｜User｜>"
	assistantMark = "<｜Assistant｜>"
	reminderMark  = "<｜latest_reminder｜>"
	thinkStart    = "<think>"
	thinkEnd      = "</think>"
	dsml          = "｜DSML｜"
)

// tasks are the tokens that ask V4 for something else than an answer.
var tasks = map[string]string{
	"action":    "<｜action｜>",
	"query":     "<｜query｜>",
	"authority": "<｜authority｜>",
	"domain":    "<｜domain｜>",
	"title":     "<｜title｜>",
	"read_url":  "<｜read_url｜>",
}

// An Encoding is the form in which one generation of models takes conversations.
type Encoding struct {
	v4                      bool
	block                   string // name of the tags around calls
	toolsBefore, toolsAfter string // the text around the schemas of tools
}

var (
	v32 = &Encoding{block: "function_calls", toolsBefore: toolsBeforeV32, toolsAfter: toolsAfterV32}
	v4  = &Encoding{block: "tool_calls", toolsBefore: toolsBeforeV4, toolsAfter: toolsAfterV4, v4: true}
)

// For returns the encoding of an architecture, a model_type of config.json or a general.architecture of
// GGUF; nil if it has none.
func For(architecture string) *Encoding {
	switch architecture {
	case "deepseek_v32", "deepseek32":
		return v32
	case "deepseek_v4", "deepseek4":
		return v4
	}
	return nil
}

// Prompt renders a conversation. All errors are about the conversation: a bad request for a server. The
// prompt begins with the text of the beginning-of-sequence token: encode it without adding one.
//
// In place of template variables, Kwargs may hold:
//
//   - thinking or enable_thinking, a bool: the model thinks before it answers. By default it does not.
//   - reasoning_effort: none, minimal, low, medium, high, xhigh or max. Where the two above say nothing,
//     all but none mean thinking. Only V4 in thinking mode knows a difference, between max and the others;
//     DeepSeek advises a context of 384K tokens for it.
//   - drop_thinking, a bool: the default, true, forgets reasoning and developer messages before the last
//     message of the user. V4 keeps them in any case where there are tools; V3.2 never shows earlier
//     reasoning.
//   - add_default_bos_token, a bool: false leaves the beginning-of-sequence token out.
//
// Of a message's Extra it takes tools (as Conversation.Tools) and response_format (a JSON schema) of
// system and developer messages, wo_eos, which leaves a message of the assistant open, and for V4 task:
// action, query, authority, domain, title or read_url. V4 knows the role latest_reminder. The tools of
// the conversation go to the first system message.
//
// The mark behind a user's message belongs to it. So without AddGenerationPrompt the prompt is the same;
// with it, a conversation that leaves the model nothing to say is an error.
func (e *Encoding) Prompt(c chat.Conversation) (string, error) {
	if err := c.Check(); err != nil {
		return "", err
	}
	o, err := readOptions(c.Kwargs)
	if err != nil {
		return "", err
	}
	messages, err := e.messages(c)
	if err != nil {
		return "", err
	}
	if c.ContinueFinalMessage {
		last := &messages[len(messages)-1]
		if last.role != "assistant" || last.calls != "" || last.task != "" {
			return "", fmt.Errorf("continue_final_message: the last message has no text to continue")
		}
		last.open = true
	}
	w := &writer{options: o, encoding: e}
	if !o.noBOS {
		w.WriteString(bos)
	}
	if e.v4 {
		w.v4(messages)
	} else if err := w.v32(messages); err != nil {
		return "", err
	}
	if c.AddGenerationPrompt && !w.ready {
		return "", fmt.Errorf("message %d (%s) is the last one, and leaves nothing for the model to say", len(c.Messages), c.Messages[len(c.Messages)-1].Role)
	}
	return w.String(), nil
}

// A writer renders prepared messages.
type writer struct {
	strings.Builder
	options
	encoding *Encoding
	ready    bool // what is written ends where the model goes on
}

func (w *writer) write(texts ...string) {
	for _, text := range texts {
		w.WriteString(text)
	}
}

// think opens the model's reasoning, or says that there is none.
func (w *writer) think(yes bool) {
	if yes {
		w.WriteString(thinkStart)
	} else {
		w.WriteString(thinkEnd)
	}
	w.ready = true
}

// instructions are what a system or developer message has besides its text.
func (w *writer) instructions(m message) {
	if m.tools != "" {
		w.write("\n\n", w.encoding.toolsBefore, m.tools, w.encoding.toolsAfter)
	}
	if m.format != "" {
		w.write("\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n", m.format)
	}
}

// answer writes what follows the reasoning of an assistant's message.
func (w *writer) answer(m message) {
	w.write(m.text)
	if m.calls != "" {
		w.write("\n\n", m.calls)
	}
	if w.ready = m.open; !m.open {
		w.write(eos)
	}
}

// lastUser returns the index of the last message that the model answers, -1 if there is none.
func lastUser(messages []message) int {
	for i, m := range slices.Backward(messages) {
		if m.role == "user" || m.role == "developer" {
			return i
		}
	}
	return -1
}

// dropDevelopers removes the developer messages that have been answered.
func dropDevelopers(messages []message) []message {
	last := lastUser(messages)
	kept := make([]message, 0, len(messages))
	for i, m := range messages {
		if m.role != "developer" || i >= last {
			kept = append(kept, m)
		}
	}
	return kept
}
