package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/checkpoint"
)

// A shape is the published architecture of a model: all that decides how fast
// it runs.
type shape struct {
	arch string // general.architecture

	hidden, layers        int
	heads, kvHeads, width int // width of a head
	ffn                   int
	vocab, context        int
	theta, eps            float32
	qkNorm                bool // an RMSNorm on every head's queries and keys
}

// shapes are those of the config.json files that Qwen and Meta publish. The
// head of each is its embedding. Llama's stretching of rotary frequencies,
// which costs no time, is left out.
var shapes = map[string]shape{
	"qwen3-0.6b": {
		arch: "qwen3", hidden: 1024, layers: 28, heads: 16, kvHeads: 8, width: 128, ffn: 3072,
		vocab: 151936, context: 40960, theta: 1e6, eps: 1e-6, qkNorm: true,
	},
	"qwen3-4b": {
		arch: "qwen3", hidden: 2560, layers: 36, heads: 32, kvHeads: 8, width: 128, ffn: 9728,
		vocab: 151936, context: 40960, theta: 1e6, eps: 1e-6, qkNorm: true,
	},
	"llama-3.2-1b": {
		arch: "llama", hidden: 2048, layers: 16, heads: 32, kvHeads: 8, width: 64, ffn: 8192,
		vocab: 128256, context: 131072, theta: 5e5, eps: 1e-5,
	},
}

func findShape(name string) (shape, error) {
	s, ok := shapes[name]
	if !ok {
		known := slices.Sorted(maps.Keys(shapes))
		return s, fmt.Errorf("shape %q: expected one of %s", name, strings.Join(known, ", "))
	}
	return s, nil
}

// metadata are the keys that llama.cpp's converter writes. The vocabulary has
// a size and no words, which is enough to compute with token ids.
func (s shape) metadata(name string) []checkpoint.Pair {
	pairs := []checkpoint.Pair{
		{Key: "general.architecture", Value: s.arch},
		{Key: "general.name", Value: name + " with random weights"},
		{Key: "tokenizer.ggml.model", Value: "no_vocab"},
		{Key: s.arch + ".attention.layer_norm_rms_epsilon", Value: s.eps},
		{Key: s.arch + ".rope.freq_base", Value: s.theta},
	}
	for _, n := range []struct {
		key   string
		value int
	}{
		{"context_length", s.context},
		{"embedding_length", s.hidden},
		{"block_count", s.layers},
		{"feed_forward_length", s.ffn},
		{"attention.head_count", s.heads},
		{"attention.head_count_kv", s.kvHeads},
		{"attention.key_length", s.width},
		{"attention.value_length", s.width},
		{"rope.dimension_count", s.width},
		{"vocab_size", s.vocab},
	} {
		pairs = append(pairs, checkpoint.Pair{Key: s.arch + "." + n.key, Value: uint32(n.value)})
	}
	return pairs
}
