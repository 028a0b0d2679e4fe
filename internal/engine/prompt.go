package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/chat/deepseek"
	"github.com/foretoken/foretoken/internal/checkpoint"
)

// Templates reads the chat templates of a checkpoint by name: those of GGUF
// metadata; or those of tokenizer_config.json, over which .jinja files win.
func Templates(c *checkpoint.Checkpoint) (map[string]string, error) {
	if m := c.Metadata(); m != nil {
		sources, err := ggufTemplates(m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Files()[0], err)
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
	for name, file := range map[string]string{
		chat.DefaultTemplate: "chat_template.jinja",
		chat.ToolTemplate:    "additional_chat_templates/tool_use.jinja",
	} {
		data, err := c.File(file)
		if err == nil {
			sources[name] = string(data)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return sources, nil
}

// ggufTemplates reads the default template and those that have a name.
func ggufTemplates(m *checkpoint.Metadata) (map[string]string, error) {
	const key = "tokenizer.chat_template"
	sources := map[string]string{}
	add := func(name, key string) error {
		value := m.Get(key)
		source, ok := value.(string)
		if value != nil && !ok {
			return fmt.Errorf("key %.80s is of type %T, expected string", key, value)
		}
		if ok {
			sources[name] = source
		}
		return nil
	}
	if err := add(chat.DefaultTemplate, key); err != nil {
		return nil, err
	}
	names, ok := m.Strings(key + "s")
	if value := m.Get(key + "s"); value != nil && !ok {
		return nil, fmt.Errorf("key %ss is of type %T, expected []string", key, value)
	}
	for _, name := range names {
		if err := add(name, key+"."+name); err != nil {
			return nil, err
		}
	}
	return sources, nil
}

// encoding is the conversations' form of a family whose checkpoints have no
// template, nil for others. Templates that others have added to copies of these
// checkpoints differ from it in details, so they do not count, unless one is
// asked for.
func (e *Engine) encoding() *deepseek.Encoding {
	if e.asked {
		return nil
	}
	return deepseek.For(e.Config().Architecture)
}

// openTemplates finds the template that was asked for, or those of the model's
// files.
func (e *Engine) openTemplates(o Options) (err error) {
	if o.ChatTemplate != "" {
		e.asked, e.templates = true, map[string]string{chat.DefaultTemplate: o.ChatTemplate}
		_, err = e.template(o.ChatTemplate)
		return err
	}
	e.templates, err = Templates(e.checkpoint)
	return err
}

// HasTemplate reports whether Prompt can render conversations.
func (e *Engine) HasTemplate() bool { return len(e.templates) > 0 || e.encoding() != nil }

// Template is the source of the template for conversations with tools, ""
// where there is none, or where an encoding takes its place.
func (e *Engine) Template() string {
	if e.encoding() != nil {
		return ""
	}
	source, _ := chat.Choose(e.templates, true) // the error says that there is none
	return source
}

// Reads reports whether the prompt of a conversation, with or without tools,
// depends on a variable of that name in its Kwargs.
func (e *Engine) Reads(variable string, tools bool) bool {
	if encoding := e.encoding(); encoding != nil {
		return encoding.Reads(variable)
	}
	source, err := chat.Choose(e.templates, tools)
	if err != nil {
		return false
	}
	t, err := e.template(source)
	return err == nil && t.Reads(variable)
}

// Prompt renders a conversation with the model's template, or in the encoding
// of its family.
func (e *Engine) Prompt(ctx context.Context, c chat.Conversation) (string, error) {
	if encoding := e.encoding(); encoding != nil {
		return encoding.Prompt(c)
	}
	source, err := chat.Choose(e.templates, len(c.Tools) > 0)
	if err != nil {
		return "", err // without a path: a server tells its clients
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

// Answer is the message of a model that generated text after a prompt, for the
// conversation to go on from. A template takes the text as it is.
func (e *Engine) Answer(prompt []int32, text string) chat.Message {
	if e.encoding() == nil || e.tokenizer == nil {
		return chat.Assistant(text)
	}
	thinking := deepseek.Thinking(e.tokenizer.Decode(prompt, false))
	return deepseek.Parse(text, thinking, false).Message()
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
