package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestOpenErrors(t *testing.T) {
	weights, model := shard("a"), ggufOf(t, nil, nil)
	for _, test := range []struct {
		name  string
		files map[string][]byte
		path  string // within the directory
		want  string
	}{
		{"missing path", nil, "absent", "absent: file does not exist"},
		{"empty directory", nil, "", "no weights: expected model.safetensors, model.safetensors.index.json or a .gguf file"},
		{"other weights", map[string][]byte{"consolidated.safetensors": weights}, "", "no model.safetensors or model.safetensors.index.json: to open consolidated.safetensors, name it"},
		{
			"shards without their index",
			map[string][]byte{"model-00001-of-00002.safetensors": weights, "model-00002-of-00002.safetensors": weights},
			"",
			"model.safetensors.index.json is missing: without it model-00001-of-00002.safetensors, model-00002-of-00002.safetensors cannot be put together",
		},
		{
			"pickled weights",
			map[string][]byte{"pytorch_model-00001-of-00002.bin": {1}, "consolidated.00.pth": {1}, "training_args.bin": {1}},
			"",
			"consolidated.00.pth, pytorch_model-00001-of-00002.bin: pickled PyTorch weights are not supported: convert them to safetensors",
		},
		{"several models", map[string][]byte{"b.gguf": model, "a.gguf": model}, "", "2 models: name one of a.gguf, b.gguf"},
		{"a model and a split one", map[string][]byte{"b.gguf": model, "a-00001-of-00002.gguf": model, "a-00002-of-00002.gguf": model}, "", "2 models: name one of a-00001-of-00002.gguf, b.gguf"},
		{"neither format", map[string][]byte{"model.bin": []byte("PK\x03\x04")}, "model.bin", "expected a directory, a .safetensors file or a GGUF file"},
		{"config not JSON", map[string][]byte{"model.safetensors": weights, "config.json": []byte("{")}, "", "config.json: expected a JSON object"},
		{"config not an object", map[string][]byte{"model.safetensors": weights, "config.json": []byte("[]")}, "", "config.json: expected a JSON object"},
		{"directory as a file", map[string][]byte{"model.safetensors/x": weights}, "", "model.safetensors: not a regular file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(writeFiles(t, test.files), test.path)
			_, err := Open(path)
			wantError(t, err, path, test.want)
		})
	}
}

func TestOpenChoice(t *testing.T) {
	weights, model := shard("a"), ggufOf(t, nil, nil)
	index := []byte(`{"weight_map":{"b":"b.safetensors"}}`)
	for _, test := range []struct {
		name  string
		files map[string][]byte
		path  string
		want  string // the first file
	}{
		{"single file before all", map[string][]byte{"model.safetensors": weights, indexName: index, "m.gguf": model}, "", "model.safetensors"},
		{"index before GGUF", map[string][]byte{indexName: index, "b.safetensors": shard("b"), "m.gguf": model}, "", "b.safetensors"},
		{"index by name", map[string][]byte{indexName: index, "b.safetensors": shard("b")}, indexName, "b.safetensors"},
		{"only GGUF", map[string][]byte{"m.gguf": model, "mmproj-m.gguf": model}, "", "m.gguf"},
		{"GGUF by name", map[string][]byte{"model.safetensors": weights, "m.gguf": model}, "m.gguf", "m.gguf"},
		{"GGUF without suffix", map[string][]byte{"sha256-0123": model}, "sha256-0123", "sha256-0123"},
		{"shard by name", map[string][]byte{"x.safetensors": weights}, "x.safetensors", "x.safetensors"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := writeFiles(t, test.files)
			c := open(t, filepath.Join(dir, test.path))
			if c.Files()[0] != filepath.Join(dir, test.want) {
				t.Errorf("opened %v, want %s", c.Files(), test.want)
			}
		})
	}
}

func TestSideFiles(t *testing.T) {
	dir := writeFiles(t, map[string][]byte{
		"model.safetensors": shard("a"),
		"config.json":       []byte(` {"model_type":"llama"}`),
		"tokenizer.json":    []byte("{}"),
		"additional_chat_templates/tool_use.jinja": []byte("x"),
		"additional_chat_templates/secret":         []byte("x"),
		"sub/tokenizer.json":                       []byte("x"),
	})
	for _, path := range []string{dir, filepath.Join(dir, "model.safetensors")} {
		c := open(t, path)
		if got := string(c.ConfigJSON()); got != ` {"model_type":"llama"}` {
			t.Errorf("%s: config %q", path, got)
		}
		for name, want := range map[string]string{"tokenizer.json": "{}", "additional_chat_templates/tool_use.jinja": "x"} {
			if got, err := c.File(name); err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		if _, err := c.File("generation_config.json"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v, want ErrNotExist", err)
		}
		for _, name := range []string{
			"", ".", "..", "../x", "/etc/passwd", "sub/tokenizer.json", `sub\tokenizer.json`, "C:x", "a\x00",
			"additional_chat_templates/secret", "additional_chat_templates/../tokenizer.json", "additional_chat_templates/../../x.jinja", "x/additional_chat_templates/tool_use.jinja",
		} {
			_, err := c.File(name)
			wantError(t, err, "expected a plain file name")
		}
	}
}

func TestSideFileTooLarge(t *testing.T) {
	dir := writeFiles(t, map[string][]byte{"model.safetensors": shard("a"), "big": nil})
	if err := os.Truncate(filepath.Join(dir, "big"), maxSideFile+1); err != nil {
		t.Fatal(err)
	}
	_, err := open(t, dir).File("big")
	wantError(t, err, "big: 268435457 bytes: expected at most 268435456")
	if err := os.Truncate(filepath.Join(dir, "big"), maxConfig+1); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "big"), filepath.Join(dir, "config.json")); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir)
	wantError(t, err, "config.json: 16777217 bytes: expected at most")
}

func TestCloseTwice(t *testing.T) {
	c, err := Open(writeFiles(t, map[string][]byte{"model.safetensors": shard("a")}))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
