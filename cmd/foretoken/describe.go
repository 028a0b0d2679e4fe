package main

import (
	"os"
	"slices"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/checkpoint/pull"
	"github.com/foretoken/foretoken/internal/engine"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model"
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

	Architecture     string `json:"architecture"`
	Parameters       int64  `json:"parameters"`
	ActiveParameters int64  `json:"active_parameters"` // those that work on a token
	MTPParameters    int64  `json:"mtp_parameters,omitempty"`
	Layers           int    `json:"layers"`
	Hidden           int    `json:"hidden_size"`
	Tied             bool   `json:"tied_embeddings"`
	Vocab            int    `json:"vocab_size"`
	Context          int    `json:"context_length"`
	model.Description

	Tokenizer bool           `json:"tokenizer"`
	Template  bool           `json:"chat_template"`
	Sampling  map[string]any `json:"sampling"` // what run uses unless flags say otherwise

	WeightBytes      int64        `json:"weight_bytes"`
	Types            []typeShare  `json:"types"` // the largest first
	CachePerToken    int          `json:"cache_bytes_per_token"`
	CachePerSequence int          `json:"cache_bytes_per_sequence,omitempty"` // beside that
	roundable        bool         // the cache may be q8_0
	Memory           []memoryNeed `json:"memory"`
	Files            []fileSize   `json:"files"`
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

// cacheType is that of described caches: 16 bits, as by default.
const cacheType = tensor.BF16

// read fills in all but Model, Path and Template.
func (d *description) read(e *engine.Engine) error {
	c, config := e.Checkpoint(), e.Config()
	d.Format, d.Architecture = c.Format().String(), config.Architecture
	d.Layers, d.Hidden = config.Layers, config.Hidden
	d.Tied, d.Vocab, d.Context = config.TieEmbeddings, config.Vocab, config.Context
	d.Description = config.Describe(cacheType)
	_, err := e.Tokenizer()
	d.Tokenizer = err == nil
	d.Sampling = sampling(e.Sampling())
	d.weights(c, config)
	layers := config.Cache()
	d.CachePerToken, d.CachePerSequence = kvcache.BytesPerToken(layers, cacheType), kvcache.BytesPerSequence(layers, cacheType)
	d.roundable = kvcache.CheckType(layers, tensor.Q8_0) == nil
	for _, n := range []int{min(2048, d.Context), d.Context} {
		need := memoryNeed{n, d.WeightBytes + int64(n)*int64(d.CachePerToken) + int64(d.CachePerSequence)}
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
