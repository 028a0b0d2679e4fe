package model

import (
	"fmt"
	"math"
	"strings"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/model/attention"
	"github.com/foretoken/foretoken/internal/model/moe"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// Config is what a model is, whichever file said so.
type Config struct {
	Architecture string // model_type of config.json, general.architecture of GGUF

	Hidden       int // width of the residual stream
	Layers       int
	Heads        int // query heads
	KVHeads      int // key-value heads
	HeadDim      int
	Intermediate int // width inside the feed-forward network
	Vocab        int // rows of the embedding; a tokenizer may have fewer tokens
	Context      int // positions the model was made for

	NormEps       float64
	QueryScale    float64 // of q·k before softmax
	TieEmbeddings bool    // the head is the embedding

	Rope      nn.RopeConfig
	LocalRope *nn.RopeConfig // of sliding layers, where it differs
	NoRope    []bool         // [Layers]: layers that do not rotate; nil: none
	Window    int            // positions a sliding layer sees
	Sliding   []bool         // [Layers]: layers with a window; nil: none

	MLA     *attention.MLAConfig     // nil: attention is with grouped queries
	Indexer *attention.IndexerConfig // of sparse attention; nil: rows attend to all before them

	NSA *attention.NSAConfig // of native sparse attention; nil: the model has another

	MoE   *moe.Config // of feed-forward networks; nil: layers have one
	Dense []bool      // [Layers+MTPLayers]: layers that have one all the same; nil: none

	V4 *V4Config // of DeepSeek V4; nil: the model is another

	MTPLayers int // modules of multi-token prediction that the file has behind its layers

	BOS int32   // -1: none
	EOS []int32 // tokens that end generation
}

// ReadConfig reads config.json or GGUF metadata. Errors name the file and the
// field.
func ReadConfig(c *checkpoint.Checkpoint) (*Config, error) {
	var config *Config
	var err error
	if m := c.Metadata(); m != nil {
		config, err = ggufToConfig(m, c)
	} else {
		config, err = hfToConfig(c.ConfigJSON())
	}
	if err == nil {
		err = config.validate()
	}
	if m := c.Metadata(); m != nil && err != nil {
		err = &ggufError{err, m.Arch()}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", configSource(c), err)
	}
	return config, nil
}

func configSource(c *checkpoint.Checkpoint) string {
	if c.Metadata() != nil {
		return c.Files()[0]
	}
	return "config.json"
}

// Bounds on sizes keep a hostile file from asking for absurd memory; the
// largest published models are far below them.
const (
	maxWidth  = 1 << 20
	maxLayers = 1 << 12
	maxVocab  = 1 << 24
)

func (c *Config) validate() error {
	for _, f := range []struct {
		name       string
		value, max int
	}{
		{"hidden_size", c.Hidden, maxWidth},
		{"num_hidden_layers", c.Layers, maxLayers},
		{"num_attention_heads", c.Heads, maxWidth},
		{"num_key_value_heads", c.KVHeads, c.Heads},
		{"head_dim", c.HeadDim, maxWidth},
		{"intermediate_size", c.Intermediate, maxWidth},
		{"vocab_size", c.Vocab, maxVocab},
		{"max_position_embeddings", c.Context, math.MaxInt32},
	} {
		if f.value < 1 || f.value > f.max {
			return fmt.Errorf("%s is %d, expected 1 to %d", f.name, f.value, f.max)
		}
	}
	if c.Heads%c.KVHeads != 0 {
		return fmt.Errorf("num_attention_heads is %d, expected a multiple of num_key_value_heads %d", c.Heads, c.KVHeads)
	}
	if c.MLA == nil && c.HeadDim%2 != 0 {
		return fmt.Errorf("head_dim is %d, expected an even number: rotary embeddings turn pairs", c.HeadDim)
	}
	if !(c.NormEps >= 0) || c.NormEps > 1 {
		return fmt.Errorf("rms_norm_eps is %v, expected 0 to 1", c.NormEps)
	}
	if c.Sliding != nil && c.Window < 1 {
		return fmt.Errorf("sliding_window is %d, expected a positive number", c.Window)
	}
	if c.BOS < -1 || int(c.BOS) >= c.Vocab {
		return fmt.Errorf("bos_token_id is %d, expected 0 to %d", c.BOS, c.Vocab-1)
	}
	if err := c.CheckEOS(c.EOS); err != nil {
		return err
	}
	if err := c.Rope.Validate(); err != nil {
		if c.V4 != nil {
			return ofLayers("layers with a compressor", err, "compress_rope_theta")
		}
		return err
	}
	if c.MoE != nil {
		if err := c.MoE.Validate(); err != nil {
			return err
		}
	}
	if c.LocalRope != nil {
		if err := c.LocalRope.Validate(); err != nil {
			if c.V4 != nil {
				return ofLayers("layers without a compressor", err, "rope_theta")
			}
			return ofLayers("sliding layers", err, "rope_local_base_freq")
		}
	}
	return nil
}

// ofLayers says which layers' rotary embedding cannot be, and what their base is
// called.
func ofLayers(layers string, err error, base string) error {
	return fmt.Errorf("%s: %s", layers, strings.Replace(err.Error(), "rope_theta", base, 1))
}

// CheckEOS reports an end token that the model cannot produce.
func (c *Config) CheckEOS(ids []int32) error {
	for _, id := range ids {
		if id < 0 || int(id) >= c.Vocab {
			return fmt.Errorf("eos_token_id is %d, expected 0 to %d", id, c.Vocab-1)
		}
	}
	return nil
}

// slide gives a window to the layers that sliding names.
func (c *Config) slide(window int, sliding func(layer int) bool) {
	c.Window, c.Sliding = window, make([]bool, c.Layers)
	for i := range c.Sliding {
		c.Sliding[i] = sliding(i)
	}
}

// checkCounts bounds what other fields are sized or divided by, before they
// are read.
func (c *Config) checkCounts() error {
	if c.Layers < 1 || c.Layers > maxLayers {
		return fmt.Errorf("num_hidden_layers is %d, expected 1 to %d", c.Layers, maxLayers)
	}
	if c.Heads < 1 || c.Heads > maxWidth {
		return fmt.Errorf("num_attention_heads is %d, expected 1 to %d", c.Heads, maxWidth)
	}
	return nil
}

// everyNth tells the last of every n layers; n is positive.
func everyNth(n int) func(layer int) bool {
	return func(layer int) bool { return (layer+1)%n == 0 }
}
