package server

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foretoken/foretoken/internal/chat/tools"
	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/testmodel"
)

const chatPath = "/v1/chat/completions"

// sayHello is the least that a request needs, and greedy.
var sayHello = object{"messages": []object{{"role": "user", "content": "hello"}}, "temperature": 0}

// weather is a function that a model may call.
var weather = object{"type": "function", "function": object{
	"name": "weather", "description": "of a city", "parameters": object{"type": "object", "properties": object{"city": object{"type": "string"}}},
}}

// thinkAndCall is what a model writes that thinks, speaks and calls a function twice.
var thinkAndCall = []string{
	"<think>", "I should", " ask", ".", "</think>", "\n\nLet me see.\n",
	"<tool_call>", `{"name": "weather", "arguments": `, `{"city": "Köln"}`, "}\n", "</tool_call>", "\n<tool_call>\n",
	`{"name": "weather", "arguments":`, `{"city": "Bonn"}}`, "\n</tool_call> ",
}

// withoutIDs are calls without the ids that the server draws, which it checks.
func withoutIDs(t *testing.T, calls []toolCall) []toolCall {
	t.Helper()
	var ids []string
	calls = slices.Clone(calls)
	for i := range calls {
		ids = append(ids, calls[i].ID)
		if !strings.HasPrefix(calls[i].ID, "call_") || slices.Contains(ids[:i], calls[i].ID) {
			t.Errorf("ids of calls: %q", ids)
		}
		calls[i].ID = ""
	}
	return calls
}

func call(arguments string) toolCall {
	return toolCall{Type: "function", Function: functionCall{Name: "weather", Arguments: arguments}}
}

func TestChatAnswers(t *testing.T) {
	a := serveAt(t, testmodel.Scripted(t, thinkAndCall...), Options{})
	asked := merge(sayHello, object{"tools": []object{weather}})
	tagged := "Let me see.\n<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Köln\"}}\n</tool_call>\n<tool_call>\n" +
		`{"name": "weather", "arguments":{"city": "Bonn"}}` + "\n</tool_call> "
	for _, tc := range []struct {
		name      string
		q         object
		want      chatMessage
		why       string
		reasoning int // tokens: with the marks around it
	}{
		{
			"reasoning, content and calls", asked,
			chatMessage{Content: new("Let me see."), ReasoningContent: "I should ask.", ToolCalls: []toolCall{call(`{"city": "Köln"}`), call(`{"city": "Bonn"}`)}},
			"tool_calls", 5,
		},
		{"one call at most", merge(asked, object{"parallel_tool_calls": false}), chatMessage{Content: new("Let me see."), ReasoningContent: "I should ask.", ToolCalls: []toolCall{call(`{"city": "Köln"}`)}}, "tool_calls", 5},
		{"without tools their marks are text", sayHello, chatMessage{Content: &tagged, ReasoningContent: "I should ask."}, "stop", 5},
		{"no choice of tools", merge(asked, object{"tool_choice": "none"}), chatMessage{Content: &tagged, ReasoningContent: "I should ask."}, "stop", 5},
		{"cut in reasoning", merge(asked, object{"max_tokens": 3}), chatMessage{Content: new(""), ReasoningContent: "I should ask"}, "length", 3},
		{"cut in a call", merge(asked, object{"max_completion_tokens": 9}), chatMessage{Content: new("Let me see."), ReasoningContent: "I should ask.", ToolCalls: []toolCall{call(`{"city": "Köln"}`)}}, "length", 5},
		{"stopped", merge(asked, object{"stop": "me"}), chatMessage{Content: new("Let "), ReasoningContent: "I should ask."}, "stop", 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.want.Role = "assistant"
			got := ask[chatCompletion](t, a, chatPath, tc.q)
			m := got.Choices[0].Message
			m.ToolCalls = withoutIDs(t, m.ToolCalls)
			if diff := cmp.Diff(tc.want, m, cmpopts.EquateEmpty()); diff != "" || got.Choices[0].FinishReason != tc.why || len(got.Choices) != 1 {
				t.Errorf("%s: %s", got.Choices[0].FinishReason, diff)
			}
			u := got.Usage
			if u.Details.ReasoningTokens != tc.reasoning || u.TotalTokens != u.PromptTokens+u.CompletionTokens || u.PromptTokens < 19 {
				t.Errorf("usage %+v, %+v; want %d tokens of reasoning", u, u.Details, tc.reasoning)
			}

			// A stream says the same in pieces.
			streamed := joinChat(t, chunks[chatChunk](t, a, chatPath, merge(tc.q, object{"stream": true})), 1)[0]
			m = streamed.Message
			m.ToolCalls = withoutIDs(t, m.ToolCalls)
			if m.Content == nil && tc.want.Content != nil {
				m.Content = new("")
			}
			if diff := cmp.Diff(tc.want, m, cmpopts.EquateEmpty()); diff != "" || streamed.FinishReason != tc.why {
				t.Errorf("streamed: %s: %s", streamed.FinishReason, diff)
			}
		})
	}
}

