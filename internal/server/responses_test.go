package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foretoken/foretoken/internal/chat/tools"
	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/testmodel"
)

const responsesPath = "/v1/responses"

func TestResponses(t *testing.T) {
	a := serveAt(t, testmodel.Scripted(t, "<think>", "I should", " greet", ".", "</think>", "\n\nHello", " there"), Options{})
	reasoning := outputItem{Type: "reasoning", Status: "completed", Summary: &[]string{}, Content: []outputPart{{Type: "reasoning_text", Text: "I should greet."}}}
	message := func(text, status string) outputItem {
		return outputItem{Type: "message", Role: "assistant", Status: status, Content: []outputPart{{Type: "output_text", Text: text, Annotations: &[]string{}}}}
	}
	for _, tc := range []struct {
		name   string
		q      object
		want   []outputItem
		status string
	}{
		{"a text", object{"input": "hello"}, []outputItem{reasoning, message("Hello there", "completed")}, "completed"},
		{"items", object{"instructions": "be brief", "input": []object{
			{"role": "user", "content": "hello"},
			{"type": "reasoning", "id": "rs_1", "summary": []int{}, "content": []object{{"type": "reasoning_text", "text": "hm"}}},
			{"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": []object{{"type": "output_text", "text": "yes", "annotations": []int{}}}},
			{"role": "user", "content": []object{{"type": "input_text", "text": "hello"}}},
		}}, []outputItem{reasoning, message("Hello there", "completed")}, "completed"},
		{"cut", object{"input": "hello", "max_output_tokens": 6}, []outputItem{reasoning, message("Hello", "incomplete")}, "incomplete"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := merge(object{"model": "tiny", "temperature": 0, "metadata": object{"a": "b"}, "store": false, "truncation": "disabled"}, tc.q)
			got := ask[responseBody](t, a, responsesPath, q)
			noID := cmpopts.IgnoreFields(outputItem{}, "ID")
			if diff := cmp.Diff(tc.want, got.Output, noID); diff != "" || got.Status != tc.status || (got.IncompleteDetails != nil) != (tc.status == "incomplete") {
				t.Errorf("%s: %s", got.Status, diff)
			}
			if u := got.Usage; u.TotalTokens != u.InputTokens+u.OutputTokens || u.OutputDetails.ReasoningTokens != 5 || got.Metadata["a"] != "b" {
				t.Errorf("%+v", got)
			}

			var types []string
			var last responseBody
			texts := map[string]string{}
			for i, data := range a.events(t, responsesPath, merge(q, object{"stream": true})) {
				var e responseEvent
				decodeAnswer(t, data, &e)
				if e.SequenceNumber != i {
					t.Errorf("event %d has the number %d", i, e.SequenceNumber)
				}
				if types = append(types, e.Type); strings.HasSuffix(e.Type, ".delta") {
					texts[e.Type] += e.Delta
				} else if e.Text != nil && *e.Text != texts[strings.TrimSuffix(e.Type, "done")+"delta"] {
					t.Errorf("%s: %q, its deltas %q", e.Type, *e.Text, texts)
				}
				if e.Response != nil {
					last = *e.Response
				}
			}
			item := func(kind string) []string {
				return []string{"response.output_item.added", "response.content_part.added", kind + ".delta", kind + ".done", "response.content_part.done", "response.output_item.done"}
			}
			want := slices.Concat([]string{"response.created", "response.in_progress"}, item("response.reasoning_text"), item("response.output_text"), []string{"response." + tc.status})
			if diff := cmp.Diff(want, slices.Compact(types)); diff != "" {
				t.Errorf("events: %s", diff)
			}
			changing := cmpopts.IgnoreFields(responseBody{}, "ID", "CreatedAt")
			if diff := cmp.Diff(got, last, noID, changing, cmpopts.IgnoreFields(promptDetails{}, "CachedTokens")); diff != "" {
				t.Errorf("the last event's response: %s", diff)
			}
		})
	}
}

