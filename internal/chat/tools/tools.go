// Package tools takes apart what a model generates in one turn: reasoning, content and calls of tools, in
// the formats of many families, as it comes.
//
// A Format says which marks a model uses. Choose finds it out from the model's chat template. A Parser of
// a format gets the text in pieces of any size and returns deltas, each as soon as it is certain.
//
// All parsers keep to these rules:
//
//   - What is sent is never taken back, and apart from the places where deltas are cut it does not depend
//     on how the text is.
//   - Nothing that may be a mark is sent as text. A mark that turns out not to be one, because what follows
//     is not what the format has there or names a function that was not offered, is text after all: models
//     write about their marks, too.
//   - Malformed calls are no errors. Before its name is known a call becomes text, afterwards its
//     arguments are what the model wrote.
//   - Arguments in JSON are the model's bytes. They are not printed anew, so 1.50 stays 1.50.
//   - Every byte is looked at a bounded number of times.
package tools

import (
	"strings"

	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/chat/deepseek"
)

// A Kind says what a Delta belongs to.
type Kind = deepseek.Kind

// The kinds. Of one call come a CallName, any number of CallArguments, and a CallEnd or CallCut.
const (
	Reasoning     = deepseek.Reasoning
	Content       = deepseek.Content
	CallName      = deepseek.CallName      // a call begins: its function's name, whole
	CallArguments = deepseek.CallArguments // more of the arguments
	CallEnd       = deepseek.CallEnd       // the call as the model wrote it, without the marks around it
	CallCut       = deepseek.CallCut       // generation has ended within the call: all that the model wrote of it
)

// A Delta is a piece of what the model says.
type Delta struct {
	Kind Kind
	Call int    // which call, from 0
	ID   string // with CallName: the id that the model gave the call in front of its arguments, if any
	Text string
}

// A Parser splits what the model generates in one turn.
type Parser interface {
	// Write takes more of the text and returns what has become certain. The text has the special tokens
	// in it, without the one that ends the turn.
	Write(text string) []Delta
	// Close says that the text has ended, and returns the rest. The Parser must not be used any more.
	Close() []Delta
}

// A Turn is what a Parser has to know of the request.
type Turn struct {
	Reasoning bool         // the prompt ends within reasoning, see Format.Inside
	Tools     []chat.Value // functions that the model may call, as in chat.Conversation; without any, calls are text
}

// An Output is what the model generated in one turn.
type Output struct {
	Reasoning string
	Content   string
	Calls     []Call
}

// A Call is a call of a tool.
type Call struct {
	ID        string // as the model gave it; usually none
	Name      string
	Arguments string // as the model wrote them: a JSON object, unless it made a mistake
	Text      string // the call as the model wrote it, without the marks around it
}

// Parse reads what the model generated in one turn.
func Parse(f Format, turn Turn, text string) Output {
	p := f.NewParser(turn)
	return Collect(append(p.Write(text), p.Close()...))
}

// Collect puts the deltas of a turn together. A call that is cut off is content.
func Collect(deltas []Delta) Output {
	var o Output
	var reasoning, content, arguments strings.Builder
	var call Call
	for _, d := range deltas {
		switch d.Kind {
		case Reasoning:
			reasoning.WriteString(d.Text)
		case Content:
			content.WriteString(d.Text)
		case CallName:
			call = Call{ID: d.ID, Name: d.Text}
			arguments.Reset()
		case CallArguments:
			arguments.WriteString(d.Text)
		case CallEnd:
			call.Arguments, call.Text = arguments.String(), d.Text
			o.Calls = append(o.Calls, call)
		case CallCut:
			content.WriteString(d.Text)
		}
	}
	o.Reasoning, o.Content = reasoning.String(), content.String()
	return o
}

// Message returns the output as a message to go on from.
func (o Output) Message() chat.Message {
	var calls []chat.ToolCall
	for _, call := range o.Calls {
		calls = append(calls, chat.ToolCall{ID: call.ID, Name: call.Name, Arguments: call.Arguments})
	}
	m := chat.Assistant(o.Content, calls...)
	m.ReasoningContent = o.Reasoning
	return m
}
