package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/foretoken/foretoken/internal/checkpoint/pull"
)

type runCmd struct {
	Model  string  `arg:"" optional:"" name:"MODEL" help:"Model to run; without it ${default_model}."`
	Prompt *string `arg:"" optional:"" name:"PROMPT" help:"What to answer, as one argument: quote it."`

	System      string   `placeholder:"TEXT" help:"How the model shall behave: the system message."`
	Raw         bool     `help:"Continue the prompt as plain text, without the chat template."`
	Tokens      tokenIDs `placeholder:"IDS" help:"Token ids as the prompt, such as 1,2,3, used as they are. Needs no tokenizer."`
	PrintTokens bool     `help:"Print the ids of the answer as one JSON array instead of its text."`
	Verbose     bool     `help:"Print timings, the seed and why the answer ended."`

	samplingFlags
	engineFlags
	dtypeFlags
}

// Help is shown by --help.
func (runCmd) Help() string {
	return `On a terminal without PROMPT this is a chat: /help there lists its commands, Ctrl-C stops an answer, Ctrl-D
ends the chat. With PROMPT, or with text on stdin, it gives one answer. A model without a chat template
continues the prompt as with --raw.

A single argument is the MODEL if it is a path, the name of a model or written like one (hf:…, name:tag,
org/name, file.gguf); otherwise, say if it holds spaces, it is the PROMPT for ` + pull.DefaultModel + `. A model that
can be pulled by its name is pulled on first use.

Sampling parameters are those that the model's generation_config.json recommends; where it recommends none,
temperature 0.8, top-k 40, top-p 0.95. Each flag overrides its own.

    foretoken run "Why is the sky blue?"
    foretoken run smollm2:135m --temperature 0 --max-tokens 64 < question.txt
    foretoken run ./model.gguf --raw "Once upon a time" --seed 1
    foretoken run ./model --tokens 1,2,3 --ignore-eos --max-tokens 32 --print-tokens`
}

// tokenIDs are ids as the command line has them: numbers between commas, in
// brackets or not.
type tokenIDs []int32

// UnmarshalText is called by kong.
func (t *tokenIDs) UnmarshalText(text []byte) error {
	list := strings.TrimSpace(string(text))
	if inner, ok := strings.CutPrefix(list, "["); ok {
		list = strings.TrimSuffix(inner, "]")
	}
	*t = tokenIDs{}
	for field := range strings.SplitSeq(list, ",") {
		id, err := strconv.ParseInt(strings.TrimSpace(field), 10, 32)
		if err != nil {
			return fmt.Errorf("%q is not a token id; the form is 1,2,3", field)
		}
		*t = append(*t, int32(id))
	}
	return nil
}

// arguments tells model and prompt apart.
func (c *runCmd) arguments() error {
	if c.Prompt == nil && c.Tokens == nil && c.Model != "" && !namesModel(c.Model) {
		prompt := c.Model
		c.Model, c.Prompt = "", &prompt
	}
	c.Model = cmp.Or(c.Model, pull.DefaultModel)
	switch {
	case c.Tokens != nil && (c.Prompt != nil || c.System != "" || c.Raw):
		return usagef("--tokens is the whole prompt: it goes with neither PROMPT nor --system nor --raw")
	case c.Raw && c.System != "":
		return usagef("--raw uses no chat template, and so no --system")
	}
	return nil
}

// namesModel reports whether a single argument is a model rather than a prompt.
func namesModel(s string) bool {
	if _, err := os.Stat(s); err == nil {
		return true
	}
	if strings.ContainsAny(s, " \t\r\n") {
		return false
	}
	store, err := pull.Default()
	return strings.ContainsAny(s, ":/\\") || isPath(s) || err == nil && nearest(s, knownNames(store)) != ""
}

// Run answers.
func (c *runCmd) Run(ctx context.Context) error {
	if err := c.arguments(); err != nil {
		return err
	}
	if _, missing, err := find(c.Model); err != nil && !missing {
		return err // before a prompt is read
	}
	interactive := false
	if c.Prompt == nil && c.Tokens == nil {
		if interactive = term.IsTerminal(int(os.Stdin.Fd())) && !c.PrintTokens; !interactive {
			text, err := readStdin(ctx)
			if err != nil {
				return err
			}
			if text = strings.TrimSuffix(text, "\n"); text == "" {
				return errors.New("no prompt: stdin is empty")
			}
			c.Prompt = &text
		}
	}
	path, err := fetch(ctx, c.Model)
	if err != nil {
		return err
	}
	began := time.Now()
	e, err := c.open(path, c.dtypeFlags)
	if err != nil {
		return err
	}
	defer e.Close()
	s := &session{
		engine: e, params: c.params(e.Sampling()), system: c.System,
		raw: c.Raw, ids: c.PrintTokens, verbose: c.Verbose, load: time.Since(began),
	}
	if err := s.prepare(c.Model, c.Tokens != nil); err != nil {
		return err
	}
	if interactive {
		return s.chat(ctx)
	}
	tokens := []int32(c.Tokens)
	if tokens == nil {
		if tokens, err = s.prompt(ctx, *c.Prompt); err != nil {
			return err
		}
	}
	_, err = s.answer(ctx, tokens)
	return err
}