// joinChat puts a stream of n answers together as OpenAI's clients do.
func joinChat(t *testing.T, all []chatChunk, n int) []chatChoice {
	t.Helper()
	answers := make([]chatChoice, n)
	for i, chunk := range all {
		if len(chunk.Choices) != 1 || chunk.Object != "chat.completion.chunk" || chunk.ID != all[0].ID {
			t.Fatalf("chunk %d: %+v", i, chunk)
		}
		c := chunk.Choices[0]
		into := &answers[c.Index]
		if into.FinishReason != "" {
			t.Errorf("chunk %d: %+v comes after the end", i, c)
		}
		if (c.Delta.Role == "assistant") != (into.Message.Role == "") {
			t.Errorf("chunk %d: an answer begins with its role, and has it once: %+v", i, c.Delta)
		}
		into.Index = c.Index
		into.Message.Role = "assistant"
		into.Message.ReasoningContent += c.Delta.ReasoningContent
		into.TokenIDs = append(into.TokenIDs, c.TokenIDs...)
		if c.Delta.Content != nil && *c.Delta.Content != "" {
			if into.Message.Content == nil {
				into.Message.Content = new("")
			}
			*into.Message.Content += *c.Delta.Content
		}
		for _, call := range c.Delta.ToolCalls {
			if *call.Index == len(into.Message.ToolCalls) {
				into.Message.ToolCalls = append(into.Message.ToolCalls, toolCall{ID: call.ID, Type: call.Type, Function: call.Function})
				continue
			}
			if *call.Index != len(into.Message.ToolCalls)-1 || call.ID != "" || call.Function.Name != "" {
				t.Errorf("chunk %d: call %+v", i, call)
			}
			into.Message.ToolCalls[*call.Index].Function.Arguments += call.Function.Arguments
		}
		if c.LogProbs != nil {
			if into.LogProbs == nil {
				into.LogProbs = new(chatLogProbs)
			}
			into.LogProbs.Content = append(into.LogProbs.Content, c.LogProbs.Content...)
		}
		if c.FinishReason != nil {
			into.FinishReason = *c.FinishReason
			if diff := cmp.Diff(chatChunkChoice{Index: c.Index, FinishReason: c.FinishReason}, c); diff != "" {
				t.Errorf("chunk %d: an answer ends with a chunk that has nothing else: %s", i, diff)
			}
		}
	}
	return answers
}

// Log-probabilities are of every token, also those of calls and reasoning, and
// in a stream each comes with its token.
func TestChatLogProbs(t *testing.T) {
	a := serveAt(t, testmodel.Scripted(t, thinkAndCall...), Options{})
	q := merge(sayHello, object{"tools": []object{weather}, "logprobs": true, "top_logprobs": 2, "return_token_ids": true})
	got := ask[chatCompletion](t, a, chatPath, q)
	c := got.Choices[0]
	if n := got.Usage.CompletionTokens; len(c.LogProbs.Content) != n || len(c.TokenIDs) != n || n != len(thinkAndCall)+1 || len(got.PromptTokenIDs) != got.Usage.PromptTokens {
		t.Fatalf("%d tokens: %d scores, %d ids; %d of the prompt", n, len(c.LogProbs.Content), len(c.TokenIDs), len(got.PromptTokenIDs))
	}
	for i, p := range c.LogProbs.Content {
		if i < len(thinkAndCall) && i != 2 && p.Token != thinkAndCall[i] {
			t.Errorf("token %d is %q", i, p.Token)
		}
		if len(p.TopLogProbs) != 2 || p.TopLogProbs[0].Token != p.Token || p.TopLogProbs[0].LogProb != p.LogProb || len(p.Bytes) == 0 {
			t.Errorf("token %d: %+v", i, p)
		}
	}
	all := chunks[chatChunk](t, a, chatPath, merge(q, object{"stream": true}))
	for i, chunk := range all {
		if p := chunk.Choices[0].LogProbs; p != nil && len(p.Content) > 1 {
			t.Errorf("chunk %d has the scores of %d tokens", i, len(p.Content))
		}
	}
	if diff := cmp.Diff(got.PromptTokenIDs, all[0].PromptTokenIDs); diff != "" {
		t.Errorf("ids of the prompt: %s", diff)
	}
	streamed := joinChat(t, all, 1)[0]
	if diff := cmp.Diff(c.LogProbs.Content, streamed.LogProbs.Content); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(c.TokenIDs, streamed.TokenIDs); diff != "" {
		t.Error(diff)
	}
}

