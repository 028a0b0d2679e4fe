package chat

// Message is one turn of a conversation, as in the OpenAI API.
type Message struct {
	Role string
	// Content is a string, nil for none, or a *List of parts: objects {"type": "text", "text": …}.
	Content Value
	// ReasoningContent is what the model thought before it answered, without the marks around it.
	ReasoningContent string
	Name             string
	ToolCalls        []ToolCall
	ToolCallID       string  // of a tool's result: the call it belongs to
	Extra            *Object // further fields, for templates that know them
}

// ToolCall is a call of a function by the model.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string // a JSON object
}

// System returns a message with instructions.
func System(text string) Message { return Message{Role: "system", Content: text} }

// User returns a message of the user.
func User(text string) Message { return Message{Role: "user", Content: text} }

// Assistant returns an answer of the model; without text, one that only calls tools.
func Assistant(text string, calls ...ToolCall) Message {
	m := Message{Role: "assistant", Content: text, ToolCalls: calls}
	if text == "" && len(calls) > 0 {
		m.Content = nil
	}
	return m
}

// ToolResult returns the result of a call.
func ToolResult(callID, name, text string) Message {
	return Message{Role: "tool", Content: text, Name: name, ToolCallID: callID}
}

// TextParts returns content of several parts.
func TextParts(texts ...string) *List {
	l := NewList()
	for _, text := range texts {
		l.Items = append(l.Items, textPart(text))
	}
	return l
}

func textPart(text string) *Object { return NewObject("type", "text", "text", text) }
