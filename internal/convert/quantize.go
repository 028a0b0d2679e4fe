// Package convert writes a model as one GGUF file, its matrices quantised.
package convert

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

// A Source is the model to convert.
type Source struct {
	Checkpoint *checkpoint.Checkpoint
	Tokenizer  *tokenizer.Tokenizer // of a safetensors model; nil: it has none
	Template   string               // chat template of a safetensors model; "": none
}

// fileTypes are ggml's numbers for files whose matrices are of one type.
var fileTypes = map[tensor.DType]uint32{
	tensor.F32: 0, tensor.F16: 1, tensor.Q4_0: 2, tensor.Q4_1: 3, tensor.Q8_0: 7, tensor.BF16: 32,
}

// Quantize writes src to out as a GGUF file with every matrix in type d: F32, F16,
// BF16, Q8_0, Q4_0 or Q4_1. A matrix whose rows are not whole blocks of d is
// written as F16. Vectors stay as they are. progress is told the
// values written and how many there are.
func Quantize(ctx context.Context, src Source, d tensor.DType, out io.Writer, progress func(done, total int64)) error {
	fileType, ok := fileTypes[d]
	if !ok {
		return fmt.Errorf("type %v: expected F32, F16, BF16, Q8_0, Q4_0 or Q4_1", d)
	}
	plan, err := newPlan(src)
	if err != nil {
		return err
	}
	var total, done int64
	var tensors []checkpoint.TensorWriter
	for _, w := range plan.weights {
		total += w.size()
		tensors = append(tensors, checkpoint.TensorWriter{
			Name: w.name, DType: w.storage(d), Shape: w.shape,
			Write: func(to io.Writer) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				err := w.write(to, w.storage(d))
				done += w.size()
				progress(done, total)
				return err
			},
		})
	}
	plan.set("general.file_type", fileType)
	plan.set("general.quantization_version", uint32(2))
	return src.Checkpoint.Guard(func() error { return checkpoint.WriteGGUF(out, plan.metadata, tensors) })
}

// A plan is what will be written.
type plan struct {
	metadata []checkpoint.Pair
	weights  []weight
}

// set gives a key its value, in place where it has one.
func (p *plan) set(key string, value any) {
	if i := p.index(key); i >= 0 {
		p.metadata[i].Value = value
		return
	}
	p.metadata = append(p.metadata, checkpoint.Pair{Key: key, Value: value})
}

func (p *plan) has(key string) bool { return p.index(key) >= 0 }

func (p *plan) index(key string) int {
	return slices.IndexFunc(p.metadata, func(m checkpoint.Pair) bool { return m.Key == key })
}

func newPlan(src Source) (*plan, error) {
	config, err := model.Check(src.Checkpoint)
	if err != nil {
		return nil, err
	}
	if src.Checkpoint.Metadata() != nil {
		return fromGGUF(src.Checkpoint)
	}
	return fromSafetensors(src, config)
}

// fromGGUF keeps names and metadata. What describes the split of the source
// into several files is left out.
func fromGGUF(c *checkpoint.Checkpoint) (*plan, error) {
	if arch := c.Metadata().Arch(); !slices.Contains(slices.Collect(maps.Values(architectures)), arch) {
		return nil, unsupported(arch, maps.Values(architectures))
	}
	p := &plan{}
	for _, key := range c.Metadata().Keys() {
		switch key {
		case "split.no", "split.count", "split.tensors.count", "general.alignment":
		default:
			p.set(key, c.Metadata().Get(key))
		}
	}
	for _, name := range c.Names() {
		info, _ := c.Info(name)
		w, err := load(c, name, info.Stored)
		if err != nil {
			return nil, err
		}
		p.weights = append(p.weights, w)
	}
	return p, nil
}