func TestChatChoices(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	q := merge(sayHello, object{"n": 4, "temperature": 3, "seed": 3, "max_tokens": 8, "ignore_eos": true})
	got := ask[chatCompletion](t, a, chatPath, q)
	streamed := joinChat(t, chunks[chatChunk](t, a, chatPath, merge(q, object{"stream": true})), 4)
	for i := range streamed {
		if got, want := *streamed[i].Message.Content, *got.Choices[i].Message.Content; got != want {
			t.Errorf("choice %d: %q, streamed %q", i, want, got)
		}
	}
	if *got.Choices[0].Message.Content == *got.Choices[1].Message.Content || got.Usage.CompletionTokens != 32 {
		t.Errorf("%+v", got)
	}
}

// Special tokens are text only for those who ask, also where a parser is at work.
func TestSpecialTokensInAnswers(t *testing.T) {
	a := serveAt(t, testmodel.Scripted(t, "one"), Options{})
	q := merge(sayHello, object{"ignore_eos": true, "max_tokens": 2, "tools": []object{weather}})
	for skip, want := range map[bool]string{true: "one", false: "one<|im_end|>"} {
		got := ask[chatCompletion](t, a, chatPath, merge(q, object{"skip_special_tokens": skip}))
		if text := *got.Choices[0].Message.Content; text != want {
			t.Errorf("skip %v: %q, want %q", skip, text, want)
		}
	}
}

// A server that bounds what it writes divides it among the answers.
func TestOutputLimit(t *testing.T) {
	a := serveModel(t, "llama", Options{Limits: Limits{Output: 11}})
	got := ask[chatCompletion](t, a, chatPath, merge(sayHello, object{"n": 2, "ignore_eos": true}))
	if got.Usage.CompletionTokens != 10 || got.Choices[1].FinishReason != "length" {
		t.Errorf("%d tokens, %s", got.Usage.CompletionTokens, got.Choices[1].FinishReason)
	}
}

// Prompts are what the template makes of messages, told by /tokenize.
func TestConversations(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	const open = "<|im_start|>assistant\n"
	hi := object{"messages": sayHello["messages"]}
	user := "<|im_start|>user\nhello<|im_end|>\n"
	for _, tc := range []struct {
		q    object
		want string
	}{
		{hi, user + open},
		{object{"messages": []object{{"role": "user", "content": []object{{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}}}}}, "<|im_start|>user\nhel\nlo<|im_end|>\n" + open},
		{merge(hi, object{"add_generation_prompt": false}), user},
		{merge(hi, object{"add_special_tokens": true}), "<bos>" + user + open},
		{merge(hi, object{"tools": []object{weather}}), "<|im_start|>system\nTools:" +
			`{"function": {"description": "of a city", "name": "weather", "parameters": {"properties": {"city": {"type": "string"}}, "type": "object"}}, "type": "function"}` +
			"<|im_end|>\n" + user + open},
		{object{"messages": []object{{"role": "developer", "content": "be brief"}, {"role": "user", "content": "hello"}}}, "<|im_start|>system\nbe brief<|im_end|>\n" + user + open},
		{object{"messages": []object{{"role": "user", "content": "hello"}, {"role": "assistant", "content": "wor"}}, "continue_final_message": true}, user + open + "wor"},
	} {
		got := ask[tokenized](t, a, "/tokenize", tc.q)
		if text := ask[detokenized](t, a, "/detokenize", object{"tokens": got.Tokens}).Prompt; text != tc.want {
			t.Errorf("%v: %q, want %q", tc.q, text, tc.want)
		}
		if _, both := tc.q["add_special_tokens"]; both {
			continue
		}
		asked := ask[chatCompletion](t, a, chatPath, merge(tc.q, object{"return_token_ids": true, "max_tokens": 1}))
		if diff := cmp.Diff(got.Tokens, asked.PromptTokenIDs); diff != "" {
			t.Errorf("%v: %s", tc.q, diff)
		}
	}
}

