package server

import (
	"fmt"
	"regexp"

	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/chat/value"
)

// messageField is a message of a conversation.
type messageField struct {
	Role             string       `json:"role"`
	Content          contentField `json:"content"`
	Name             string       `json:"name"`
	ReasoningContent string       `json:"reasoning_content"`
	Reasoning        string       `json:"reasoning"` // another name for it
	ToolCalls        []callField  `json:"tool_calls"`
	ToolCallID       string       `json:"tool_call_id"`
	Refusal          string       `json:"refusal"`     // answers have it as null
	Annotations      []chat.Value `json:"annotations"` // and OpenAI's have these, empty
}

func (m *messageField) check() error {
	calls := m.Role == "assistant" && len(m.ToolCalls) > 0
	switch {
	case m.Role == "":
		return badRequest("messages", "a message has no role")
	case m.Role != "system" && m.Role != "developer" && m.Role != "user" && m.Role != "assistant" && m.Role != "tool":
		return badRequest("messages", "role %s: expected system, developer, user, assistant or tool", quote(m.Role))
	case m.Content.value == nil && !calls && m.ReasoningContent == "" && m.Reasoning == "":
		return badRequest("messages", "a message of the role %s has no content", m.Role)
	case len(m.ToolCalls) > 0 && m.Role != "assistant":
		return badRequest("messages", "a message of the role %s has tool_calls: those of the assistant have", m.Role)
	case m.ToolCallID != "" && m.Role != "tool":
		return badRequest("messages", "a message of the role %s has a tool_call_id: those of tools have", m.Role)
	case m.ReasoningContent != "" && m.Reasoning != "" && m.ReasoningContent != m.Reasoning:
		return badRequest("messages", "a message has reasoning and another reasoning_content: one will do")
	case m.Refusal != "":
		return badRequest("messages", "a message has a refusal: models here know none; send it as content")
	case len(m.Annotations) > 0:
		return badRequest("messages", "a message has annotations: models here do not read them")
	}
	return nil
}

func (m *messageField) message() chat.Message {
	out := chat.Message{Role: m.Role, Content: m.Content.value, Name: m.Name, ToolCallID: m.ToolCallID, ReasoningContent: m.ReasoningContent}
	if m.Reasoning != "" {
		out.ReasoningContent = m.Reasoning
	}
	for _, call := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, chat.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	return out
}

// contentField is the text of a message, or its parts.
type contentField struct{ value chat.Value }

func (c *contentField) read(path string, v value.Value) error {
	switch v := v.(type) {
	case string:
		c.value = v
		return nil
	case *value.List:
		if len(v.Items) == 0 {
			return badRequest(path, "%s has no parts", path)
		}
		for i, item := range v.Items {
			if err := checkPart(fmt.Sprintf("%s[%d]", path, i), item, "text"); err != nil {
				return err
			}
		}
		c.value = v
		return nil
	}
	return badRequest(path, "%s is %s, expected a string or a list of parts", path, kindOf(v))
}

// checkPart refuses parts that are no text. Types are what the API at hand
// calls text.
func checkPart(path string, v value.Value, types ...string) error {
	part, ok := v.(*value.Object)
	if !ok {
		return badRequest(path, `%s is %s, expected {"type": %q, "text": …}`, path, kindOf(v), types[0])
	}
	kind, _ := part.Get("type")
	known := false
	for _, t := range types {
		known = known || kind == t
	}
	if !known {
		return badRequest(path, "%s is of type %s, expected %s: models here read text only", path, kindOf(kind), types[0])
	}
	if text, _ := part.Get("text"); !isText(text) {
		return badRequest(path, "%s.text is %s, expected a string", path, kindOf(text))
	}
	return nil
}

func isText(v value.Value) bool { _, ok := v.(string); return ok }

// callField is a call of a function, as the model made it.
type callField struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function callFunction `json:"function"`
	Index    *int         `json:"index"` // clients that put streams together leave it
}

type callFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func (c *callField) check() error {
	switch {
	case c.Type != "" && c.Type != "function":
		return badRequest("messages", "a tool call of type %s: expected function", quote(c.Type))
	case c.Function.Name == "":
		return badRequest("messages", "a tool call has no function.name")
	}
	return nil
}

// toolField is a function that the model may call. Templates print it as it is.
type toolField struct{ object *value.Object }

// functionName is what OpenAI's API takes for one.
var functionName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

func (t *toolField) read(path string, v value.Value) error {
	o, ok := v.(*value.Object)
	if !ok {
		return badRequest(path, "%s is %s, expected an object", path, kindOf(v))
	}
	if kind, _ := o.Get("type"); kind != "function" {
		return badRequest(path, "%s is of type %s, expected function: this server has no tools of its own", path, kindOf(kind))
	}
	field, _ := o.Get("function")
	function, ok := field.(*value.Object)
	if !ok {
		return badRequest(path, "%s.function is %s, expected an object", path, kindOf(field))
	}
	t.object = o
	return checkFunction(path+".function", function)
}

// checkFunction checks the definition of a function.
func checkFunction(path string, f *value.Object) error {
	name, _ := f.Get("name")
	if text, _ := name.(string); !functionName.MatchString(text) {
		return badRequest(path+".name", "%s.name is %s, expected up to 64 letters, digits, _, - or .", path, kindOf(name))
	}
	if v, _ := f.Get("description"); v != nil && !isText(v) {
		return badRequest(path+".description", "%s.description is %s, expected a string", path, kindOf(v))
	}
	if v, _ := f.Get("parameters"); v != nil {
		if _, ok := v.(*value.Object); !ok {
			return badRequest(path+".parameters", "%s.parameters is %s, expected a JSON schema", path, kindOf(v))
		}
	}
	if v, _ := f.Get("strict"); v != nil && v != false {
		return badRequest(path+".strict", "%s.strict is %s: %s; expected false", path, kindOf(v), noGrammar)
	}
	return nil
}

func toolValues(fields []toolField) []chat.Value {
	var list []chat.Value
	for _, t := range fields {
		list = append(list, t.object)
	}
	return list
}

// toolChoice is none or auto, "" where the request does not say.
type toolChoice string

func (c *toolChoice) read(path string, v value.Value) error {
	text, _ := v.(string)
	switch {
	case text == "none" || text == "auto":
		*c = toolChoice(text)
		return nil
	case text == "required":
		return badRequest(path, "%s required: %s; expected auto or none", path, noGrammar)
	case text == "":
		if o, ok := v.(*value.Object); ok && o.Len() > 0 {
			return badRequest(path, "%s names a function: %s; expected auto or none", path, noGrammar)
		}
	}
	return badRequest(path, "%s is %s, expected auto or none", path, kindOf(v))
}

// responseFormat is text.
type responseFormat string

func (f *responseFormat) read(path string, v value.Value) error {
	o, _ := v.(*value.Object)
	switch kind, _ := o.Get("type"); kind {
	case "text":
		*f = "text"
		return nil
	case "json_object", "json_schema", "grammar", "structural_tag":
		return badRequest(path, "%s of type %v is not supported: %s", path, kind, noGrammar)
	}
	return badRequest(path, `%s is %s, expected {"type": "text"}`, path, kindOf(v))
}

// modalities are what the model is to answer in.
type modalities []string

func (m *modalities) read(path string, v value.Value) error {
	if l, ok := v.(*value.List); ok && len(l.Items) == 1 && l.Items[0] == "text" {
		*m = modalities{"text"}
		return nil
	}
	return badRequest(path, `%s: models here write text only; expected ["text"]`, path)
}
