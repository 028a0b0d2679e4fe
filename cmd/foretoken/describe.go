package main

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/checkpoint/pull"
	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/tensor"
)

// description is what show tells of a model. Sizes are in bytes.
type description struct {
	Model   string `json:"model"`
	Path    string `json:"path"`
	Source  string `json:"source,omitempty"` // of a pulled model
	Licence string `json:"licence,omitempty"`
	Format  string `json:"format"`

	Architecture string `json:"architecture"`
	Parameters   int64  `json:"parameters"`
	Layers       int    `json:"layers"`
	Hidden       int    `json:"hidden_size"`
	Intermediate int    `json:"intermediate_size"`
	Heads        int    `json:"heads"`
	KVHeads      int    `json:"kv_heads"`
	HeadDim      int    `json:"head_dim"`
	Window       int    `json:"sliding_window,omitempty"`
	Tied         bool   `json:"tied_embeddings"`
	Vocab        int    `json:"vocab_size"`
	Context      int    `json:"context_length"`

	Tokenizer bool           `json:"tokenizer"`
	Template  bool           `json:"chat_template"`
	Sampling  map[string]any `json:"sampling"` // what run uses unless flags say otherwise

	WeightBytes   int64        `json:"weight_bytes"`
	Types         []typeShare  `json:"types"` // the largest first
	CachePerToken int          `json:"cache_bytes_per_token"`
	Memory        []memoryNeed `json:"memory"`
	Files         []fileSize   `json:"files"`
}

// typeShare is what a storage type has of the weights.
type typeShare struct {
	Type    string `json:"type"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"`
}

// memoryNeed is weights and cache for one sequence of a length.
type memoryNeed struct {
	Tokens int   `json:"tokens"`
	Bytes  int64 `json:"bytes"`
}

type fileSize struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// read fills in all but Model, Path and Template.
func (d *description) read(e *engine.Engine) error {
	c, config := e.Checkpoint(), e.Config()
	d.Format, d.Architecture = c.Format().String(), config.Architecture
	d.Layers, d.Hidden, d.Intermediate = config.Layers, config.Hidden, config.Intermediate
	d.Heads, d.KVHeads, d.HeadDim = config.Heads, config.KVHeads, config.HeadDim
	d.Window, d.Tied, d.Vocab, d.Context = config.Window, config.TieEmbeddings, config.Vocab, config.Context
	_, err := e.Tokenizer()
	d.Tokenizer = err == nil
	d.Sampling = sampling(e.Sampling())
	d.weights(c)
	d.CachePerToken = e.CacheBytesPerToken()
	for _, n := range []int{min(2048, d.Context), d.Context} {
		need := memoryNeed{n, d.WeightBytes + int64(n)*int64(d.CachePerToken)}
		if !slices.Contains(d.Memory, need) {
			d.Memory = append(d.Memory, need)
		}
	}
	for _, f := range c.Files() {
		info, err := os.Stat(f)
		if err != nil {
			return pathError(f, err)
		}
		d.Files = append(d.Files, fileSize{f, info.Size()})
	}
	d.origin(c)
	return nil
}

// weights counts parameters and bytes by type.
func (d *description) weights(c *checkpoint.Checkpoint) {
	d.WeightBytes = c.Size()
	shares := map[tensor.DType]*typeShare{}
	for _, name := range c.Names() {
		info, _ := c.Info(name)
		values := int64(1)
		for _, n := range info.Shape {
			values *= int64(n)
		}
		s := shares[info.DType]
		if s == nil {
			s = &typeShare{Type: info.DType.String()}
			shares[info.DType] = s
		}
		s.Tensors++
		s.Bytes += values / int64(info.DType.BlockLen()) * int64(info.DType.BlockBytes())
		// Scales and rotary frequencies are not learned.
		if !strings.HasSuffix(name, "_scale_inv") && !strings.HasSuffix(name, ".scale") && !strings.HasPrefix(name, "rope_") {
			d.Parameters += values
		}
	}
	for _, s := range shares {
		d.Types = append(d.Types, *s)
	}
	slices.SortFunc(d.Types, func(a, b typeShare) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Type, b.Type))
	})
}

// origin adds what the store or the file says of source and licence.
func (d *description) origin(c *checkpoint.Checkpoint) {
	if store, err := pull.Default(); err == nil {
		if m, ok := store.Find(d.Model); ok && m.Path == d.Path {
			d.Source, d.Licence = m.Source, m.Licence
		}
	}
	if m := c.Metadata(); m != nil && d.Licence == "" {
		d.Licence, _ = m.String("general.license")
	}
}

// sampling lists the parameters that differ from drawing from the model's
// own distribution.
func sampling(p sample.Params) map[string]any {
	plain, list := sample.Default(), map[string]any{}
	add := func(name string, value, off any) {
		if value != off {
			list[name] = value
		}
	}
	add("temperature", p.Temperature, plain.Temperature)
	add("top_k", p.TopK, plain.TopK)
	add("top_p", p.TopP, plain.TopP)
	add("min_p", p.MinP, plain.MinP)
	add("typical_p", p.TypicalP, plain.TypicalP)
	add("repetition_penalty", p.RepetitionPenalty, plain.RepetitionPenalty)
	return list
}
