//go:build shared

package deepseek

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/fixtures"
)

var encodings = map[string]*Encoding{"deepseek_v32": v32, "deepseek_v4": v4}

func readFile(t *testing.T, elem ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(fixtures.Data(t, append([]string{"encoding"}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func readJSON(t *testing.T, elem ...string) chat.Value {
	t.Helper()
	v, err := chat.DecodeJSON(readFile(t, elem...))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// field returns a field of an object, the zero value if it has none.
func field[T any](o *chat.Object, key string) T {
	v, _ := o.Get(key)
	x, _ := v.(T)
	return x
}

// messages reads messages as the reference takes them, with this format's own fields among the others.
func messages(list *chat.List) []chat.Message {
	var messages []chat.Message
	for _, item := range list.Items {
		o := item.(*chat.Object)
		m := chat.Message{
			Role: field[string](o, "role"), ToolCallID: field[string](o, "tool_call_id"),
			ReasoningContent: field[string](o, "reasoning_content"), ToolCalls: toolCalls(o), Extra: new(chat.Object),
		}
		m.Content, _ = o.Get("content")
		for _, key := range []string{"tools", "response_format", "task", "wo_eos", "mask"} {
			if v, ok := o.Get(key); ok {
				m.Extra.Set(key, v)
			}
		}
		messages = append(messages, m)
	}
	return messages
}

func toolCalls(o *chat.Object) (calls []chat.ToolCall) {
	list := field[*chat.List](o, "tool_calls")
	if list == nil {
		return nil
	}
	for _, item := range list.Items {
		call := item.(*chat.Object)
		f := field[*chat.Object](call, "function")
		calls = append(calls, chat.ToolCall{ID: field[string](call, "id"), Name: field[string](f, "name"), Arguments: field[string](f, "arguments")})
	}
	return calls
}

// kwargs are the reference's options.
func kwargs(o *chat.Object) *chat.Object {
	k := new(chat.Object)
	for key, v := range o.All() {
		if key == "thinking_mode" {
			k.Set("thinking", v == "thinking")
		} else {
			k.Set(key.(string), v)
		}
	}
	return k
}

type vector struct {
	name, dir string
	c         chat.Conversation
	want      string
}

// published are the vectors of the checkpoints themselves.
func published(t *testing.T) []vector {
	t.Helper()
	thinking := chat.NewObject("thinking", true)
	var vectors []vector
	for _, f := range []struct{ dir, in, out string }{
		{"deepseek_v32", "test_input.json", "test_output.txt"},
		{"deepseek_v32", "test_input_search_wo_date.json", "test_output_search_wo_date.txt"},
		{"deepseek_v4", "test_input_1.json", "test_output_1.txt"},
		{"deepseek_v4", "test_input_3.json", "test_output_3.txt"},
	} {
		c := chat.Conversation{Kwargs: thinking}
		in := readJSON(t, f.dir, f.in)
		list, ok := in.(*chat.List)
		if !ok {
			list = field[*chat.List](in.(*chat.Object), "messages")
			if tools := field[*chat.List](in.(*chat.Object), "tools"); tools != nil {
				c.Tools = tools.Items
			}
		}
		c.Messages = messages(list)
		vectors = append(vectors, vector{f.in, f.dir, c, string(readFile(t, f.dir, f.out))})
	}
	return vectors
}

func TestSharedPublished(t *testing.T) {
	for _, v := range published(t) {
		got, err := encodings[v.dir].Prompt(v.c)
		if err != nil {
			t.Errorf("%s: %v", v.name, err)
		} else if diff := cmp.Diff(v.want, got); diff != "" {
			t.Errorf("%s: %s", v.name, diff)
		}
	}
}

// Where the reference fails and we go on.
var goesOn = map[string]string{
	"deepseek_v32: developer message of an earlier turn": bos + "Be brief.Fine." + eos + userMark + "New." + assistantMark + thinkStart,
}

func TestSharedEncode(t *testing.T) {
	for dir, e := range encodings {
		cases := field[*chat.List](readJSON(t, dir, "extra.json").(*chat.Object), "encode").Items
		if len(cases) < 22 {
			t.Errorf("%s: only %d cases", dir, len(cases))
		}
		for _, item := range cases {
			o := item.(*chat.Object)
			name := dir + ": " + field[string](o, "name")
			got, err := e.Prompt(chat.Conversation{
				Messages: messages(field[*chat.List](o, "messages")),
				Kwargs:   kwargs(field[*chat.Object](o, "options")),
			})
			want, ok := goesOn[name]
			if !ok {
				if _, ok := o.Get("error"); ok {
					if err == nil {
						t.Errorf("%s: got %q, want an error", name, got)
					}
					continue
				}
				want = field[string](o, "prompt")
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
}

// What is read where the reference refuses the text.
func recovered(block string) map[string]Output {
	add := Call{Name: "add", Arguments: `{"a": 1.50, "note": "x<y \"q\"\nz"}`, Complete: true}
	now := Call{Name: "now", Arguments: "{}", Complete: true}
	return map[string]Output{
		"unclosed reasoning":    {Reasoning: "just thinking"},
		"no end of sentence":    {Content: "Hello."},
		"text after calls":      {Content: "amore", Calls: []Call{add, now}},
		"think tag in content":  {Content: "a<think>b"},
		"call inside reasoning": {Reasoning: "r", Calls: []Call{add, now}},
		"parameter of the same name twice": {Calls: []Call{
			{Name: "f", Arguments: `{"a": "1", "a": "2"}`, Complete: true},
		}},
	}
}

func TestSharedParse(t *testing.T) {
	for dir, e := range encodings {
		cases := field[*chat.List](readJSON(t, dir, "extra.json").(*chat.Object), "parse").Items
		if len(cases) < 12 {
			t.Errorf("%s: only %d cases", dir, len(cases))
		}
		for _, item := range cases {
			o := item.(*chat.Object)
			name := field[string](o, "name")
			var want Output
			if m := field[*chat.Object](o, "message"); m != nil {
				want = Output{Reasoning: field[string](m, "reasoning_content"), Content: field[string](m, "content")}
				for _, call := range toolCalls(m) {
					want.Calls = append(want.Calls, Call{Name: call.Name, Arguments: call.Arguments, Complete: true})
				}
			} else {
				var ok bool
				if want, ok = recovered(e.block)[name]; !ok {
					t.Errorf("%s: %s: the reference fails", dir, name)
				}
			}
			text := field[string](o, "text")
			everyWay(t, dir+": "+name, text, field[string](o, "thinking_mode") == "thinking", want)
		}
	}
}

// The turns of the assistant in published prompts are read back into the messages that they were made of.
func TestSharedTurns(t *testing.T) {
	turns := 0
	for _, v := range published(t) {
		prompt := v.want
		for i, m := range v.c.Messages {
			if m.Role != "assistant" {
				continue
			}
			want := Output{Reasoning: m.ReasoningContent}
			want.Content, _ = m.Content.(string)
			for _, call := range m.ToolCalls {
				want.Calls = append(want.Calls, Call{Name: call.Name, Arguments: call.Arguments, Complete: true})
			}
			before, err := encodings[v.dir].Prompt(chat.Conversation{
				Messages: v.c.Messages[:i], Tools: v.c.Tools, Kwargs: v.c.Kwargs, AddGenerationPrompt: true,
			})
			if err != nil {
				t.Fatalf("%s: message %d: %v", v.name, i+1, err)
			}
			if strings.HasPrefix(prompt, before) { // what comes later changed no mode
				turn, _, _ := strings.Cut(prompt[len(before):], eos)
				everyWay(t, filepath.Join(v.dir, v.name), turn+eos, Thinking(before), want)
				turns++
			}
		}
	}
	if turns < 20 {
		t.Errorf("only %d turns", turns)
	}
}
