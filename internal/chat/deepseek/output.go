package deepseek

import (
	"strings"

	"github.com/foretoken/foretoken/internal/chat"
)

// An Output is what the model generated in one turn.
type Output struct {
	Reasoning string
	Content   string
	Calls     []Call
}

// A Call is a call of a tool.
type Call struct {
	Name      string
	Arguments string // a JSON object, once the call is complete
	// Text is the call as the model wrote it. When it comes back in a later prompt, only these bytes
	// give the same tokens: printed anew, 1.50 becomes 1.5.
	Text     string
	Complete bool // else generation ended within it
}

// Parse reads what the model generated in one turn as a Parser does.
func Parse(text string, thinking, tools bool) Output {
	p := NewParser(thinking, tools)
	return collect(append(p.Write(text), p.Close()...))
}

// collect puts deltas together.
func collect(deltas []Delta) Output {
	var o Output
	var reasoning, content, arguments strings.Builder
	for _, d := range deltas {
		switch d.Kind {
		case Reasoning:
			reasoning.WriteString(d.Text)
		case Content:
			content.WriteString(d.Text)
		case CallName:
			o.Calls = append(o.Calls, Call{Name: d.Text})
			arguments.Reset()
		case CallArguments:
			arguments.WriteString(d.Text)
			o.Calls[d.Call].Arguments = arguments.String()
		case CallEnd:
			o.Calls[d.Call].Text, o.Calls[d.Call].Complete = d.Text, true
		}
	}
	o.Reasoning, o.Content = reasoning.String(), content.String()
	return o
}

// Message returns the output as a message to go on from. A call that is not complete is not in it.
func (o Output) Message() chat.Message {
	var calls []chat.ToolCall
	for _, call := range o.Calls {
		if call.Complete {
			calls = append(calls, chat.ToolCall{Name: call.Name, Arguments: call.Arguments})
		}
	}
	m := chat.Assistant(o.Content, calls...)
	m.ReasoningContent = o.Reasoning
	return m
}

// Thinking reports whether a prompt ends within the model's reasoning.
func Thinking(prompt string) bool {
	start := strings.LastIndex(prompt, thinkStart)
	return start > strings.LastIndex(prompt, thinkEnd) && !strings.HasSuffix(prompt, tasks["action"])
}
