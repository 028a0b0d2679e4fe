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
	cut                   int // layers that a model gets unless -layers says otherwise; 0: all
	heads, kvHeads, width int // width of a head
	ffn                   int // of layers without experts
	vocab, context        int
	theta, eps            float32
	qkNorm                bool // an RMSNorm on every head's queries and keys
	untied                bool // the head is a matrix of its own, not the embedding

	moe *moe // nil: no layer has experts
	mla *mla // in place of kvHeads and width; nil: grouped-query attention
}

// moe is the feed-forward part of layers as a mixture of experts.
type moe struct {
	experts, used int // used for each token
	ffn           int // of an expert
	shared        int // more experts, used for every token
	dense         int // the first layers, which have none
}

// mla is multi-head latent attention.
type mla struct {
	latent, query     int // ranks of keys with values, and of queries where they have one: see queryRank
	nope, rope, value int // widths of a head: of a key without and with position, of a value
}

// shapes are those of the config.json files that Qwen, Meta and DeepSeek
// publish. What stretches rotary frequencies, and costs no time, is left out.
// Large models are cut so that Q8_0 takes some six gigabytes.
var shapes = map[string]shape{
	"qwen3-0.6b": {
		arch: "qwen3", hidden: 1024, layers: 28, heads: 16, kvHeads: 8, width: 128, ffn: 3072,
		vocab: 151936, context: 40960, theta: 1e6, eps: 1e-6, qkNorm: true,
	},
	"qwen3-4b": {
		arch: "qwen3", hidden: 2560, layers: 36, heads: 32, kvHeads: 8, width: 128, ffn: 9728,
		vocab: 151936, context: 40960, theta: 1e6, eps: 1e-6, qkNorm: true,
	},
	"qwen3-30b-a3b": {
		arch: "qwen3moe", hidden: 2048, layers: 48, cut: 8, heads: 32, kvHeads: 4, width: 128, ffn: 6144,
		vocab: 151936, context: 40960, theta: 1e6, eps: 1e-6, qkNorm: true, untied: true,
		moe: &moe{experts: 128, used: 8, ffn: 768},
	},
	"llama-3.2-1b": {
		arch: "llama", hidden: 2048, layers: 16, heads: 32, kvHeads: 8, width: 64, ffn: 8192,
		vocab: 128256, context: 131072, theta: 5e5, eps: 1e-5,
	},
	"deepseek-v2-lite": {
		arch: "deepseek2", hidden: 2048, layers: 27, cut: 9, heads: 16, ffn: 10944,
		vocab: 102400, context: 163840, theta: 1e4, eps: 1e-6, untied: true,
		moe: &moe{experts: 64, used: 6, ffn: 1408, shared: 2, dense: 1},
		mla: &mla{latent: 512, query: 1536, nope: 128, rope: 64, value: 128},
	},
}

func findShape(name string) (shape, error) {
	s, ok := shapes[name]
	if !ok {
		return s, fmt.Errorf("shape %q: expected one of %s", name, shapeNames())
	}
	return s, nil
}

func shapeNames() string { return strings.Join(slices.Sorted(maps.Keys(shapes)), ", ") }

// queryRank is the rank of an mla's queries, 0 where they have none. llama.cpp
// takes a deepseek2 model of 26 or 27 layers for V2-Lite, whose queries have
// none, and any other for one with: a model that is cut gets that of V2.
func (s shape) queryRank() int {
	if s.layers == 26 || s.layers == 27 {
		return 0
	}
	return s.mla.query
}

// metadata are the keys that llama.cpp's converter writes.
func (s shape) metadata(name string) []checkpoint.Pair {
	pairs := []checkpoint.Pair{
		{Key: "general.architecture", Value: s.arch},
		{Key: "general.name", Value: name + " with random weights"},
	}
	pairs = append(pairs, vocabulary(s.vocab)...)
	add := func(key string, value any) {
		if n, ok := value.(int); ok {
			value = uint32(n)
		}
		pairs = append(pairs, checkpoint.Pair{Key: s.arch + "." + key, Value: value})
	}
	add("attention.layer_norm_rms_epsilon", s.eps)
	add("rope.freq_base", s.theta)
	add("context_length", s.context)
	add("embedding_length", s.hidden)
	add("block_count", s.layers)
	add("feed_forward_length", s.ffn)
	add("vocab_size", s.vocab)
	add("attention.head_count", s.heads)
	if a := s.mla; a != nil {
		// As it is computed: one head of keys, which are the latent beside the
		// part with position, and of values, which are the latent.
		add("attention.head_count_kv", 1)
		add("attention.key_length", a.latent+a.rope)
		add("attention.value_length", a.latent)
		add("attention.key_length_mla", a.nope+a.rope)
		add("attention.value_length_mla", a.value)
		add("attention.kv_lora_rank", a.latent)
		if rank := s.queryRank(); rank > 0 {
			add("attention.q_lora_rank", rank)
		}
		add("rope.dimension_count", a.rope)
	} else {
		add("attention.head_count_kv", s.kvHeads)
		add("attention.key_length", s.width)
		add("attention.value_length", s.width)
		add("rope.dimension_count", s.width)
	}
	if m := s.moe; m != nil {
		add("expert_count", m.experts)
		add("expert_used_count", m.used)
		add("expert_feed_forward_length", m.ffn)
		if m.shared > 0 { // DeepSeek V2's routing
			const softmax = 1
			add("expert_shared_count", m.shared)
			add("leading_dense_block_count", m.dense)
			add("expert_gating_func", softmax)
			add("expert_weights_norm", false)
			add("expert_weights_scale", float32(1))
		}
	}
	return pairs
}
