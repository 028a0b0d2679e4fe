package server

import (
	"github.com/foretoken/foretoken/internal/chat/value"
)

// switches are what templates call the variable that turns reasoning off: most
// read the first, DeepSeek's and IBM's the second.
var switches = []string{"enable_thinking", "thinking"}

// kwargs are the variables for the template, given and what stands for an effort
// of reasoning, "" where the field does not ask for one. An effort that the
// template has no variable for is refused, but for none where the model does not
// reason.
func (s *Server) kwargs(given *value.Object, field, effort string, tools bool) (*value.Object, error) {
	if effort == "" || !s.engine.HasTemplate() {
		return given, nil
	}
	kwargs, known := new(value.Object), false
	add := func(name string, v value.Value) {
		if s.engine.Reads(name, tools) {
			known = true
			kwargs.Set(name, v)
		}
	}
	add("reasoning_effort", effort)
	if effort == "none" {
		for _, name := range switches {
			add(name, false)
		}
		known = known || s.Format.Reasoning == ""
	}
	if !known {
		return nil, badRequest(field, "%s is %s: this model's chat template has no such setting%s", field, quote(effort), s.hint(tools))
	}
	for k, v := range given.All() {
		name := k.(string)
		if asked, both := kwargs.Get(name); both && v != nil && v != asked {
			return nil, badRequest(field, "%s is %s, and %s in chat_template_kwargs is %s: one will do", field, quote(effort), name, kindOf(v))
		}
		if v != nil {
			kwargs.Set(name, v)
		}
	}
	return kwargs, nil
}

// hint says what a template without efforts has.
func (s *Server) hint(tools bool) string {
	for _, name := range switches {
		if s.engine.Reads(name, tools) {
			return "; it can be none, and " + name + " in chat_template_kwargs turns reasoning on and off"
		}
	}
	return ""
}
