package deepseek

import (
	"fmt"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/chat"
)

// A message is a chat.Message that has been checked, with its JSON and its calls as they are printed.
type message struct {
	number    int // in the conversation, from 1
	role      string
	text      string
	reasoning string
	calls     string   // DSML
	ids       []string // of the calls
	result    string   // id of the call that a tool's message answers
	tools     string   // schemas, one a line
	format    string   // schema of the response
	task      string
	open      bool    // without an end of sentence
	blocks    []block // V4: what a user's message is made of
}

func (e *Encoding) messages(c chat.Conversation) ([]message, error) {
	messages := make([]message, 0, len(c.Messages)+1)
	for i, m := range c.Messages {
		p, err := e.message(m)
		if err != nil {
			return nil, fmt.Errorf("message %d (%s): %w", i+1, m.Role, err)
		}
		p.number = i + 1
		messages = append(messages, p)
	}
	if len(c.Tools) == 0 {
		return messages, nil
	}
	at := slices.IndexFunc(messages, func(m message) bool { return m.role == "system" })
	if at < 0 {
		messages = slices.Insert(messages, 0, message{role: "system"})
		at = 0
	}
	if messages[at].tools != "" {
		return nil, fmt.Errorf("message %d (system): both it and the conversation have tools", messages[at].number)
	}
	var err error
	messages[at].tools, err = schemas(c.Tools)
	return messages, err
}

func (e *Encoding) message(m chat.Message) (message, error) {
	p := message{role: m.Role, result: m.ToolCallID}
	switch m.Role {
	case "system", "user", "developer", "tool", "assistant":
	case "latest_reminder":
		if !e.v4 {
			return p, fmt.Errorf("this model knows no such role")
		}
	default:
		return p, fmt.Errorf("this model knows no such role")
	}
	var err error
	switch parts, _ := m.Content.(*chat.List); {
	case e.v4 && m.Role == "tool" && parts != nil:
		p.text = resultText(parts)
	case m.Content != nil:
		p.text, err = chat.Text(m.Content)
	case m.Role != "assistant":
		err = fmt.Errorf("content is missing")
	}
	if err != nil {
		return p, err
	}
	if p.text == "" && m.Role == "developer" {
		return p, fmt.Errorf("content is empty")
	}
	if m.Role == "assistant" {
		p.reasoning = m.ReasoningContent
	} else if m.ReasoningContent != "" || len(m.ToolCalls) > 0 {
		return p, fmt.Errorf("only the assistant reasons and calls tools")
	}
	if len(m.ToolCalls) > 0 {
		if p.calls, err = e.calls(m.ToolCalls); err != nil {
			return p, err
		}
		for _, call := range m.ToolCalls {
			p.ids = append(p.ids, call.ID)
		}
	}
	return p, e.extra(&p, m.Extra)
}

// extra reads the fields that only this format has. Others, such as the masks of training data, say
// nothing about a prompt.
func (e *Encoding) extra(p *message, fields *chat.Object) error {
	for k, v := range fields.All() {
		if v == nil {
			continue
		}
		var err error
		var ok bool
		switch k {
		case "tools", "response_format":
			if p.role != "system" && p.role != "developer" {
				return fmt.Errorf("%s: only system and developer messages have it", k)
			}
			if k == "response_format" {
				p.format, err = chat.EncodeJSON(v)
				break
			}
			tools, ok := v.(*chat.List)
			if !ok {
				return fmt.Errorf("tools: expected a list")
			}
			p.tools, err = schemas(tools.Items)
		case "task":
			p.task, _ = v.(string)
			if _, ok = tasks[p.task]; !ok || !e.v4 {
				return fmt.Errorf("task: this model knows no such task")
			}
		case "wo_eos":
			if p.open, ok = v.(bool); !ok {
				return fmt.Errorf("wo_eos: expected true or false")
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
	}
	return nil
}

// schemas prints the function of each tool, one a line.
func schemas(tools []chat.Value) (string, error) {
	lines := make([]string, len(tools))
	for i, tool := range tools {
		o, _ := tool.(*chat.Object)
		function, _ := o.Get("function")
		if _, ok := function.(*chat.Object); !ok {
			return "", fmt.Errorf("tool %d: expected an object with a function, an object itself", i+1)
		}
		var err error
		if lines[i], err = chat.EncodeJSON(function); err != nil {
			return "", fmt.Errorf("tool %d: %w", i+1, err)
		}
	}
	return strings.Join(lines, "\n"), nil
}

// resultText is a tool's result given in parts: V4 says where there was something else than text.
func resultText(parts *chat.List) string {
	texts := make([]string, len(parts.Items))
	for i, item := range parts.Items {
		part, _ := item.(*chat.Object)
		kind, _ := part.Get("type")
		text, _ := part.Get("text")
		var ok bool
		if texts[i], ok = text.(string); !ok || kind != "text" {
			texts[i] = fmt.Sprintf("[Unsupported %v]", kind)
		}
	}
	return strings.Join(texts, "\n\n")
}
