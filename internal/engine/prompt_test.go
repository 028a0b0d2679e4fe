package engine

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// Where the templates of a model may be, and which of them count.
func TestTemplates(t *testing.T) {
	const list = `{"chat_template": [{"name": "default", "template": "A"}, {"name": "rag", "template": "B"}]}`
	both := map[string]string{"tokenizer_config.json": list, "chat_template.jinja": "C", "additional_chat_templates/tool_use.jinja": "D"}
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  map[string]string
	}{
		{"none", map[string]string{"tokenizer_config.json": `{}`}, map[string]string{}},
		{"one text", map[string]string{"tokenizer_config.json": `{"chat_template": "A"}`}, map[string]string{"default": "A"}},
		{"a list", map[string]string{"tokenizer_config.json": list}, map[string]string{"default": "A", "rag": "B"}},
		{"files over the list", both, map[string]string{"default": "C", "rag": "B", "tool_use": "D"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := testmodel.Safetensors(t, testmodel.Family("llama"))
			for _, name := range []string{"chat_template.jinja", "tokenizer_config.json"} {
				os.Remove(filepath.Join(dir, name))
			}
			for name, text := range tc.files {
				path := filepath.Join(dir, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			c, err := checkpoint.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if got, err := Templates(c); err != nil || !maps.Equal(got, tc.want) {
				t.Errorf("%v, %v; want %v", got, err, tc.want)
			}
		})
	}

	m := testmodel.New(testmodel.Family("llama"))
	m.SetMetadata("tokenizer.chat_template", "A")
	m.SetMetadata("tokenizer.chat_templates", []string{"tool_use"})
	m.SetMetadata("tokenizer.chat_template.tool_use", "B")
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := m.WriteGGUF(path); err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := Templates(c); err != nil || !maps.Equal(got, map[string]string{"default": "A", "tool_use": "B"}) {
		t.Errorf("GGUF: %v, %v", got, err)
	}
}

// A template of the wrong type is an error: without a word the model would
// have none.
func TestGGUFTemplatesOfOtherTypes(t *testing.T) {
	for _, tc := range []struct {
		key, want string
		value     any
	}{
		{"tokenizer.chat_template", "is of type uint32, expected string", uint32(1)},
		{"tokenizer.chat_template", "is of type []string, expected string", []string{"A"}},
		{"tokenizer.chat_templates", "is of type string, expected []string", "tool_use"},
		{"tokenizer.chat_template.tool_use", "is of type bool, expected string", true},
	} {
		m := testmodel.New(testmodel.Family("llama"))
		m.SetMetadata("tokenizer.chat_templates", []string{"tool_use"})
		m.SetMetadata(tc.key, tc.value)
		path := filepath.Join(t.TempDir(), "model.gguf")
		if err := m.WriteGGUF(path); err != nil {
			t.Fatal(err)
		}
		c, err := checkpoint.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := Templates(c); err == nil || err.Error() != path+": key "+tc.key+" "+tc.want {
			t.Errorf("%s: %v", tc.key, err)
		}
	}
}

// namedModel is a model of another architecture.
type namedModel struct {
	model.Model
	architecture string
}

func (m namedModel) Config() *model.Config { return &model.Config{Architecture: m.architecture} }

// The families whose checkpoints have no template need none; a template that
// somebody has added wins.
func TestEncodings(t *testing.T) {
	c := chat.Conversation{
		Messages: []chat.Message{chat.User("Q")}, Kwargs: chat.NewObject("enable_thinking", true), AddGenerationPrompt: true,
	}
	const encoded = "<｜begin▁of▁sentence｜><｜User｜>Q<｜Assistant｜><think>"
	for _, tc := range []struct {
		architecture, template, want string
	}{
		{"deepseek_v32", "", encoded},
		{"deepseek32", "", encoded},
		{"deepseek_v4", "", encoded},
		{"deepseek4", "", encoded},
		{"deepseek4", "{{ messages[0].content }}", encoded},
		{"llama", "", ""},
	} {
		e := &Engine{model: namedModel{architecture: tc.architecture}, checkpoint: open(t, "llama", Options{}).checkpoint}
		if tc.template != "" {
			e.templates = map[string]string{chat.DefaultTemplate: tc.template}
		}
		got, err := e.Prompt(t.Context(), c)
		if got != tc.want || (err == nil) != (tc.want != "") || e.HasTemplate() != (err == nil) {
			t.Errorf("%s, %q: got %q, %v; has a template: %v", tc.architecture, tc.template, got, err, e.HasTemplate())
		}
	}
}

// What a model of such a family thought is no part of what it said.
func TestAnswer(t *testing.T) {
	llama := open(t, "llama", Options{})
	if got := llama.Answer(nil, "r</think>A"); got.Content != "r</think>A" {
		t.Errorf("with a template: %+v", got)
	}
	e := &Engine{model: namedModel{architecture: "deepseek4"}, tokenizer: llama.tokenizer}
	for prompt, want := range map[string]chat.Message{
		"Q<think>":  {Role: "assistant", Content: "A", ReasoningContent: "r"},
		"Q</think>": {Role: "assistant", Content: "r</think>A"},
	} {
		var ids []int32
		for letter := range strings.SplitSeq(prompt, "") {
			id, ok := e.tokenizer.ID(letter)
			if !ok {
				t.Fatalf("no token for %s", letter)
			}
			ids = append(ids, id)
		}
		if diff := cmp.Diff(want, e.Answer(ids, "r</think>A")); diff != "" {
			t.Errorf("%s: %s", prompt, diff)
		}
	}
}
