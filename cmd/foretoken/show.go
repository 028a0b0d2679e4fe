package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/foretoken/foretoken/internal/checkpoint/pull"
	"github.com/foretoken/foretoken/internal/engine"
)

type showCmd struct {
	Model string `arg:"" name:"MODEL" help:"Model to describe."`

	JSON     bool `name:"json" help:"Print it as JSON; sizes are in bytes."`
	Template bool `env:"FORETOKEN_SHOW_TEMPLATE" help:"Print the chat template instead."`
}

// Run describes the model.
func (c *showCmd) Run() error {
	path, err := locate(c.Model)
	if err != nil {
		return err
	}
	e, err := engine.Describe(path)
	if err != nil {
		return err
	}
	defer e.Close()
	source, err := template(e.Checkpoint())
	if err != nil {
		return err
	}
	if c.Template {
		if source == "" {
			if e.HasTemplate() {
				return fmt.Errorf("%s has no chat template: conversations are in its family's own encoding", c.Model)
			}
			return fmt.Errorf("%s has no chat template", c.Model)
		}
		_, err := io.WriteString(os.Stdout, source)
		return err
	}
	d := description{Model: c.Model, Path: path, Template: e.HasTemplate()}
	if err := d.read(e); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(d)
	}
	return d.print()
}

// print writes the description for people.
func (d *description) print() error {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(out, name+"\t"+format+"\n", args...) }
	has := func(there bool) string {
		if there {
			return "yes"
		}
		return "no"
	}
	row("model", "%s", d.Model)
	if d.Source != "" {
		row("source", "%s", d.Source)
	}
	if d.Licence != "" {
		row("licence", "%s", harmless(d.Licence))
	}
	d.printDesign(row)
	row("parameters", "%s", d.parametersLine())
	row("context", "%d tokens", d.Context)
	row("vocabulary", "%d tokens", d.Vocab)
	row("tokenizer", "%s", has(d.Tokenizer))
	row("chat template", "%s", has(d.Template))
	row("sampling", "%s", d.samplingLine())
	row("weights", "%s in %s", pull.ByteSize(d.WeightBytes), d.Format)
	for _, s := range d.Types {
		row("", "%s\t%s\t%.1f %%\ttensors: %d", s.Type, pull.ByteSize(s.Bytes), 100*float64(s.Bytes)/float64(max(d.WeightBytes, 1)), s.Tensors)
	}
	d.printCache(row)
	for _, m := range d.Memory {
		row("memory", "%s for weights and %d tokens", pull.ByteSize(m.Bytes), m.Tokens)
	}
	for _, f := range d.Files {
		row("file", "%s (%s)", f.Path, pull.ByteSize(f.Size))
	}
	return out.Flush()
}

// parametersLine says how many there are and, unless that is all, how many work
// on a token.
func (d *description) parametersLine() string {
	line := count(d.Parameters)
	if d.FeedForward.Experts != nil {
		line += fmt.Sprintf(", of which %s work on a token", count(d.ActiveParameters))
	}
	if d.MTPParameters > 0 {
		line += fmt.Sprintf("; %s are of multi-token prediction", count(d.MTPParameters))
	}
	return line
}

func (d *description) samplingLine() string {
	var parts []string
	for _, name := range []string{"temperature", "top_k", "top_p", "min_p", "typical_p", "repetition_penalty"} {
		if v, ok := d.Sampling[name]; ok {
			parts = append(parts, fmt.Sprint(name, " ", v))
		}
	}
	if len(parts) == 0 {
		return "nothing recommended"
	}
	return strings.Join(parts, ", ")
}

// count prints a number of parameters as model names do.
func count(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f B", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	}
	return fmt.Sprintf("%d", n)
}
