package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/foretoken/foretoken/internal/checkpoint/pull"

	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/convert"
	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/tensor"
)

type quantizeCmd struct {
	Model string `arg:"" name:"MODEL" help:"Model to convert."`
	Out   string `arg:"" name:"OUT.gguf" help:"File to write."`

	Type storageType `required:"" placeholder:"TYPE" enum:"q8_0,q4_0,q4_1,f16,bf16,f32" help:"Type of the matrices: q8_0, q4_0, q4_1, f16, bf16 or f32."`
}

// Help is shown by --help.
func (quantizeCmd) Help() string {
	return `Writes one GGUF file with the model's tokenizer and chat template. Norms and biases stay as they are; a matrix
whose rows are not whole blocks of the type becomes f16. Quantising what is quantised already adds its errors.

    foretoken quantize ./model --type q8_0 model-q8_0.gguf`
}

// storageType is the name of a type in small letters, however it was written.
type storageType string

// UnmarshalText is called by kong.
func (t *storageType) UnmarshalText(text []byte) error {
	*t = storageType(strings.ToLower(string(text)))
	return nil
}

// Run writes the file.
func (c *quantizeCmd) Run(ctx context.Context) error {
	types := map[storageType]tensor.DType{
		"q8_0": tensor.Q8_0, "q4_0": tensor.Q4_0, "q4_1": tensor.Q4_1, "f16": tensor.F16, "bf16": tensor.BF16, "f32": tensor.F32,
	}
	path, err := locate(c.Model)
	if err != nil {
		return err
	}
	source, err := openSource(path)
	if err != nil {
		return err
	}
	defer source.Checkpoint.Close()
	before, err := c.checkOut(source.Checkpoint)
	if err != nil {
		return err
	}
	if t := source.Tokenizer; t != nil && source.Checkpoint.Metadata() == nil {
		if _, err := t.GGUF(); err != nil {
			note("the tokenizer is kept as a tokenizer.json, which Foretoken reads and llama.cpp does not: %v", err)
		}
	}
	p := progress{}
	err = writeFile(c.Out, func(f *os.File) error {
		return convert.Quantize(ctx, source, types[c.Type], f, func(done, total int64) {
			p.step("writing "+filepath.Base(c.Out), done, total)
		})
	})
	p.end()
	if path := (*fs.PathError)(nil); errors.As(err, &path) && strings.HasSuffix(path.Path, ".partial") {
		err = pathError(c.Out, err) // rather than the temporary file beside it
	}
	if err != nil {
		return err
	}
	info, err := os.Stat(c.Out)
	if err != nil {
		return pathError(c.Out, err)
	}
	note("wrote %s (%s, %.0f%% of the source)", c.Out, pull.ByteSize(info.Size()), 100*float64(info.Size())/float64(max(before, 1)))
	return nil
}

// checkOut returns the size of the source, after checking that a file can be
// written to Out: beside it first, and then in place of what is there.
func (c *quantizeCmd) checkOut(source *checkpoint.Checkpoint) (size int64, err error) {
	if _, err := os.Stat(filepath.Dir(c.Out)); errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%s: no such directory", c.Out)
	}
	out, absent := os.Stat(c.Out)
	if absent == nil && !out.Mode().IsRegular() {
		return 0, fmt.Errorf("%s: not a regular file", c.Out)
	}
	for _, f := range source.Files() {
		info, err := os.Stat(f)
		if err != nil {
			return 0, pathError(f, err)
		}
		if absent == nil && os.SameFile(out, info) {
			return 0, fmt.Errorf("%s is a file of the model to convert: write to another one", c.Out)
		}
		size += info.Size()
	}
	return size, nil
}

// openSource opens a model with all that a GGUF file holds of it.
func openSource(path string) (convert.Source, error) {
	c, err := checkpoint.Open(path)
	if err != nil {
		return convert.Source{}, err
	}
	s := convert.Source{Checkpoint: c}
	s.Tokenizer, err = engine.OpenTokenizer(c)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		s.Template, err = template(c)
	}
	if err != nil {
		c.Close()
		return convert.Source{}, err
	}
	return s, nil
}

// template returns the source of a model's chat template, "" if it has none.
func template(c *checkpoint.Checkpoint) (string, error) {
	sources, err := engine.Templates(c)
	if err != nil || len(sources) == 0 {
		return "", err
	}
	return chat.Choose(sources, false)
}