// A model whose templates are for something else is no model for conversations,
// and what a client is told has no path of the server's.
func TestNoDefaultTemplate(t *testing.T) {
	m := testmodel.New(testmodel.Family("llama"))
	m.SetMetadata("tokenizer.chat_template", nil)
	m.SetMetadata("tokenizer.chat_templates", []string{"rag", "cite"})
	m.SetMetadata("tokenizer.chat_template.rag", "A")
	m.SetMetadata("tokenizer.chat_template.cite", "B")
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := m.WriteGGUF(path); err != nil {
		t.Fatal(err)
	}
	status, text := serveAt(t, path, Options{}).post(t, chatPath, sayHello)
	if status != http.StatusBadRequest || !strings.Contains(text, "no default chat template") || strings.Contains(text, "gguf") {
		t.Errorf("%d %s", status, text)
	}
}

func TestChatRefusals(t *testing.T) {
	a := serveModel(t, "llama", Options{})
	message := func(fields object) object {
		return object{"messages": []object{merge(object{"role": "user", "content": "hello"}, fields)}}
	}
	tool := func(fields object) object {
		return object{"tools": []object{{"type": "function", "function": merge(object{"name": "f"}, fields)}}}
	}
	for _, tc := range []struct {
		fields       object
		param, words string
	}{
		{object{"messages": nil}, "messages", "missing"},
		{object{"messages": []object{}}, "messages", "empty"},
		{object{"messages": "hello"}, "messages", "expected a list"},
		{object{"messages": []string{"hello"}}, "messages[0]", "expected an object"},
		{message(object{"role": "wizard"}), "messages", `role "wizard"`},
		{message(object{"role": nil}), "messages", "no role"},
		{message(object{"content": nil}), "messages", "no content"},
		{message(object{"content": 5}), "messages[0].content", "content is 5"},
		{message(object{"content": []object{}}), "messages[0].content", "no parts"},
		{message(object{"content": []object{{"type": "image_url", "image_url": object{"url": "file:///etc/passwd"}}}}), "messages[0].content[0]", `of type "image_url", expected text`},
		{message(object{"content": []object{{"type": "text", "text": "a"}, {"type": "input_audio"}}}), "messages[0].content[1]", "models here read text only"},
		{message(object{"content": []object{{"type": "text"}}}), "messages[0].content[0]", "text is null"},
		{message(object{"tool_call_id": "x"}), "messages", "tool_call_id"},
		{message(object{"tool_calls": []object{{"function": object{"name": "f", "arguments": "{}"}}}}), "messages", "tool_calls"},
		{message(object{"role": "assistant", "tool_calls": []object{{"function": object{"name": "f", "arguments": object{}}}}}), "messages[0].tool_calls[0].function.arguments", "expected a string"},
		{message(object{"function_call": object{"name": "f"}}), "messages[0].function_call", "replaced by"},
		{message(object{"colour": "red"}), "messages[0].colour", "unknown field"},
		{message(object{"role": "assistant", "refusal": "no"}), "messages", "refusal"},
		{message(object{"role": "assistant", "refusal": nil, "annotations": []int{}}), "", ""},
		{object{"response_format": object{"type": "json_schema", "json_schema": object{}}}, "response_format", "does not constrain"},
		{object{"response_format": object{"type": "json_object"}}, "response_format", "does not constrain"},
		{object{"response_format": object{"type": "text"}}, "", ""},
		{object{"response_format": "text"}, "response_format", "expected {"},
		{merge(tool(nil), object{"tool_choice": "required"}), "tool_choice", "does not constrain"},
		{merge(tool(nil), object{"tool_choice": object{"type": "function", "function": object{"name": "f"}}}), "tool_choice", "names a function"},
		{object{"tool_choice": "auto"}, "tool_choice", "without tools"},
		{object{"tool_choice": "none"}, "", ""},
		{tool(object{"strict": true}), "tools[0].function.strict", "does not constrain"},
		{tool(object{"strict": false}), "", ""},
		{tool(object{"name": "f f"}), "tools[0].function.name", "expected up to 64"},
		{tool(object{"parameters": "none"}), "tools[0].function.parameters", "expected a JSON schema"},
		{object{"tools": []object{{"type": "web_search"}}}, "tools[0]", "expected function"},
		{object{"functions": []object{{"name": "f"}}}, "functions", "replaced by tools"},
		{object{"top_logprobs": 2}, "top_logprobs", "without logprobs"},
		{object{"logprobs": true, "top_logprobs": 21}, "top_logprobs", "0 to 20"},
		{object{"logprobs": 1}, "logprobs", "expected true or false"},
		{object{"max_tokens": 0}, "max_tokens", "expected 1 or more"},
		{object{"n": 1 << 30}, "n", "expected 1 to 128"},
		{object{"max_tokens": 5, "max_completion_tokens": 6}, "max_tokens", "one will do"},
		{object{"modalities": []string{"text", "audio"}}, "modalities", "text only"},
		{object{"modalities": []string{"text"}}, "", ""},
		{object{"audio": object{"voice": "alloy"}}, "audio", "text only"},
		{object{"chat_template": "{{ 1 }}"}, "chat_template", "operator"},
		{object{"continue_final_message": true, "add_generation_prompt": true}, "messages", "exclude each other"},
		{object{"chat_template_kwargs": object{"messages": 1}}, "chat_template_kwargs", "the conversation sets it"},
		{object{"prompt": "x"}, "prompt", "unknown field"},
		{message(object{"content": strings.Repeat("a", 600)}), "messages", "this server takes 512"},
	} {
		status, text := a.post(t, chatPath, merge(sayHello, object{"max_tokens": 1}, tc.fields))
		if tc.param == "" {
			if status != http.StatusOK {
				t.Errorf("%v: %d %s", tc.fields, status, text)
			}
			continue
		}
		var got struct{ Error errorFields }
		decodeAnswer(t, text, &got)
		if status != http.StatusBadRequest || got.Error.Param == nil || *got.Error.Param != tc.param || !strings.Contains(got.Error.Message, tc.words) {
			t.Errorf("%v: %d %s; want the parameter %s and %q", tc.fields, status, text, tc.param, tc.words)
		}
	}
}

