package main

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/foretoken/foretoken/internal/checkpoint/pull"
)

type listCmd struct{}

// Run lists the models on this machine, those of the Hugging Face cache
// included.
func (listCmd) Run() error {
	store, err := pull.Default()
	if err != nil {
		return err
	}
	models, unreadable := store.List()
	unfinished := store.Unfinished()
	if len(models)+len(unfinished) == 0 {
		note("no models yet; these can be pulled by name:\n\n%s", builtinList())
		return unreadable
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(out, "NAME\tSIZE\tMODIFIED\tLICENCE")
	for _, m := range models {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", m.Name, pull.ByteSize(m.Size), m.Modified.Local().Format("2006-01-02 15:04"), m.Licence)
	}
	for _, m := range unfinished {
		fmt.Fprintf(out, "%s\t%s\t%s\tunfinished: pull goes on, rm removes it\n", m.Name, pull.ByteSize(m.Size), m.Modified.Local().Format("2006-01-02 15:04"))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return unreadable
}

// builtinNames lists the built-in names on one line.
func builtinNames() string {
	var names []string
	for _, m := range pull.Builtins() {
		names = append(names, m.Name)
	}
	return strings.Join(names, ", ")
}

// builtinList describes the built-in names, each on an indented line.
func builtinList() string {
	var b strings.Builder
	for _, m := range pull.Builtins() {
		fmt.Fprintf(&b, "    %-14s %s, %s: %s\n", m.Name, m.Title, pull.ByteSize(m.Size), m.About)
	}
	return b.String()
}
