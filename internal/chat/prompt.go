package chat

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Conversation is what a prompt is made of.
type Conversation struct {
	Messages []Message
	// Tools are the functions the model may call, as the OpenAI API lists them; usually *Object.
	Tools []Value
	// AddGenerationPrompt ends the prompt where the model's answer begins. ContinueFinalMessage instead
	// ends it inside the last message, for the model to write on. They exclude each other.
	AddGenerationPrompt  bool
	ContinueFinalMessage bool
	// Kwargs are further variables for the template: enable_thinking, documents, … One that it does not
	// read is an error, unless it is nil.
	Kwargs *Object
	// SpecialTokens are bos_token, eos_token and so on, as text.
	SpecialTokens map[string]string
	Now           time.Time // for templates that print the date; zero: the present
}

// Check says what is wrong with a conversation for every model.
func (c Conversation) Check() error {
	if len(c.Messages) == 0 {
		return fmt.Errorf("the conversation has no messages")
	}
	if c.AddGenerationPrompt && c.ContinueFinalMessage {
		return fmt.Errorf("add_generation_prompt and continue_final_message exclude each other")
	}
	return nil
}

// Prompt renders a conversation. Messages are brought into the form the template takes; what it has no
// place for, such as tools, is an error instead of being left out. All errors are about the conversation,
// a bad request for a server, except a *LimitError. The prompt holds the special tokens
// as text, with the one for its beginning where the template puts it: encode it without adding any.
func (t *Template) Prompt(ctx context.Context, c Conversation) (string, error) {
	if err := c.Check(); err != nil {
		return "", err
	}
	if len(c.Tools) > 0 && !t.reads.tools {
		return "", &TemplateError{Message: "this model's chat template takes no tools"}
	}
	messages := NewList()
	for i, m := range c.Messages {
		o, err := t.message(m)
		if err != nil {
			return "", fmt.Errorf("message %d (%s): %w", i+1, m.Role, err)
		}
		messages.Items = append(messages.Items, o)
	}
	if c.ContinueFinalMessage {
		if err := markFinal(messages.Items[len(messages.Items)-1].(*Object)); err != nil {
			return "", err
		}
	}
	vars, err := t.variables(c, messages)
	if err != nil {
		return "", err
	}
	now := c.Now
	if now.IsZero() {
		now = time.Now()
	}
	text, err := t.Render(ctx, vars, now)
	if err != nil || !c.ContinueFinalMessage {
		return text, err
	}
	return cutAtMark(text)
}

// variables are what the template sees. Without tools or documents it sees None, as in Hugging Face's
// libraries.
func (t *Template) variables(c Conversation, messages *List) (*Object, error) {
	vars := new(Object)
	for name, token := range c.SpecialTokens {
		vars.Set(name, token)
	}
	vars.Set("documents", nil)
	for k, v := range c.Kwargs.All() {
		name, ok := k.(string)
		switch {
		case !ok:
			return nil, &VariableError{fmt.Sprint(k), "names are strings"}
		case name == "messages" || name == "tools" || name == "add_generation_prompt":
			return nil, &VariableError{name, "the conversation sets it"}
		case v != nil && !t.Reads(name):
			return nil, &VariableError{name, "this model's chat template does not read it"}
		}
		vars.Set(name, v)
	}
	vars.Set("messages", messages)
	vars.Set("tools", nil)
	if len(c.Tools) > 0 {
		vars.Set("tools", NewList(c.Tools...))
	}
	vars.Set("add_generation_prompt", c.AddGenerationPrompt)
	return vars, nil
}

// message returns a message in the form the template takes.
func (t *Template) message(m Message) (*Object, error) {
	o := new(Object)
	role := m.Role
	if role == "developer" && !t.reads.developer {
		role = "system"
	}
	o.Set("role", role)
	content, err := t.content(m)
	if err != nil {
		return nil, err
	}
	o.Set("content", content)
	if m.Name != "" {
		o.Set("name", m.Name)
	}
	if len(m.ToolCalls) > 0 {
		if !t.reads.toolCalls {
			return nil, &TemplateError{Message: "this model's chat template takes no tool calls"}
		}
		calls := NewList()
		for i, call := range m.ToolCalls {
			v, err := t.toolCall(call)
			if err != nil {
				return nil, fmt.Errorf("tool call %d (%s): %w", i+1, call.Name, err)
			}
			calls.Items = append(calls.Items, v)
		}
		o.Set("tool_calls", calls)
	}
	if m.ToolCallID != "" {
		o.Set("tool_call_id", m.ToolCallID)
	}
	if m.ReasoningContent != "" && !t.reads.thinkingParts {
		o.Set("reasoning_content", m.ReasoningContent)
		if t.reads.thinking {
			o.Set("thinking", m.ReasoningContent)
		}
		if t.reads.reasoning {
			o.Set("reasoning", m.ReasoningContent)
		}
	}
	for k, v := range m.Extra.All() {
		name, ok := k.(string)
		if _, taken := o.Get(name); taken || !ok {
			return nil, fmt.Errorf("extra field %v: a message has it already", k)
		}
		o.Set(name, v)
	}
	return o, nil
}

func (t *Template) toolCall(call ToolCall) (Value, error) {
	var arguments Value = call.Arguments
	if !t.wants().argumentsText {
		arguments = new(Object)
		if strings.TrimSpace(call.Arguments) != "" {
			v, err := DecodeJSON([]byte(call.Arguments))
			if err != nil {
				return nil, fmt.Errorf("arguments: %w", err)
			}
			o, ok := v.(*Object)
			if !ok {
				return nil, fmt.Errorf("arguments: expected a JSON object")
			}
			arguments = o
		}
	}
	o := new(Object)
	if call.ID != "" {
		o.Set("id", call.ID)
	}
	o.Set("type", "function")
	o.Set("function", NewObject("name", call.Name, "arguments", arguments))
	return o, nil
}
