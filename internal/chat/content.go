package chat

import (
	"fmt"
	"strings"
	"unicode"
)

// content returns a message's content in the form the template takes: text, or a list of parts.
func (t *Template) content(m Message) (Value, error) {
	switch c := m.Content.(type) {
	case nil:
		if len(m.ToolCalls) > 0 && t.wants().null && !t.addsThinking(m) {
			return nil, nil
		}
		if m.Role != "assistant" {
			return nil, fmt.Errorf("content is missing")
		}
		return t.withThinking(m, t.format("")), nil
	case string:
		if c == "" && len(m.ToolCalls) > 0 && t.wants().nullOnly && !t.addsThinking(m) {
			return nil, nil
		}
		return t.withThinking(m, t.format(c)), nil
	case *List:
		if err := t.checkParts(c); err != nil {
			return nil, err
		}
		if t.reads.parts || t.reads.thinkingParts {
			return t.withThinking(m, c), nil
		}
		return joinParts(c), nil
	}
	return nil, contentType(m.Content)
}

func contentType(content Value) error {
	return fmt.Errorf("content: expected a string, null or a list of parts, not %T", content)
}

// Text returns a message's content, which is not nil, as text: its parts with a line break between them.
// Parts that are no text are an error.
func Text(content Value) (string, error) {
	switch c := content.(type) {
	case string:
		return c, nil
	case *List:
		for i, item := range c.Items {
			if err := checkText(item); err != nil {
				return "", fmt.Errorf("content part %d: %w", i+1, err)
			}
		}
		return joinParts(c), nil
	}
	return "", contentType(content)
}

// format wraps text into a part where the template takes nothing else.
func (t *Template) format(v Value) Value {
	if text, ok := v.(string); ok && t.reads.parts && !t.reads.string {
		return NewList(textPart(text))
	}
	return v
}

// checkParts refuses parts that are no text.
func (t *Template) checkParts(parts *List) error {
	for i, item := range parts.Items {
		part, _ := item.(*Object)
		if kind, _ := part.Get("type"); kind == "thinking" && t.reads.thinkingParts {
			continue
		}
		if err := checkText(item); err != nil {
			return fmt.Errorf("content part %d: %w", i+1, err)
		}
	}
	return nil
}

// checkText refuses a part that is no text.
func checkText(item Value) error {
	part, _ := item.(*Object)
	if kind, _ := part.Get("type"); kind != "text" {
		return fmt.Errorf("expected type \"text\", not %s: this model takes no other input", describe(kind))
	}
	if text, _ := part.Get("text"); !isString(text) {
		return fmt.Errorf("text is not a string")
	}
	return nil
}

func isString(v Value) bool { _, ok := v.(string); return ok }

func describe(v Value) string {
	s, err := EncodeJSON(v)
	if err != nil || len(s) > 40 {
		return "something else"
	}
	return s
}

// joinParts returns the text of parts, a line break between them.
func joinParts(parts *List) string {
	texts := make([]string, len(parts.Items))
	for i, part := range parts.Items {
		text, _ := part.(*Object).Get("text")
		texts[i], _ = text.(string)
	}
	return strings.Join(texts, "\n")
}

func (t *Template) addsThinking(m Message) bool {
	return t.reads.thinkingParts && m.ReasoningContent != ""
}

// withThinking puts reasoning in front of content where the template takes it as a part.
func (t *Template) withThinking(m Message, content Value) Value {
	if !t.addsThinking(m) {
		return content
	}
	list := NewList(NewObject("type", "thinking", "thinking", m.ReasoningContent))
	switch c := content.(type) {
	case string:
		if c != "" {
			list.Items = append(list.Items, textPart(c))
		}
	case *List:
		list.Items = append(list.Items, c.Items...)
	}
	return list
}

// finalMark is put behind the last message's text to find where it ends in the prompt.
const finalMark = "CONTINUE_FINAL_MESSAGE_TAG "

func markFinal(m *Object) error {
	content, _ := m.Get("content")
	switch c := content.(type) {
	case string:
		m.Set("content", c+finalMark)
		return nil
	case *List:
		items := NewList(c.Items...)
		for i := len(items.Items) - 1; i >= 0; i-- {
			part, _ := items.Items[i].(*Object)
			if text, ok := part.Get("text"); ok && isString(text) {
				marked := part.Clone()
				marked.Set("text", text.(string)+finalMark)
				items.Items[i] = marked
				m.Set("content", items)
				return nil
			}
		}
	}
	return fmt.Errorf("continue_final_message: the last message has no text to continue")
}

// cutAtMark returns the prompt up to the mark. If the template trimmed the mark's space, it would have
// trimmed the space before it, too.
func cutAtMark(prompt string) (string, error) {
	tag := strings.TrimSuffix(finalMark, " ")
	at := strings.LastIndex(prompt, tag)
	if at < 0 {
		return "", fmt.Errorf("continue_final_message: the template does not print the last message's text")
	}
	if strings.HasPrefix(prompt[at:], finalMark) {
		return prompt[:at], nil
	}
	return strings.TrimRightFunc(prompt[:at], unicode.IsSpace), nil
}
