package tools

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/foretoken/foretoken/internal/chat"
)

// templates print calls as those of real models do.
var templates = []struct {
	format     Format
	source     string
	id         string // that calls have to have
	content    bool   // calls may stand behind an answer
	one        bool   // there is one call at a time
	strings    bool   // values are strings
	angles     bool   // strings may have marks in them
	whitespace bool   // strings may begin or end in it
}{
	{
		format: Format{"hermes", "qwen3"}, content: true, angles: true, whitespace: true,
		source: `{% for m in messages %}<|{{ m.role }}|>{% if m.role == 'assistant' %}{% if m.reasoning_content %}{{ '<think>\n' + m.reasoning_content + '\n</think>\n\n' }}{% endif %}{{ m.content or '' }}` +
			`{% for c in m.tool_calls %}{{ '\n<tool_call>\n{"name": "' + c.function.name + '", "arguments": ' }}{{ c.function.arguments | tojson }}{{ '}\n</tool_call>' }}{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}` +
			`{% if add_generation_prompt %}<|assistant|>{% endif %}{% if tools %}{% endif %}`,
	}, {
		format: Format{"qwen3_coder", "qwen3"}, content: true, whitespace: true,
		source: `{% for m in messages %}<|{{ m.role }}|>{% if m.role == 'assistant' %}{% if m.reasoning_content %}{{ '<think>\n' + m.reasoning_content + '\n</think>\n\n' }}{% endif %}{{ m.content or '' }}` +
			`{% for c in m.tool_calls %}{{ '\n<tool_call>\n<function=' + c.function.name + '>\n' }}{% for k, v in c.function.arguments | items %}{{ '<parameter=' + k + '>\n' }}{{ v if v is string else v | tojson }}{{ '\n</parameter>\n' }}{% endfor %}` +
			`{{ '</function>\n</tool_call>' }}{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}{% if tools %}{% endif %}`,
	}, {
		format: Format{Calls: "llama3_json"}, one: true, angles: true, whitespace: true,
		source: `{% for m in messages %}<|{{ m.role }}|>{% if m.tool_calls %}{% set f = m.tool_calls[0].function %}{{ '{"name": "' + f.name + '", "parameters": ' }}{{ f.arguments | tojson }}}{% else %}{{ m.content }}{% endif %}{% endfor %}` +
			`{% if add_generation_prompt %}<|assistant|>{% endif %}{% if tools %}{% endif %}`,
	}, {
		format: Format{Calls: "pythonic"}, angles: true, whitespace: true, strings: true,
		source: `{% for m in messages %}<|{{ m.role }}|>{% if m.tool_calls %}[{% for c in m.tool_calls %}{{ c.function.name }}({% for k, v in c.function.arguments | items %}{{ k }}={{ v | tojson }}{{ '' if loop.last else ', ' }}{% endfor %}){{ '' if loop.last else ', ' }}{% endfor %}]` +
			`{% else %}{{ m.content }}{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}{% if tools %}{% endif %}`,
	}, {
		format: Format{Calls: "mistral"}, angles: true, whitespace: true,
		source: `{% for m in messages %}[{{ m.role }}]{% if m.tool_calls %}[TOOL_CALLS] [{% for c in m.tool_calls %}{{ (c.function | tojson)[:-1] }}, "id": "{{ c.id }}"}{{ '' if loop.last else ', ' }}{% endfor %}]{% else %}{{ m.content }}{% endif %}{% endfor %}` +
			`{% if add_generation_prompt %}[assistant]{% endif %}{% if tools %}{% endif %}`,
	}, {
		format: Format{Calls: "mistral"}, id: "abcdefgh9", content: true, angles: true, whitespace: true,
		source: `{% for m in messages %}[{{ m.role }}]{{ m.content or '' }}{% for c in m.tool_calls or [] %}[TOOL_CALLS]{{ c.function.name }}[CALL_ID]{{ c.id }}[ARGS]{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}` +
			`{% if add_generation_prompt %}[assistant]{% endif %}{% if tools %}{% endif %}`,
	}, {
		format: Format{Calls: "deepseek_v3"}, angles: true, whitespace: true,
		source: `{% for m in messages %}<｜{{ m.role }}｜>{% if m.tool_calls %}<｜tool▁calls▁begin｜>{% for c in m.tool_calls %}{{ '' if loop.first else '\n' }}<｜tool▁call▁begin｜>{{ c.type }}<｜tool▁sep｜>{{ c.function.name + '\n` + "```json" + `\n' }}{{ c.function.arguments | tojson }}{{ '\n` + "```" + `' }}<｜tool▁call▁end｜>{% endfor %}<｜tool▁calls▁end｜>` +
			`{% else %}{{ m.content }}{% endif %}{% endfor %}{% if add_generation_prompt %}<｜assistant｜>{% endif %}{% if tools %}{% endif %}`,
	}, {
		format: Format{Calls: "deepseek_v31"}, content: true, angles: true, whitespace: true,
		source: `{% for m in messages %}<｜{{ m.role }}｜>{{ m.content or '' }}{% if m.tool_calls %}<｜tool▁calls▁begin｜>{% for c in m.tool_calls %}<｜tool▁call▁begin｜>{{ c.function.name }}<｜tool▁sep｜>{{ c.function.arguments | tojson }}<｜tool▁call▁end｜>{% endfor %}<｜tool▁calls▁end｜>` +
			`{% endif %}{% endfor %}{% if add_generation_prompt %}<｜assistant｜>{% endif %}{% if tools %}{% endif %}`,
	}, {
		format: Format{Calls: "glm45"}, content: true,
		source: `{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}{{ '\n<tool_call>' + c.function.name }}{% for k, v in c.function.arguments | items %}{{ '\n<arg_key>' + k + '</arg_key>\n<arg_value>' }}{{ v if v is string else v | tojson }}</arg_value>{% endfor %}{{ '\n</tool_call>' }}{% endfor %}{% endfor %}` +
			`{% if add_generation_prompt %}<|assistant|>{% endif %}{% if tools %}{% endif %}`,
	},
}

