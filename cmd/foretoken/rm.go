package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/foretoken/foretoken/internal/checkpoint/pull"
)

type rmCmd struct {
	Name string `arg:"" name:"NAME" help:"A name that \"foretoken list\" shows."`
}

// Help is shown by --help.
func (rmCmd) Help() string {
	return `What an unfinished pull of the model left is removed too. A model of the Hugging Face cache is removed for
all programs that use that cache.`
}

// Run removes the model.
func (c *rmCmd) Run() error {
	store, err := pull.Default()
	if err != nil {
		return err
	}
	if _, err := pull.ParseRef(c.Name); err != nil {
		if _, here := os.Stat(c.Name); here == nil {
			return fmt.Errorf("%s is a path, not the name of a pulled model", c.Name)
		}
		return unknown(store, c.Name, err)
	}
	size, err := store.Remove(c.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("nothing to remove: %s is not on this machine, foretoken list shows what is", c.Name)
	}
	if err != nil {
		return err
	}
	note("removed %s (%s)", c.Name, pull.ByteSize(size))
	return nil
}
