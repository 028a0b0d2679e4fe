package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/engine"
)

type renderCmd struct {
	Template string    `required:"" placeholder:"FILE" help:"A .jinja file, a tokenizer_config.json, or a model."`
	Context  string    `required:"" placeholder:"FILE" help:"What the template is given, as a JSON object: messages, tools, add_generation_prompt, bos_token, …"`
	Now      time.Time `placeholder:"TIME" help:"Time that the template sees, such as 2026-11-29T12:00:00Z. Default: now."`
}

// Help is shown by --help.
func (renderCmd) Help() string {
	return `Prints the prompt and nothing else, rendered as Hugging Face renders it. Of several templates the one for tools
is taken where the context has tools. What the template itself refuses is an error with its own message.

    foretoken render --template ./model --context chat.json`
}

// Run prints the prompt.
func (c *renderCmd) Run(ctx context.Context) error {
	vars, err := readContext(c.Context)
	if err != nil {
		return err
	}
	source, special, err := c.source(vars)
	if err != nil {
		return err
	}
	for name, token := range special {
		if _, given := vars.Get(name); !given {
			vars.Set(name, token)
		}
	}
	t, err := chat.Parse(source)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Template, err)
	}
	if c.Now.IsZero() {
		c.Now = time.Now()
	}
	prompt, err := t.Render(ctx, vars, c.Now)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Template, err)
	}
	_, err = io.WriteString(os.Stdout, prompt)
	return err
}

func readContext(path string) (*chat.Object, error) {
	data, err := readInput(path)
	if err != nil {
		return nil, err
	}
	v, err := chat.DecodeJSON(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	vars, ok := v.(*chat.Object)
	if !ok {
		return nil, fmt.Errorf("%s: expected a JSON object", path)
	}
	return vars, nil
}

// source returns the template to render, with the special tokens that the
// same model names.
func (c *renderCmd) source(vars *chat.Object) (source string, special map[string]string, err error) {
	path, err := locate(c.Template)
	if err != nil {
		return "", nil, err
	}
	var sources map[string]string
	info, err := os.Stat(path)
	switch ext := filepath.Ext(path); {
	case err != nil:
		return "", nil, pathError(path, err)
	case info.IsDir(), ext == ".gguf", ext == ".safetensors":
		sources, special, err = modelTemplates(path)
	default:
		data, err := readInput(path)
		if err != nil {
			return "", nil, err
		}
		if ext != ".json" {
			return string(data), nil, nil
		}
		if sources, err = chat.FromTokenizerConfig(data); err != nil {
			return "", nil, fmt.Errorf("%s: %w", path, err)
		}
		special = configTokens(data)
	}
	if err != nil {
		return "", nil, err
	}
	tools, _ := vars.Get("tools")
	list, _ := tools.(*chat.List)
	if source, err = chat.Choose(sources, list != nil && len(list.Items) > 0); err != nil {
		return "", nil, fmt.Errorf("%s: %w", c.Template, err)
	}
	return source, special, nil
}

// modelTemplates returns the templates of a model, and its special tokens.
func modelTemplates(path string) (sources, special map[string]string, err error) {
	c, err := checkpoint.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	if sources, err = engine.Templates(c); err != nil {
		return nil, nil, err
	}
	t, err := engine.OpenTokenizer(c)
	if errors.Is(err, fs.ErrNotExist) {
		return sources, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return sources, t.SpecialTokens(), nil
}

// configTokens returns the special tokens of a tokenizer_config.json, which
// are texts or objects with a text as content.
func configTokens(data []byte) map[string]string {
	v, _ := chat.DecodeJSON(data)
	config, _ := v.(*chat.Object)
	special := map[string]string{}
	for key, value := range config.All() {
		if object, ok := value.(*chat.Object); ok {
			value, _ = object.Get("content")
		}
		name, _ := key.(string)
		if text, ok := value.(string); ok && strings.HasSuffix(name, "_token") {
			special[name] = text
		}
	}
	return special
}
