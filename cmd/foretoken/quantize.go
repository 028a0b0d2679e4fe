package main

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/convert"
	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/tensor"
)

type quantizeCmd struct {
	Model string `arg:"" name:"MODEL" help:"Model to convert."`
	Out   string `arg:"" name:"OUT.gguf" help:"File to write."`

	Type string `required:"" placeholder:"TYPE" enum:"q8_0,q4_0,q4_1,f16,bf16,f32" help:"Type of the matrices: q8_0, q4_0, q4_1, f16, bf16 or f32."`
}

// Help is shown by --help.
func (quantizeCmd) Help() string {
	return `Writes one GGUF file with the model's tokenizer and chat template. Norms and biases stay as they are; a matrix
whose rows are not whole blocks of the type becomes f16. Quantising what is quantised already adds its errors.

    foretoken quantize ./model --type q8_0 model-q8_0.gguf`
}

// Run writes the file.
func (c *quantizeCmd) Run(ctx context.Context) error {
	types := map[string]tensor.DType{
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
	p := progress{unit: "values"}
	defer p.end()
	return convert.Quantize(ctx, source, types[strings.ToLower(c.Type)], c.Out, func(done, total int64) {
		p.step("writing "+filepath.Base(c.Out), done, total)
	})
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
