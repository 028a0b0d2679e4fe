package chat

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/chat/jinja"
)

func mustParse(t testing.TB, source string) *Template {
	t.Helper()
	tmpl, err := Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

var (
	call    = ToolCall{ID: "call_1", Name: "add", Arguments: `{"b": 1, "a": 2.0}`}
	addTool = NewObject("type", "function", "function", NewObject("name", "add", "description", "Add <two> numbers"))
)

func TestPrompt(t *testing.T) {
	for _, c := range []struct {
		name, template string
		conversation   Conversation
		want           string
	}{
		{
			"a question", chatML,
			Conversation{Messages: []Message{User("Hi")}, AddGenerationPrompt: true},
			"<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
		},
		{
			"without generation prompt", chatML,
			Conversation{Messages: []Message{User("Hi"), Assistant("Hello")}},
			"<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello<|im_end|>\n",
		},
		{
			"special tokens", llama,
			Conversation{Messages: []Message{System(" Be kind. "), User("Hi")}, SpecialTokens: map[string]string{"bos_token": "<BOS>"}},
			"<BOS><|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>",
		},
		{
			"kwargs", chatML,
			Conversation{Messages: []Message{User("Hi")}, AddGenerationPrompt: true, Kwargs: NewObject("enable_thinking", false)},
			"<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think></think>",
		},
		{
			"tools keep their order", chatML,
			Conversation{Messages: []Message{System("Sys"), User("1+2?")}, Tools: []Value{addTool}},
			"<|im_start|>system\nSys\n# Tools\n" +
				`{"type": "function", "function": {"name": "add", "description": "Add <two> numbers"}}` + "<|im_end|>\n<|im_start|>user\n1+2?<|im_end|>\n",
		},

		// Calls: arguments as an object where the template prints JSON, content as text where it adds.
		{
			"a call", chatML,
			Conversation{Messages: []Message{User("2+1?"), Assistant("", call), ToolResult("call_1", "add", "3.0")}},
			"<|im_start|>user\n2+1?<|im_end|>\n<|im_start|>assistant\n" +
				`<tool_call>{"name": "add", "arguments": {"b": 1, "a": 2.0}}</tool_call>` + "<|im_end|>\n<|im_start|>tool\n3.0<|im_end|>\n",
		},
		{
			"a call without arguments", chatML,
			Conversation{Messages: []Message{User("?"), Assistant("", ToolCall{Name: "now"})}},
			"<|im_start|>user\n?<|im_end|>\n<|im_start|>assistant\n" + `<tool_call>{"name": "now", "arguments": {}}</tool_call>` + "<|im_end|>\n",
		},
		{
			"arguments as text, content null", deepseek,
			Conversation{Messages: []Message{User("2+1?"), Assistant("", call), ToolResult("call_1", "add", "3.0")}},
			"<user>2+1?<call>add\n" + `{"b": 1, "a": 2.0}` + "</call><output>3.0</output>",
		},
		{
			"content empty instead of null", deepseek,
			Conversation{Messages: []Message{User("2+1?"), {Role: "assistant", Content: "", ToolCalls: []ToolCall{call}}}},
			"<user>2+1?<call>add\n" + `{"b": 1, "a": 2.0}` + "</call>",
		},

		// Content: text or parts.
		{
			"parts for a text template", chatML,
			Conversation{Messages: []Message{{Role: "user", Content: TextParts("one", "two")}}},
			"<|im_start|>user\none\ntwo<|im_end|>\n",
		},
		{
			"text for a template of both", gemma,
			Conversation{Messages: []Message{User(" Hi ")}, AddGenerationPrompt: true},
			"<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n",
		},
		{
			"parts for a template of both", gemma,
			Conversation{Messages: []Message{{Role: "user", Content: TextParts(" one", " two")}}},
			"<start_of_turn>user\nonetwo<end_of_turn>\n",
		},
		{
			"text for a template of parts", parts,
			Conversation{Messages: []Message{User("Hi")}},
			"user[text:Hi]",
		},
		{
			"parts for a template of parts", parts,
			Conversation{Messages: []Message{{Role: "user", Content: TextParts("one", "two")}}},
			"user[text:one][text:two]",
		},

		// Roles and reasoning.
		{
			"developer is system", chatML,
			Conversation{Messages: []Message{{Role: "developer", Content: "Sys"}, User("Hi")}},
			"<|im_start|>system\nSys<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n",
		},
		{
			"developer is developer", harmony,
			Conversation{Messages: []Message{{Role: "developer", Content: "Dev"}, User("Hi")}},
			"D:Dev;user:Hi;",
		},
		{
			"reasoning", chatML,
			Conversation{Messages: []Message{User("Q"), {Role: "assistant", Content: "A", ReasoningContent: "hmm"}}},
			"<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n<think>hmm</think>A<|im_end|>\n",
		},
		{
			"reasoning as thinking", harmony,
			Conversation{Messages: []Message{User("Q"), {Role: "assistant", Content: "A", ReasoningContent: "hmm"}}},
			"user:Q;T:hmm;assistant:A;",
		},
		{
			"reasoning as a part", ministral,
			Conversation{Messages: []Message{User("Q"), {Role: "assistant", Content: "A", ReasoningContent: "hmm"}}},
			"user:Q;[THINK]hmm[/THINK]assistant:A;",
		},
		{
			"reasoning without content", ministral,
			Conversation{Messages: []Message{User("Q"), {Role: "assistant", ReasoningContent: "hmm"}}},
			"user:Q;[THINK]hmm[/THINK]",
		},
		{
			"extra fields", `{{ messages[0].mood }}`,
			Conversation{Messages: []Message{{Role: "user", Content: "Hi", Extra: NewObject("mood", "good")}}},
			"good",
		},

		// Continuing the last message.
		{
			"continue", chatML,
			Conversation{Messages: []Message{User("Hi"), Assistant("The answer is ")}, ContinueFinalMessage: true},
			"<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nThe answer is ",
		},
		{
			"continue where the template trims", llama,
			Conversation{Messages: []Message{User("Hi"), Assistant("The answer is \n")}, ContinueFinalMessage: true},
			"<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nThe answer is",
		},
		{
			"continue the last part", parts,
			Conversation{Messages: []Message{User("Hi"), {Role: "assistant", Content: TextParts("one", "two")}}, ContinueFinalMessage: true},
			"user[text:Hi]assistant[text:one][text:two",
		},
		{
			"continue nothing yet", chatML,
			Conversation{Messages: []Message{User("Hi"), Assistant("")}, ContinueFinalMessage: true},
			"<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
		},

		{
			"none, not undefined", `{{ tools is none }} {{ documents is none }} {{ add_generation_prompt is false }} {{ nope is defined }} {{ messages[0] }}`,
			Conversation{Messages: []Message{User("Hi")}},
			"True True True False {'role': 'user', 'content': 'Hi'}",
		},
		{
			"the date", `{{ strftime_now('%d %b %Y') }}`,
			Conversation{Messages: []Message{User("Hi")}, Now: time.Date(2024, 7, 26, 0, 0, 0, 0, time.UTC)},
			"26 Jul 2024",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := mustParse(t, c.template).Prompt(t.Context(), c.conversation)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPromptRefuses(t *testing.T) {
	hi := []Message{User("Hi")}
	image := NewList(textPart("What is this?"), NewObject("type", "image_url", "image_url", NewObject("url", "http://localhost/")))
	for _, c := range []struct {
		name, template string
		conversation   Conversation
		want           string
	}{
		{"no messages", chatML, Conversation{}, "the conversation has no messages"},
		{"what the template refuses", gemma, Conversation{Messages: []Message{System("Sys")}}, "System role not supported"},
		{"what the template fails on", `{{ messages[0].content + 1 }}`, Conversation{Messages: hi}, `template line 1: TypeError: can only concatenate str (not "int") to str`},
		{
			"an image", gemma,
			Conversation{Messages: []Message{{Role: "user", Content: image}}},
			`message 1 (user): content part 2: expected type "text", not "image_url": this model takes no other input`,
		},
		{
			"a part that is no object", gemma,
			Conversation{Messages: []Message{{Role: "user", Content: NewList("x")}}},
			`message 1 (user): content part 1: expected type "text", not null: this model takes no other input`,
		},
		{
			"text that is none", gemma,
			Conversation{Messages: []Message{{Role: "user", Content: NewList(NewObject("type", "text", "text", 1))}}},
			"message 1 (user): content part 1: text is not a string",
		},
		{
			"content of another type", chatML,
			Conversation{Messages: []Message{{Role: "user", Content: 1.5}}},
			"message 1 (user): content: expected a string, null or a list of parts, not float64",
		},
		{"a user with nothing to say", chatML, Conversation{Messages: []Message{{Role: "user"}}}, "message 1 (user): content is missing"},
		{
			"arguments that are no JSON", chatML,
			Conversation{Messages: []Message{User("?"), Assistant("", ToolCall{Name: "f", Arguments: `{"a": `})}},
			"message 2 (assistant): tool call 1 (f): arguments: json: offset 6: unexpected end",
		},
		{
			"arguments that are no object", chatML,
			Conversation{Messages: []Message{User("?"), Assistant("", ToolCall{Name: "f", Arguments: `[1]`})}},
			"message 2 (assistant): tool call 1 (f): arguments: expected a JSON object",
		},
		{"tools without a place for them", llama, Conversation{Messages: hi, Tools: []Value{addTool}}, "this model's chat template takes no tools"},
		{
			"calls without a place for them", llama,
			Conversation{Messages: []Message{User("?"), Assistant("", call)}},
			"message 2 (assistant): this model's chat template takes no tool calls",
		},
		{
			"both ends", chatML,
			Conversation{Messages: hi, AddGenerationPrompt: true, ContinueFinalMessage: true},
			"add_generation_prompt and continue_final_message exclude each other",
		},
		{
			"nothing to continue", parts,
			Conversation{Messages: []Message{{Role: "assistant", Content: NewList()}}, ContinueFinalMessage: true},
			"continue_final_message: the last message has no text to continue",
		},
		{
			"a message that is not printed", `{{ messages|length }}`,
			Conversation{Messages: hi, ContinueFinalMessage: true},
			"continue_final_message: the template does not print the last message's text",
		},
		{"a variable of ours", chatML, Conversation{Messages: hi, Kwargs: NewObject("messages", "x")}, "template variable messages: the conversation sets it"},
		{
			"an extra field of ours", chatML,
			Conversation{Messages: []Message{{Role: "user", Content: "Hi", Extra: NewObject("role", "x")}}},
			"message 1 (user): extra field role: a message has it already",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := mustParse(t, c.template).Prompt(t.Context(), c.conversation)
			if err == nil || err.Error() != c.want {
				t.Errorf("got %q, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

func TestTemplateErrors(t *testing.T) {
	_, err := mustParse(t, gemma).Prompt(t.Context(), Conversation{Messages: []Message{Assistant("Hi")}})
	var e *TemplateError
	if !errors.As(err, &e) || !e.Raised || e.Message != "Conversation roles must alternate user/assistant/user/assistant/..." {
		t.Errorf("raised: got %#v", err)
	}
	_, err = mustParse(t, "{{ a.b }}").Render(t.Context(), NewObject(), time.Time{})
	if !errors.As(err, &e) || e.Raised {
		t.Errorf("failed: got %#v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = mustParse(t, "{% for i in range(100000) %}{% endfor %}").Render(ctx, NewObject(), time.Time{})
	var limit *LimitError
	if !errors.As(err, &limit) || !errors.Is(err, context.Canceled) || errors.As(err, &e) {
		t.Errorf("canceled: got %#v", err)
	}
	var syntax *jinja.SyntaxError
	if _, err := Parse("{{ 1"); !errors.As(err, &syntax) {
		t.Errorf("syntax: got %#v", err)
	}
}

func TestWhatTemplatesReadAndWant(t *testing.T) {
	for _, c := range []struct {
		name, template string
		reads          reads
		wants          wants
	}{
		{"chatML", chatML, reads{tools: true, toolCalls: true}, wants{}},
		{"llama", llama, reads{}, wants{}},
		{"gemma", gemma, reads{parts: true, string: true}, wants{}},
		{"parts", parts, reads{parts: true}, wants{}},
		{"deepseek", deepseek, reads{toolCalls: true}, wants{argumentsText: true, null: true, nullOnly: true}},
		{"harmony", harmony, reads{developer: true, thinking: true}, wants{}},
		{"ministral", ministral, reads{parts: true, string: true, thinking: true, thinkingParts: true}, wants{}},
		{
			"null is read", `{% for m in messages %}{{ m.content if m.content is not none }}{{ m.tool_calls|tojson if m.tool_calls }}{% endfor %}`,
			reads{toolCalls: true},
			wants{null: true},
		},
		{"null is printed", `{% for m in messages %}{{ m.content }}{{ m.tool_calls|tojson if m.tool_calls }}{% endfor %}`, reads{toolCalls: true}, wants{}},
		{
			"a dict is printed", `{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments }}{% endfor %}{% endfor %}`,
			reads{toolCalls: true},
			wants{argumentsText: true, null: true},
		},
		{
			"results are refused", `{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no') }}{% endif %}{{ m.tool_calls|tojson if m.tool_calls }}{% endfor %}`,
			reads{toolCalls: true},
			wants{null: true},
		},
		{
			"no end", `{% for m in messages %}{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}{% endfor %}{{ m.tool_calls }}`,
			reads{toolCalls: true},
			wants{},
		},

		{
			"content by assignment", `{% for m in messages %}{% set c = m['content'] %}{% set d = c or [] %}{% for p in d|selectattr('type', 'eq', 'text') %}{% endfor %}{% endfor %}`,
			reads{parts: true},
			wants{},
		},
		{"content by filter", `{% for p in messages[0].content|list %}{% endfor %}`, reads{parts: true}, wants{}},
		{"content by get", `{% for p in messages[0].get('content') %}{% endfor %}`, reads{parts: true}, wants{}},
		{"content by keyword", `{% macro f(x, y) %}{% for p in y[1:] %}{% endfor %}{% endmacro %}{{ f(1, y=messages[0].content) }}`, reads{parts: true}, wants{}},
		{"not the content", `{% for p in messages[0].content.split('\n') %}{% endfor %}{% for p in messages %}{% endfor %}`, reads{}, wants{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tmpl := mustParse(t, c.template)
			if tmpl.reads != c.reads {
				t.Errorf("reads %+v\nwant %+v", tmpl.reads, c.reads)
			}
			if got := tmpl.wants(); got != c.wants {
				t.Errorf("wants %+v\nwant %+v", got, c.wants)
			}
		})
	}
}

func TestSources(t *testing.T) {
	for _, c := range []struct {
		config string
		want   map[string]string
		err    string
	}{
		{`{"chat_template": "T", "bos_token": "<s>"}`, map[string]string{"default": "T"}, ""},
		{`{"chat_template": [{"name": "default", "template": "A"}, {"name": "tool_use", "template": "B"}]}`, map[string]string{"default": "A", "tool_use": "B"}, ""},
		{`{}`, map[string]string{}, ""},
		{`{"chat_template": null}`, map[string]string{}, ""},
		{`{"chat_template": 1}`, nil, "tokenizer config: chat_template: expected a string or a list"},
		{`{"chat_template": [{"name": "default"}]}`, nil, "tokenizer config: chat_template[0]: expected an object with the strings name and template"},
		{`[]`, nil, "tokenizer config: expected an object"},
		{`{`, nil, "tokenizer config: json: offset 1: expected a key"},
	} {
		got, err := FromTokenizerConfig([]byte(c.config))
		if text := ""; err != nil {
			text = err.Error()
			if text != c.err {
				t.Errorf("%s: got %v, want %s", c.config, err, c.err)
			}
		} else if diff := cmp.Diff(c.want, got); diff != "" || c.err != "" {
			t.Errorf("%s: %s", c.config, diff)
		}
	}

	two := map[string]string{"default": "A", "tool_use": "B"}
	for _, c := range []struct {
		templates map[string]string
		tools     bool
		want, err string
	}{
		{two, false, "A", ""},
		{two, true, "B", ""},
		{map[string]string{"default": "A"}, true, "A", ""},
		{map[string]string{"only": "C"}, false, "C", ""},
		{map[string]string{"tool_use": "B", "rag": "R"}, false, "", "the checkpoint has no default chat template, only rag, tool_use"},
		{nil, false, "", "the checkpoint has no chat template"},
	} {
		got, err := Choose(c.templates, c.tools)
		if got != c.want || (err != nil) != (c.err != "") || err != nil && err.Error() != c.err {
			t.Errorf("%v, tools %v: got %q, %v", c.templates, c.tools, got, err)
		}
	}
}

// Preparing a conversation must not change what the caller holds: others may be rendering it.
func TestPromptLeavesItsInputAlone(t *testing.T) {
	content := TextParts("one", "two")
	c := Conversation{Messages: []Message{User("Hi"), {Role: "assistant", Content: content, ReasoningContent: "hmm"}}, ContinueFinalMessage: true}
	for _, source := range []string{chatML, parts, ministral} {
		if _, err := mustParse(t, source).Prompt(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	text, err := EncodeJSON(content)
	if want := `[{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]`; text != want || err != nil {
		t.Errorf("got %s, %v", text, err)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, source := range []string{
		chatML, llama, gemma, parts, deepseek, harmony, ministral,
		"{% raw %}{{{% endraw %}{#- c -#}{% for x in 'ab' recursive %}{{ loop.index ~ loop(x) }}{% endfor %}",
		"{{ '%5.2f|%s' % (1, 'a') }}{{ '{:>{w}}'.format(1, w=3) }}{{ [3, 1]|sort|tojson(indent=2) }}{{ 2 ** 100 // 7 }}",
		"{{ 'aXb'.split('X')|map('upper')|join(', ') }}{{ messages|groupby('role') }}{{ messages[::-1]|selectattr('role', 'eq', 'user')|list }}",
	} {
		f.Add(source)
	}
	conversation := Conversation{Messages: []Message{User("Hi"), Assistant("", call), ToolResult("call_1", "add", "3"), Assistant("It is 3.")}}
	f.Fuzz(func(t *testing.T, source string) {
		tmpl, err := compile(source, jinja.Limits{Steps: 1 << 16, Memory: 1 << 20, Text: 1 << 18})
		if err != nil {
			return
		}
		text, err := tmpl.Prompt(t.Context(), conversation)
		if len(text) > 1<<18 {
			t.Errorf("%d bytes, %v", len(text), err)
		}
	})
}

func BenchmarkPrompt(b *testing.B) {
	tmpl := mustParse(b, chatML)
	c := Conversation{Tools: []Value{addTool}, AddGenerationPrompt: true}
	for range 10 {
		c.Messages = append(c.Messages, User(strings.Repeat("lorem ipsum ", 20)), Assistant("", call), ToolResult("call_1", "add", "3"), Assistant("Three."))
	}
	tmpl.wants()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tmpl.Prompt(context.Background(), c); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(chatML); err != nil {
			b.Fatal(err)
		}
	}
}