// A chat is over when its request is, so that what it took is known, or when the
// model has nothing more to say that anybody wants.
func TestChatIsOver(t *testing.T) {
	for name, tc := range map[string]struct {
		answers []*chatAnswer
		want    bool
	}{
		"one goes on":            {[]*chatAnswer{{finish: "stop"}, {}}, false},
		"one goes on beside":     {[]*chatAnswer{{finish: "tool_calls", cut: true}, {}}, false},
		"the model has ended it": {[]*chatAnswer{{finish: "stop"}}, false},
		"its only call is there": {[]*chatAnswer{{finish: "length"}, {finish: "tool_calls", cut: true}}, true},
	} {
		if got := (&chatting{answers: tc.answers}).over(); got != tc.want {
			t.Errorf("%s: over %v", name, got)
		}
	}
	body, err := json.Marshal(merge(sayHello, object{"tools": []object{weather}, "parallel_tool_calls": false}))
	if err != nil {
		t.Fatal(err)
	}
	c := &chatting{chatRequest: new(chatRequest)}
	if err := decodeRequest(body, c.chatRequest); err != nil {
		t.Fatal(err)
	}
	a := newChatAnswer(c, 0, tools.Format{Calls: "hermes", Reasoning: "qwen3"}.NewParser(tools.Turn{Tools: c.offered()}))
	c.answers = append(c.answers, a)
	for i, text := range thinkAndCall {
		a.add(&engine.Token{Text: text})
		if got, want := c.over(), i >= 9; got != want { // the object of the first call is whole
			t.Errorf("behind %q: over %v", text, got)
		}
	}
}
