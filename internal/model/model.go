// Package model turns a checkpoint into something that runs: a Config read
// from config.json or GGUF metadata, and the decoder of the family it names.
// Each family is one short file that reads like its paper.
package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// A Model is a list of layers, so that pipeline stages and overlap schedules
// fall between them. It is used by one goroutine at a time.
type Model interface {
	Config() *Config
	// Embed fills the residual stream of st with the step's tokens.
	Embed(*nn.Step, *nn.State) error
	Layers() []Layer
	// Hidden writes the final normalised states of the given rows, [len(rows), hidden].
	Hidden(st *nn.State, rows []int, hidden []float32)
	// Logits maps hidden [n, hidden] to logits [n, vocab].
	Logits(st *nn.State, hidden, logits []float32)
	// States writes what modules of multi-token prediction read of the given rows,
	// [len(rows), StateWidth]: what Hidden does or, with hyper-connections, all
	// streams of the last layer.
	States(st *nn.State, rows []int, states []float32)
	StateWidth() int
	// MTP lists the modules of multi-token prediction, if Options ask for them.
	MTP() []*MTP
	// Cache says what each layer keeps, and behind them each module of MTP.
	Cache() []kvcache.LayerSpec
	// Idle is how many bytes of packed weights a step of the given number of rows
	// is expected not to read: those of experts that it does not choose.
	Idle(rows int) int64
}

// A Layer adds to the residual stream of st.
type Layer interface {
	Attention(*nn.Step, *nn.State)
	FFN(*nn.Step, *nn.State)
	// Cache says what the layer keeps.
	Cache() kvcache.LayerSpec
}

// Options say how a model is loaded. The zero value checks the checkpoint and
// reads no weights.
type Options struct {
	nn.Packing
	// ExpertMemory bounds what packed experts take, in bytes: they are packed when
	// a token needs them, and those used longest ago make room. 0: all are packed.
	ExpertMemory int64
	// MLAExpanded forms keys and values of latent attention before attending,
	// for comparison. What is cached is not bit for bit the same: prefixes are
	// shared only among processes that agree.
	MLAExpanded bool
	// RoundCache rounds what DeepSeek V3.2 and V4 were trained to have rounded, as
	// their own code does: V3.2's index queries and keys to fp8; of V4 keys, which
	// are values too, and compressed entries to fp8 but for their rotated values,
	// index queries and keys to fp4. What is cached differs: prefixes are shared
	// only among processes that agree. Other models are refused.
	RoundCache bool
	// MTP loads modules of multi-token prediction, where the model has any.
	MTP bool
}

// A family says how the models of one name are built.
type family struct {
	// defaults fills in what files of the family leave out; nil: nothing.
	defaults func(*hfConfig) error
	// activation is the hidden_act that layer computes; "": silu.
	activation string
	// adapt completes a Config read from config.json with what is particular
	// to the family; nil where nothing is.
	adapt func(*Config, *hfConfig) error
	// adaptGGUF does the same for GGUF metadata; errors stay in ggufConfig.
	adaptGGUF func(*Config, *ggufConfig)
	// layer loads layer i.
	layer func(b *builder, i int) Layer
	// finish loads what the family has beside its layers; nil: nothing.
	finish func(b *builder, d *decoder)
	// headsGGUF reads the shape of attention from GGUF metadata, and c.Rope.Dim;
	// nil: that of grouped-query attention.
	headsGGUF func(*ggufConfig, *Config) error
	// experts: GGUF files of the family may hold mixtures of experts.
	experts bool
	// embedScale multiplies embeddings; nil: 1.
	embedScale func(*Config, *nn.Loader) float32
	// norm loads an RMSNorm where the family has its own form; nil: y = w·x.
	norm func(w *nn.Loader, name string, n int) *nn.Norm
}

// families maps model_type of config.json, and general.architecture of GGUF.
var families = map[string]family{
	"llama":        llama,
	"mistral":      mistral,
	"qwen2":        qwen2,
	"qwen3":        qwen3,
	"gemma3_text":  gemma3,
	"gemma3":       gemma3,
	"mixtral":      mixtral,
	"nsa":          nsa,
	"qwen3_moe":    qwen3moe,
	"qwen3moe":     qwen3moe,
	"smollm3":      smollm3,
	"deepseek_v2":  deepseekV2,
	"deepseek_v3":  deepseekV3,
	"deepseek_v32": deepseekV3,
	"deepseek2":    deepseekGGUF,
	"deepseek32":   deepseekGGUF,
	"deepseek_v4":  deepseek4,
	"deepseek4":    deepseek4,
}

// refused says why models are not supported whose names look as if they were.
var refused = map[string]string{
	"deepseek_v41": "it is another architecture than deepseek_v4: its hyper-connections lag by a sublayer, layers share compressed entries, and it reads tables of n-grams",
}

func findFamily(name string) (family, error) {
	f, ok := families[name]
	if why := refused[name]; why != "" {
		return family{}, fmt.Errorf("architecture %q is not supported: %s", name, why)
	}
	if !ok {
		known := slices.Sorted(maps.Keys(families))
		return family{}, fmt.Errorf("architecture %.40q is not supported; supported are %s", name, strings.Join(known, ", "))
	}
	return f, nil
}

// Load builds the model that c holds.
func Load(c *checkpoint.Checkpoint, o Options) (Model, error) { return load(c, o) }

// Check reports whether Load would succeed, and returns the configuration. It
// reads no weights.
func Check(c *checkpoint.Checkpoint) (*Config, error) {
	m, err := load(c, Options{})
	if err != nil {
		return nil, err
	}
	return m.config, nil
}

func load(c *checkpoint.Checkpoint, o Options) (*decoder, error) {
	config, err := ReadConfig(c)
	if err != nil {
		return nil, err
	}
	f, err := findFamily(config.Architecture)
	if err != nil {
		return nil, err
	}
	return build(config, f, c, o)
}