// Where they are included, a text has the scores that a chat has of its tokens,
// and none of those that are reasoning or calls; a stream has them with the text.
func TestResponseLogProbs(t *testing.T) {
	a := serveAt(t, testmodel.Scripted(t, thinkAndCall...), Options{})
	function := merge(weather["function"].(object), object{"type": "function"})
	chat := ask[chatCompletion](t, a, chatPath, merge(sayHello, object{"tools": []object{weather}, "logprobs": true, "top_logprobs": 2})).Choices[0].LogProbs.Content
	want := chat[5:6]
	if want[0].Token != thinkAndCall[5] || len(want[0].TopLogProbs) != 2 {
		t.Fatalf("the chat has %+v", chat)
	}
	q := object{"temperature": 0, "input": "hello", "tools": []object{function}, "include": []string{includeLogProbs}, "top_logprobs": 2}
	got := ask[responseBody](t, a, responsesPath, q)
	if diff := cmp.Diff(want, *got.Output[1].Content[0].LogProbs); diff != "" || got.Output[0].Content[0].LogProbs != nil || got.TopLogProbs != 2 {
		t.Errorf("%+v, of the text (-chat +response): %s", got, diff)
	}

	var deltas []chatLogProb
	events := 0
	for _, data := range a.events(t, responsesPath, merge(q, object{"stream": true})) {
		var e responseEvent
		decodeAnswer(t, data, &e)
		switch e.Type {
		case "response.output_text.delta":
			deltas = append(deltas, *e.LogProbs...)
		case "response.content_part.added":
			if p := e.Part; p.Type == "output_text" && (p.LogProbs == nil || len(*p.LogProbs) != 0) {
				t.Errorf("a part begins with %s", data)
			}
		case "response.output_text.done":
			events++
			if diff := cmp.Diff(want, *e.LogProbs); diff != "" {
				t.Errorf("at the end of the text: %s", diff)
			}
		case "response.completed":
			events++
			if diff := cmp.Diff(want, *e.Response.Output[1].Content[0].LogProbs); diff != "" {
				t.Errorf("in the last event: %s", diff)
			}
		default:
			if e.LogProbs != nil {
				t.Errorf("%s has log-probabilities", data)
			}
		}
	}
	if diff := cmp.Diff(want, deltas); diff != "" || events != 2 {
		t.Errorf("%d events; streamed: %s", events, diff)
	}

	// Alternatives come if they are asked for, scores if they are included.
	delete(q, "top_logprobs")
	if p := *ask[responseBody](t, a, responsesPath, q).Output[1].Content[0].LogProbs; len(p) != 1 || len(p[0].TopLogProbs) != 0 {
		t.Errorf("without top_logprobs: %+v", p)
	}
	delete(q, "include")
	if _, text := a.post(t, responsesPath, q); strings.Contains(text, `"logprobs"`) {
		t.Errorf("without include: %s", text)
	}
}

// To put a long answer together takes memory as it is long, and not as its square.
func TestLongAnswers(t *testing.T) {
	const pieces = 10000
	text, call := make([]answerDelta, pieces), make([]answerDelta, pieces)
	for i := range pieces {
		text[i].Delta = tools.Delta{Kind: tools.Content, Text: "x"}
		call[i].Delta = tools.Delta{Kind: tools.CallArguments, Text: "x"}
	}
	call[0].Delta = tools.Delta{Kind: tools.CallName, Text: "f"}
	answer := func(deltas []answerDelta) {
		a := &responding{request: new(responseRequest)}
		for _, d := range deltas {
			a.put(d)
		}
		a.write()
	}
	for name, f := range map[string]func(){
		"chat":                    func() { (&chatAnswer{of: &chatting{chatRequest: new(chatRequest)}, deltas: call}).choice() },
		"chunk":                   func() { new(chatDelta).add(text) },
		"response":                func() { answer(text) },
		"arguments in a response": func() { answer(call) },
	} {
		if n := testing.AllocsPerRun(1, f); n > 100 {
			t.Errorf("%s: %v pieces of memory for %d of text", name, n, pieces)
		}
	}
}

