package chat

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/foretoken/foretoken/internal/chat/jinja"
)

// wants says what a template can only show by running: the form in which it takes an assistant's calls.
type wants struct {
	argumentsText bool // arguments as JSON text; else as an object
	null          bool // content null of a message that only calls tools stays null; else it becomes ""
	nullOnly      bool // even "" must become null there, or the calls are not printed
}

// probeLimits are in steps, not seconds: the answer must not depend on how busy the machine is.
var probeLimits = jinja.Limits{Steps: 1 << 20, Memory: 16 << 20}

// probe renders a conversation with a call in each form, and takes the first one in which the call comes
// out: without an error, and without Python's way of printing a dict or None.
func (t *Template) probe() wants {
	for _, withResult := range []bool{true, false} {
		for _, text := range []bool{false, true} {
			null, err1 := t.probeCall(text, nil, withResult)
			empty, err2 := t.probeCall(text, "", withResult)
			var limit *LimitError
			if errors.As(err1, &limit) || errors.As(err2, &limit) {
				return wants{}
			}
			w := wants{argumentsText: text}
			w.null = null != "" && strings.Count(null, "None") <= strings.Count(empty, "None")
			w.nullOnly = w.null && empty == ""
			if w.null || empty != "" {
				return w
			}
		}
	}
	return wants{} // it prints no calls at all
}

// probeCall returns the rendering if it shows the call as it should be, else "" and the error, if any.
func (t *Template) probeCall(argumentsText bool, content Value, withResult bool) (string, error) {
	const id = "probe1234" // nine letters and digits: Mistral's templates insist
	var arguments Value = NewObject("probe_key", "probe_value")
	if argumentsText {
		arguments = `{"probe_key": "probe_value"}`
	}
	messages := NewList(
		NewObject("role", "user", "content", t.format("Hello")),
		NewObject("role", "assistant", "content", t.format(content), "tool_calls", NewList(NewObject(
			"id", id, "type", "function", "function", NewObject("name", "probe_name", "arguments", arguments)))),
	)
	if withResult {
		messages.Items = append(messages.Items,
			NewObject("role", "tool", "content", t.format("Result"), "name", "probe_name", "tool_call_id", id))
	}
	tool := NewObject("type", "function", "function", NewObject(
		"name", "probe_name",
		"description", "A function.",
		"parameters", NewObject(
			"type", "object",
			"properties", NewObject("probe_key", NewObject("type", "string", "description", "A value.")),
			"required", NewList("probe_key"))))
	vars := NewObject("messages", messages, "tools", NewList(tool), "documents", nil,
		"add_generation_prompt", true, "bos_token", "", "eos_token", "")

	text, err := t.jinja.Render(context.Background(), vars, time.Time{}, probeLimits)
	if err != nil || !strings.Contains(text, "probe_value") || strings.Contains(text, "'probe_key'") {
		return "", err
	}
	return text, nil
}
