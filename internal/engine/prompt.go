package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/checkpoint"
)

// Templates reads the chat templates of a checkpoint by name:
// chat_template.jinja, tokenizer_config.json or GGUF metadata.
func Templates(c *checkpoint.Checkpoint) (map[string]string, error) {
	if m := c.Metadata(); m != nil {
		sources := map[string]string{}
		if s, ok := m.String("tokenizer.chat_template"); ok {
			sources["default"] = s
		}
		names, _ := m.Strings("tokenizer.chat_templates")
		for _, name := range names {
			if s, ok := m.String("tokenizer.chat_template." + name); ok {
				sources[name] = s
			}
		}
		return sources, nil
	}
	data, err := c.File("tokenizer_config.json")
	sources := map[string]string{}
	if err == nil {
		if sources, err = chat.FromTokenizerConfig(data); err != nil {
			return nil, fmt.Errorf("tokenizer_config.json: %w", err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	data, err = c.File("chat_template.jinja")
	if err == nil {
		sources["default"] = string(data)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return sources, nil
}

// Prompt renders a conversation with the model's template.
func (e *Engine) Prompt(ctx context.Context, c chat.Conversation) (string, error) {
	source, err := chat.Choose(e.templates, len(c.Tools) > 0)
	if err != nil {
		return "", fmt.Errorf("%s: %w", e.checkpoint.Files()[0], err)
	}
	t, err := e.template(source)
	if err != nil {
		return "", err
	}
	if c.SpecialTokens == nil && e.tokenizer != nil {
		c.SpecialTokens = e.tokenizer.SpecialTokens()
	}
	return t.Prompt(ctx, c)
}

// template compiles a source once.
func (e *Engine) template(source string) (*chat.Template, error) {
	if t, ok := e.compiled.Load(source); ok {
		return t.(*chat.Template), nil
	}
	t, err := chat.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	e.compiled.Store(source, t)
	return t, nil
}