// values are arguments of f by the type that its schema gives them.
func values(t *rapid.T, key string, angles, whitespace bool) chat.Value {
	switch key {
	case "s":
		words := []string{"a", "b c", `"`, `\`, "'", "ü", "🤔", "{", "}", "[", ")", "null", "1", "x\ny"}
		if angles {
			words = append(words, "<", "</tool_call>", "<tool_call>\n{", "[TOOL_CALLS]", "[ARGS]", "<｜tool▁call▁end｜>", "```", "\n</parameter>")
		}
		if whitespace {
			words = append(words, "\n", " ", "\t")
		}
		return drawText(t, "string", words...)
	case "i":
		return rapid.Int64().Draw(t, "integer")
	case "n":
		return rapid.Float64Range(-1e9, 1e9).Draw(t, "number")
	case "b":
		return rapid.Bool().Draw(t, "boolean")
	case "l":
		return chat.NewList("a", int64(1), nil, chat.NewList())
	}
	return chat.NewObject("k", "v", "o", chat.NewObject())
}

func drawText(t *rapid.T, label string, from ...string) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(from), 0, 8).Draw(t, label), "")
}

// What a template prints of a message, were it the model's words, becomes that message again.
func TestRoundTrip(t *testing.T) {
	for _, c := range templates {
		template, err := chat.Parse(c.source)
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			var want Output
			n := rapid.IntRange(0, 3).Draw(t, "calls")
			if c.one {
				n = min(n, 1)
			}
			if n == 0 || c.content {
				want.Content = strings.TrimSpace(drawText(t, "content", "a", " ", "\n", "<", "</", "ü", "<tool", "|", "]", "1"))
			}
			if c.format.Reasoning != "" {
				want.Reasoning = strings.Trim(drawText(t, "reasoning", "r", " ", "\n", "<", "</", "think", "</tool_call>", "ü"), "\n")
			}
			for range n {
				arguments := new(chat.Object)
				for _, key := range rapid.Permutation([]string{"s", "i", "n", "b", "l", "o"}).Draw(t, "keys")[:rapid.IntRange(0, 6).Draw(t, "parameters")] {
					arguments.Set(key, values(t, key, c.angles, c.whitespace))
				}
				text, err := chat.EncodeJSON(arguments)
				if err != nil {
					t.Fatal(err)
				}
				want.Calls = append(want.Calls, Call{ID: c.id, Name: "f", Arguments: text})
			}
			turn := say(t, template, want)
			got := Parse(c.format, Turn{Tools: offered}, turn)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Call{}, "Text")); diff != "" {
				t.Fatalf("%v: %q: %s", c.format, turn, diff)
			}
			if again := say(t, template, got); again != turn {
				t.Fatalf("%v: %q is said again as %q", c.format, turn, again)
			}
		})
	}
}

// say returns the assistant's words as a template prints them.
func say(t *rapid.T, template *chat.Template, o Output) string {
	m := o.Message()
	for i := range m.ToolCalls {
		if m.ToolCalls[i].ID == "" {
			m.ToolCalls[i].ID = "abcdefgh9"
		}
	}
	c := chat.Conversation{Messages: []chat.Message{chat.User("Q")}, Tools: offered, AddGenerationPrompt: true, Now: time.Unix(0, 0)}
	before, err := template.Prompt(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	c.Messages, c.AddGenerationPrompt = append(c.Messages, m), false
	prompt, err := template.Prompt(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	turn, ok := strings.CutPrefix(prompt, before)
	if !ok {
		t.Fatalf("%q does not go on from %q", prompt, before)
	}
	return turn
}
