package server

import (
	"testing"
)

func TestChat(t *testing.T) {
	a := serveAt(t, scripted(t, "<think>", "I should", " ask", ".", "</think>", "\n\nLet me see.\n", "<tool_call>", `{"name": "weather", "arguments": `, `{"city": "Köln"}`, "}\n", "</tool_call>"), Options{})
	q := object{
		"model": "tiny", "messages": []object{{"role": "user", "content": "hello"}}, "temperature": 0,
		"tools": []object{{"type": "function", "function": object{"name": "weather", "parameters": object{"type": "object"}}}},
	}
	t.Log(a.post(t, "/v1/chat/completions", q))
	for _, e := range a.events(t, "/v1/chat/completions", merge(q, object{"stream": true, "stream_options": object{"include_usage": true}})) {
		t.Log(e)
	}
}
