package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"

	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/checkpoint/pull"
)

type runCmd struct {
	Model  string  `arg:"" optional:"" name:"MODEL" help:"Model to run; without it ${default_model}."`
	Prompt *string `arg:"" optional:"" name:"PROMPT" help:"What to answer, as one argument: quote it."`

	System      string       `placeholder:"TEXT" help:"How the model shall behave: the system message."`
	Kwargs      kwargs       `name:"chat-template-kwargs" placeholder:"JSON" help:"Variables for the chat template, such as '{\"enable_thinking\": false}'."`
	Template    templateFile `name:"chat-template" group:"engine" placeholder:"FILE" help:"A .jinja file to use instead of the model's own chat template."`
	Stdin       bool         `help:"Add what stdin has to PROMPT, after a blank line."`
	Raw         bool         `help:"Continue the prompt as plain text, without the chat template."`
	Tokens      tokenIDs     `placeholder:"IDS" help:"Token ids as the prompt, such as 1,2,3, used as they are. Needs no tokenizer."`
	PrintTokens bool         `help:"Print the ids of the answer as one JSON array instead of its text."`
	Verbose     bool         `help:"Print timings, the seed, why the answer ended, and how often drafts were right. On a terminal, tokens that were drafted are green; not if NO_COLOR is set."`

	samplingFlags
	speculationFlags
	engineFlags
	dtypeFlags
}

// Help is shown by --help.
func (runCmd) Help() string {
	return `On a terminal without PROMPT this is a chat: /help there lists its commands, Ctrl-C stops an answer, Ctrl-D
ends the chat. With PROMPT, or with text on stdin in its place, it gives one answer; with --stdin, to both. A
model without a chat template continues the prompt as with --raw.

A single argument that holds a space is the PROMPT for ` + pull.DefaultModel + `, unless it is a path; any other is the
MODEL. A model that can be pulled by its name is pulled on first use.

Sampling parameters are those that the model's generation_config.json recommends; where it recommends none,
temperature 0.8, top-k 40, top-p 0.95. Each flag overrides its own.

    foretoken run "Why is the sky blue?"
    foretoken run smollm2:135m --temperature 0 --max-tokens 64 < question.txt
    foretoken run smollm2:135m --stdin "Summarize this:" < article.txt
    foretoken run ./model.gguf --raw "Once upon a time" --seed 1
    foretoken run ./model --speculative-config '{"method": "suffix"}' --verbose "Repeat after me: …"
    foretoken run ./model --tokens 1,2,3 --ignore-eos --max-tokens 32 --print-tokens`
}

// Validate is called by kong.
func (c *runCmd) Validate() error {
	return cmp.Or(c.speculationFlags.Validate(), c.engineFlags.Validate())
}

// tokenIDs are ids as the command line has them: numbers between commas, in
// brackets or not.
type tokenIDs []int32

// UnmarshalText is called by kong.
func (t *tokenIDs) UnmarshalText(text []byte) error {
	list := strings.TrimSpace(string(text))
	if inner, open := strings.CutPrefix(list, "["); open {
		var closed bool
		if list, closed = strings.CutSuffix(inner, "]"); !closed {
			return fmt.Errorf("%q has no closing bracket", text)
		}
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

// kwargs are variables for the chat template, as vLLM takes them.
type kwargs struct{ *chat.Object }

// UnmarshalText is called by kong.
func (k *kwargs) UnmarshalText(text []byte) error {
	v, err := chat.DecodeJSON(text)
	if err != nil {
		return err
	}
	object, ok := v.(*chat.Object)
	if !ok {
		return errors.New("expected a JSON object")
	}
	k.Object = object
	return nil
}

// arguments tells model and prompt apart.
func (c *runCmd) arguments() error {
	if c.Prompt == nil && c.Tokens == nil && isPrompt(c.Model) {
		prompt := c.Model
		c.Model, c.Prompt = "", &prompt
	}
	c.Model = cmp.Or(c.Model, pull.DefaultModel)
	switch {
	case c.Tokens != nil && (c.Prompt != nil || c.System != "" || c.Raw || c.Kwargs.Object != nil):
		return usagef("--tokens is the whole prompt: it goes with none of PROMPT, --system, --raw and --chat-template-kwargs")
	case c.Raw && c.System != "":
		return usagef("--raw uses no chat template, and so no --system")
	case c.Template != "" && (c.Raw || c.Tokens != nil):
		return usagef("--raw and --tokens use no chat template, and so no --chat-template")
	case c.Raw && c.Kwargs.Object != nil:
		return usagef("--raw uses no chat template, and so no --chat-template-kwargs")
	}
	return nil
}

// isPrompt reports whether a single argument is a prompt rather than a model.
// A word is none, lest the small model answers what was meant for another one.
func isPrompt(s string) bool {
	_, err := os.Stat(s)
	return err != nil && strings.ContainsFunc(s, unicode.IsSpace)
}

// checkModel says early, before a prompt is read, that a model cannot be had.
func (c *runCmd) checkModel() error {
	_, missing, err := find(c.Model)
	switch {
	case err == nil || missing:
		return nil
	case c.Prompt == nil && c.Tokens == nil && !strings.Contains(c.Model, ":") && !isPath(c.Model):
		return fmt.Errorf("%w; a prompt of one word comes after a model: foretoken run %s %q", err, pull.DefaultModel, c.Model)
	}
	return err
}

// readPrompt completes the prompt with what stdin has, if it is asked to:
// waiting for a pipe that somebody's program left open would be for ever.
// Without either this is a chat.
func (c *runCmd) readPrompt(ctx context.Context) (interactive bool, err error) {
	if c.Tokens != nil || c.Prompt != nil && !c.Stdin {
		return false, nil
	}
	if c.Prompt == nil && !c.Stdin && term.IsTerminal(int(os.Stdin.Fd())) && !c.PrintTokens {
		return true, nil
	}
	text, err := readStdin(ctx)
	if err != nil {
		return false, err
	}
	text = strings.TrimSuffix(text, "\n")
	switch {
	case text == "":
		return false, errors.New("no prompt: stdin is empty")
	case c.Prompt == nil:
		c.Prompt = &text
	default:
		*c.Prompt += "\n\n" + text
	}
	return false, nil
}

// Run answers.
func (c *runCmd) Run(ctx context.Context) error {
	if err := c.arguments(); err != nil {
		return err
	}
	if err := c.checkModel(); err != nil {
		return err
	}
	speculation, err := c.speculation()
	if err != nil {
		return usageError{err}
	}
	if err := checkDraft(speculation); err != nil {
		return err
	}
	interactive, err := c.readPrompt(ctx)
	if err != nil {
		return err
	}
	path, err := fetch(ctx, c.Model)
	if err != nil {
		return err
	}
	if err := fetchDraft(ctx, &speculation); err != nil {
		return err
	}
	began := time.Now()
	o := c.options(c.dtypeFlags)
	if o.Speculation = speculation; speculation.Method != "" {
		// That a draft model does not fit is not seen in what it drafts.
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	if o.ChatTemplate, err = c.Template.read(); err != nil {
		return err
	}
	e, err := c.open(ctx, path, o)
	if err != nil {
		return err
	}
	defer e.Close()
	s := &session{
		engine: e, model: c.Model, kwargs: c.Kwargs.Object, params: c.params(e.Sampling()), system: c.System,
		raw: c.Raw, ids: c.PrintTokens, verbose: c.Verbose, load: time.Since(began),
	}
	s.colour = c.Verbose && !c.PrintTokens && colourful(os.Stdout)
	if err := s.prepare(c.Tokens != nil); err != nil {
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
