package server

import (
	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/chat/value"
)

// responseTool is a function that the model may call, as /v1/responses has it:
// without the object around it that chats have.
type responseTool struct {
	given *value.Object
	tool  toolField
}

func (t *responseTool) read(path string, v value.Value) error {
	o, ok := v.(*value.Object)
	if !ok {
		return badRequest(path, "%s is %s, expected an object", path, kindOf(v))
	}
	if kind, _ := o.Get("type"); kind != "function" {
		return badRequest(path, "%s is of type %s, expected function: this server has no tools of its own", path, kindOf(kind))
	}
	function := new(value.Object)
	for k, v := range o.All() {
		if name := k.(string); name != "type" && v != nil {
			function.Set(name, v)
		}
	}
	t.given, t.tool.object = o, value.NewObject("type", "function", "function", function)
	return checkFunction(path, function)
}

// toolFields are the functions as chats have them, given those as they came.
func toolFields(all []responseTool) (fields []toolField, given []chat.Value) {
	given = []chat.Value{}
	for _, t := range all {
		fields, given = append(fields, t.tool), append(given, t.given)
	}
	return fields, given
}

// addCall adds a call that the model made: to its message before, which ended
// with it, or to one of its own.
func (f *inputField) addCall(at string, item *value.Object, reasoning string) error {
	var call callField
	for name, into := range map[string]*string{"call_id": &call.ID, "name": &call.Function.Name, "arguments": &call.Function.Arguments} {
		v, _ := item.Get(name)
		text, ok := v.(string)
		if !ok || text == "" {
			return badRequest(at, "%s.%s is %s, expected a string", at, name, kindOf(v))
		}
		*into = text
	}
	if f.calls == nil {
		f.calls = map[string]bool{}
	}
	f.calls[call.ID] = true
	if n := len(f.messages); n > 0 && f.messages[n-1].Role == "assistant" && reasoning == "" {
		f.messages[n-1].ToolCalls = append(f.messages[n-1].ToolCalls, call)
		return nil
	}
	f.messages = append(f.messages, messageField{Role: "assistant", ReasoningContent: reasoning, ToolCalls: []callField{call}})
	return nil
}

// addResult adds what a call gave.
func (f *inputField) addResult(at string, item *value.Object) error {
	v, _ := item.Get("call_id")
	id, _ := v.(string)
	if !f.calls[id] {
		return badRequest(at, "%s.call_id is %s, expected that of a function_call before it", at, kindOf(v))
	}
	text, err := inputText(at, "output", item, "input_text", "text")
	if err != nil {
		return err
	}
	f.messages = append(f.messages, messageField{Role: "tool", ToolCallID: id, Content: contentField{text}})
	return nil
}
