//go:build shared

package chat

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/foretoken/foretoken/internal/fixtures"
)

// Real templates with what Python's jinja2, set up as Hugging Face's libraries do, makes of them.
type golden struct {
	dir      string
	contexts *Object
	expected map[string]string // by "file|context"; ERR … where jinja2 raises
}

func loadGolden(t *testing.T) golden {
	t.Helper()
	g := golden{dir: fixtures.Data(t, "templates")}
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(g.dir, name))
		if err != nil {
			t.Fatalf("shared data is missing: %v", err)
		}
		return data
	}
	v, err := DecodeJSON(read("contexts.json"))
	if err != nil {
		t.Fatal(err)
	}
	g.contexts = v.(*Object)
	if err := json.Unmarshal(read("expected.json"), &g.expected); err != nil {
		t.Fatal(err)
	}
	if len(g.expected) < 126 {
		t.Fatalf("only %d expected renderings", len(g.expected))
	}
	return g
}

func (g golden) template(t *testing.T, name string) *Template {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return mustParse(t, string(source))
}

var renderedOn = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func TestSharedRender(t *testing.T) {
	g := loadGolden(t)
	for key, want := range g.expected {
		file, name, _ := strings.Cut(key, "|")
		vars, _ := g.contexts.Get(name)
		got, err := g.template(t, file).Render(t.Context(), vars.(*Object), renderedOn)
		message, fails := strings.CutPrefix(want, "ERR ")
		_, message, _ = strings.Cut(message, ": ")
		var failed *TemplateError
		switch {
		case fails && (!errors.As(err, &failed) || !strings.HasSuffix(failed.Message, message)):
			t.Errorf("%s: got %q, %v, want %s", key, got, err, want)
		case !fails && (err != nil || got != want):
			t.Errorf("%s: %v\n got %q\nwant %q", key, err, got, want)
		}
	}
}

// A conversation given through Prompt comes out like the variables given to the template, wherever the
// variables are already in the form the template wants.
func TestSharedPrompt(t *testing.T) {
	g := loadGolden(t)
	same := 0
	for key, want := range g.expected {
		file, name, _ := strings.Cut(key, "|")
		tmpl := g.template(t, file)
		vars, _ := g.contexts.Get(name)
		c := conversation(t, vars.(*Object))
		_, hasTools := vars.(*Object).Get("tools")
		switch {
		case strings.HasPrefix(want, "ERR"), name == "parts", name == "toolcall_str":
			continue
		case hasTools && !tmpl.reads.tools || strings.HasPrefix(name, "toolcall") && (!tmpl.reads.toolCalls || tmpl.wants() != wants{null: tmpl.wants().null}):
			continue
		case !hasTools && strings.Contains(file, "Hermes"): // fails on None as it does not on undefined
			continue
		}
		for k := range c.Kwargs.All() { // the renderings are of one set of variables for all templates
			if !tmpl.Reads(k.(string)) {
				c.Kwargs.Set(k.(string), nil)
			}
		}
		got, err := tmpl.Prompt(t.Context(), c)
		if err != nil || got != want {
			t.Errorf("%s: %v\n got %q\nwant %q", key, err, got, want)
		}
		same++
	}
	if same < 70 {
		t.Errorf("only %d conversations compared", same)
	}
}

// conversation reads the variables of a template as a conversation.
func conversation(t *testing.T, vars *Object) Conversation {
	t.Helper()
	c := Conversation{SpecialTokens: map[string]string{}, Kwargs: new(Object), Now: renderedOn}
	for k, v := range vars.All() {
		switch k := k.(string); {
		case k == "messages":
			for _, m := range v.(*List).Items {
				c.Messages = append(c.Messages, message(t, m.(*Object)))
			}
		case k == "tools":
			c.Tools = v.(*List).Items
		case k == "add_generation_prompt":
			c.AddGenerationPrompt = v.(bool)
		case strings.HasSuffix(k, "_token"):
			c.SpecialTokens[k] = v.(string)
		default:
			c.Kwargs.Set(k, v)
		}
	}
	return c
}

func message(t *testing.T, o *Object) Message {
	t.Helper()
	text := func(o *Object, key string) string {
		v, _ := o.Get(key)
		s, _ := v.(string)
		return s
	}
	m := Message{
		Role: text(o, "role"), Name: text(o, "name"), ToolCallID: text(o, "tool_call_id"),
		ReasoningContent: text(o, "reasoning_content"),
	}
	m.Content, _ = o.Get("content")
	calls, _ := o.Get("tool_calls")
	if calls, ok := calls.(*List); ok {
		for _, item := range calls.Items {
			call := item.(*Object)
			f, _ := call.Get("function")
			arguments, _ := f.(*Object).Get("arguments")
			s, ok := arguments.(string)
			if !ok {
				var err error
				if s, err = EncodeJSON(arguments); err != nil {
					t.Fatal(err)
				}
			}
			m.ToolCalls = append(m.ToolCalls, ToolCall{ID: text(call, "id"), Name: text(f.(*Object), "name"), Arguments: s})
		}
	}
	return m
}