// Functions go out as items and come back as items, and the model sees of them
// what it would see in a chat.
func TestResponseCalls(t *testing.T) {
	a := serveAt(t, testmodel.Scripted(t, thinkAndCall...), Options{})
	function := merge(weather["function"].(object), object{"type": "function"})
	q := object{"temperature": 0, "input": "hello", "tools": []object{function}}
	got := ask[responseBody](t, a, responsesPath, q)
	call := func(arguments, status string) outputItem {
		return outputItem{Type: "function_call", Name: "weather", Arguments: &arguments, Status: status}
	}
	reasoning := outputItem{Type: "reasoning", Status: "completed", Summary: &[]string{}, Content: []outputPart{{Type: "reasoning_text", Text: "I should ask."}}}
	message := outputItem{Type: "message", Role: "assistant", Status: "completed", Content: []outputPart{{Type: "output_text", Text: "Let me see.", Annotations: &[]string{}}}}
	koeln, bonn := call(`{"city": "Köln"}`, "completed"), call(`{"city": "Bonn"}`, "completed")
	noID := cmpopts.IgnoreFields(outputItem{}, "ID", "CallID")
	if diff := cmp.Diff([]outputItem{reasoning, message, koeln, bonn}, got.Output, noID); diff != "" || got.Status != "completed" || len(got.Tools) != 1 {
		t.Fatalf("%s: %s", got.Status, diff)
	}
	for _, tc := range []struct {
		name   string
		fields object
		want   []outputItem
	}{
		{"one call", object{"parallel_tool_calls": false}, []outputItem{reasoning, message, koeln}},
		{"none", object{"tool_choice": "none", "max_output_tokens": 6}, []outputItem{reasoning, {
			Type: "message", Role: "assistant", Status: "incomplete", Content: []outputPart{{Type: "output_text", Text: "Let me see.\n", Annotations: &[]string{}}},
		}}},
		{"cut behind a call", object{"max_output_tokens": 11}, []outputItem{reasoning, message, koeln}},
		{"cut in a call", object{"max_output_tokens": 8}, []outputItem{reasoning, message, call("", "incomplete")}},
	} {
		got := ask[responseBody](t, a, responsesPath, merge(q, tc.fields))
		if diff := cmp.Diff(tc.want, got.Output, noID); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}

	var types []string
	arguments := map[string]string{}
	var done []outputItem
	for _, data := range a.events(t, responsesPath, merge(q, object{"stream": true})) {
		var e responseEvent
		decodeAnswer(t, data, &e)
		types = append(types, e.Type)
		switch e.Type {
		case "response.function_call_arguments.delta":
			arguments[e.ItemID] += e.Delta
		case "response.function_call_arguments.done":
			if *e.Arguments != arguments[e.ItemID] || e.Name != "weather" {
				t.Errorf("%+v after %q", e, arguments)
			}
		case "response.output_item.added":
			if e.Item.Type == "function_call" && (*e.Item.Arguments != "" || e.Item.CallID == "" || e.Item.Status != "in_progress") {
				t.Errorf("a call begins as %+v", e.Item)
			}
		case "response.output_item.done":
			done = append(done, *e.Item)
		case "response.completed":
			if diff := cmp.Diff(done, e.Response.Output); diff != "" {
				t.Errorf("the last event (-items, +response): %s", diff)
			}
		}
	}
	if diff := cmp.Diff(got.Output, done, noID); diff != "" {
		t.Errorf("streamed: %s", diff)
	}
	item := func(kind string) []string {
		return []string{"response.output_item.added", "response.function_call_arguments." + kind, "response.function_call_arguments.done", "response.output_item.done"}
	}
	want := append(slices.Concat(item("delta"), item("delta")), "response.completed")
	if all := slices.Compact(types); len(all) < len(want) || cmp.Diff(want, all[len(all)-len(want):]) != "" {
		t.Errorf("events %q, want them to end with %q", all, want)
	}
}

