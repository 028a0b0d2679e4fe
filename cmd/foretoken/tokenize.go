package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

type tokenizeCmd struct {
	Model string  `arg:"" name:"MODEL" help:"A model, a tokenizer.json, or a GGUF file, which may hold a vocabulary only."`
	Text  *string `arg:"" optional:"" name:"TEXT" help:"What to tokenize; without it, all of stdin."`

	Input   string `placeholder:"FILE" help:"A JSON list of strings to tokenize instead."`
	Special bool   `help:"Add the tokens that mark beginning and end, where the model does."`
}

// Help is shown by --help.
func (tokenizeCmd) Help() string {
	return `Prints the ids of the text as one JSON array; with --input, a list of arrays. Special tokens in the text,
such as <|im_end|>, are recognised.

    foretoken tokenize smollm2:135m "Why is the sky blue?"
    foretoken tokenize ./tokenizer.json --input strings.json`
}

// Run prints token ids.
func (c *tokenizeCmd) Run(ctx context.Context) error {
	if c.Text != nil && c.Input != "" {
		return usagef("TEXT and --input: give one of them")
	}
	t, err := openTokenizer(c.Model)
	if err != nil {
		return err
	}
	if c.Input != "" {
		var texts []*string
		if err := readJSON(c.Input, "a list of strings", &texts); err != nil {
			return err
		}
		lists := make([][]int32, len(texts))
		for i, text := range texts {
			if text == nil {
				return fmt.Errorf("%s: string %d is null: expected a list of strings", c.Input, i)
			}
			if lists[i], err = c.encode(t, *text); err != nil {
				return fmt.Errorf("%s: string %d: %w", c.Input, i, err)
			}
		}
		return printJSON(lists)
	}
	if c.Text == nil {
		text, err := readStdin(ctx)
		if err != nil {
			return err
		}
		c.Text = &text
	}
	ids, err := c.encode(t, *c.Text)
	if err != nil {
		return err
	}
	return printJSON(ids)
}

// encode never returns nil, which JSON would call null.
func (c *tokenizeCmd) encode(t *tokenizer.Tokenizer, text string) ([]int32, error) {
	ids, err := t.Encode(text, tokenizer.Options{Special: c.Special})
	return append([]int32{}, ids...), err
}

// openTokenizer reads the tokenizer of a model, or a tokenizer.json, in a
// directory that may hold no weights.
func openTokenizer(model string) (*tokenizer.Tokenizer, error) {
	path, err := locate(model)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(path, ".json") {
		return readTokenizer(path)
	}
	c, err := checkpoint.Open(path)
	if err != nil {
		file := filepath.Join(path, "tokenizer.json")
		if _, missing := os.Stat(file); missing == nil {
			return readTokenizer(file)
		}
		return nil, err
	}
	defer c.Close()
	t, err := engine.OpenTokenizer(c)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: the model has no tokenizer: expected a tokenizer.json beside its weights", path)
	}
	return t, err
}

// readTokenizer reads a tokenizer.json with the tokenizer_config.json beside
// it, if there is one.
func readTokenizer(path string) (*tokenizer.Tokenizer, error) {
	data, err := readInput(path)
	if err != nil {
		return nil, err
	}
	beside := filepath.Join(filepath.Dir(path), "tokenizer_config.json")
	config, err := readInput(beside)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	t, err := tokenizer.FromJSON(data, config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}
