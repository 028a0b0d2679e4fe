package engine

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/foretoken/foretoken/internal/checkpoint"
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