// A conversation with calls is the same prompt as the chat of the same messages.
func TestResponseCallsInput(t *testing.T) {
	e := openEngine(t, testmodel.Safetensors(t, testmodel.Family("llama")), engine.Options{ChatTemplate: "{% for m in messages %}[{{ m.role }} {{ m.content or '' }}" +
		"{% for c in m.tool_calls %} {{ c.id }} {{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %} {{ m.tool_call_id }}]{% endfor %}{{ tools[0].function | tojson }}"})
	a := serveEngine(t, e, Options{})
	page := e.CachePageSize() // the last of a prompt is not cached
	last := object{"role": "user", "content": strings.Repeat("x", page+1)}
	calls := []object{
		{"id": "a", "function": object{"name": "weather", "arguments": `{"city": "Köln"}`}},
		{"id": "b", "function": object{"name": "weather", "arguments": `{"city": "Bonn"}`}},
	}
	inChat := object{"max_tokens": 1, "tools": []object{weather}, "messages": []object{
		{"role": "user", "content": "hello"},
		{"role": "assistant", "content": "ask", "tool_calls": calls},
		{"role": "tool", "tool_call_id": "a", "content": "sun"},
		{"role": "tool", "tool_call_id": "b", "content": "rain"},
		{"role": "assistant", "tool_calls": calls[:1]},
		last,
	}}
	function := merge(weather["function"].(object), object{"type": "function", "strict": nil})
	item := func(i int) object {
		return merge(calls[i]["function"].(object), object{"type": "function_call", "id": "fc_1", "call_id": calls[i]["id"], "status": "completed"})
	}
	here := object{"max_output_tokens": 1, "tools": []object{function}, "input": []object{
		{"role": "user", "content": "hello"},
		{"role": "assistant", "content": "ask"},
		item(0), item(1),
		{"type": "function_call_output", "call_id": "a", "output": "sun"},
		{"type": "function_call_output", "call_id": "b", "output": []object{{"type": "input_text", "text": "rain"}}},
		item(0), last,
	}}
	want := ask[chatCompletion](t, a, chatPath, inChat).Usage
	got := ask[responseBody](t, a, responsesPath, here).Usage
	if got.InputTokens != want.PromptTokens || got.InputDetails.CachedTokens < want.PromptTokens-page-1 {
		t.Errorf("%+v, want the %d tokens of the chat, cached", got, want.PromptTokens)
	}
}

func TestResponseRefusals(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	for _, tc := range []struct {
		fields       object
		param, words string
	}{
		{object{"input": nil}, "input", "missing"},
		{object{"input": []object{}}, "input", "empty"},
		{object{"input": 5}, "input", "expected a string or a list"},
		{object{"input": []object{{"type": "web_search_call"}}}, "input[0]", "expected message, reasoning, function_call or"},
		{object{"input": []object{{"type": "function_call", "call_id": "a", "name": "f"}}}, "input[0]", "arguments is null"},
		{object{"input": []object{{"type": "function_call_output", "call_id": "a", "output": "x"}}}, "input[0]", `call_id is "a", expected that of a function_call before it`},
		{object{"input": []object{{"role": "user", "content": []object{{"type": "input_image"}}}}}, "input[0].content[0]", "text only"},
		{object{"input": []object{{"role": "tool", "content": "x"}}}, "input[0]", "role tool"},
		{object{"previous_response_id": "resp_1"}, "previous_response_id", "keeps no responses"},
		{object{"store": true}, "store", "keeps no answers"},
		{object{"background": true}, "background", "keeps no responses"},
		{object{"truncation": "auto"}, "truncation", "no token of a prompt is dropped"},
		{object{"tools": []object{{"type": "web_search"}}}, "tools[0]", "expected function"},
		{object{"tools": []object{{"type": "function", "name": "f f"}}}, "tools[0].name", "expected up to 64"},
		{object{"tools": []object{{"type": "function", "name": "f", "strict": true}}}, "tools[0].strict", "does not constrain"},
		{object{"tool_choice": "required"}, "tool_choice", "does not constrain"},
		{object{"text": object{"format": object{"type": "json_schema"}}}, "text.format", "does not constrain"},
		{object{"text": object{"verbosity": "low"}}, "text.verbosity", "no such setting"},
		{object{"reasoning": object{"summary": "auto"}}, "reasoning.summary", "no summary"},
		{object{"max_output_tokens": 0}, "max_output_tokens", "expected 1 or more"},
		{object{"max_tokens": 5}, "max_tokens", "unknown field"},
		{object{"include": []string{includeLogProbs, "reasoning.encrypted_content"}}, "include", `include[1] is "reasoning.encrypted_content": of what`},
		{object{"include": includeLogProbs}, "include", "expected a list"},
		{object{"top_logprobs": 2}, "top_logprobs", "without include"},
		{object{"include": []string{includeLogProbs}, "top_logprobs": 21}, "top_logprobs", "expected 0 to 20"},
		{object{"logprobs": true}, "logprobs", "/v1/responses with include"},
	} {
		status, text := a.post(t, responsesPath, merge(object{"input": "hello", "max_output_tokens": 1}, tc.fields))
		var got struct{ Error errorFields }
		decodeAnswer(t, text, &got)
		if status != http.StatusBadRequest || got.Error.Param == nil || *got.Error.Param != tc.param || !strings.Contains(got.Error.Message, tc.words) {
			t.Errorf("%v: %d %s; want the parameter %s and %q", tc.fields, status, text, tc.param, tc.words)
		}
	}
}
