package model

import (
	"errors"
	"fmt"
	"math"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/model/attention"
)

// nsa is native sparse attention (Yuan et al. 2025) as flash-linear-attention
// trains and publishes it (model_type nsa; DeepSeek published no model of the
// paper): Llama with its own names for tensors, and attention that reads
// compressed blocks, selected blocks and a window, added up by gates.
//
//	x += W_o·Σ g_c·Attn_c(RMSNorm(x)), g = σ(W_g·RMSNorm(x)) of each head for c = compressed, selected, window
//	x += W_down(silu(W_gate·RMSNorm(x)) · W_up·RMSNorm(x))
//
// Blocks of all three kinds are block_size positions (l = d = l'), a compressed
// one is the mean of its rotated keys and of its values, seen once complete. A
// row reads block_counts blocks in full: the first, its own and the one before
// that, which count, then those that the compressed attention of its group of
// heads weighs most. (The library's first versions always took a row's own block
// alone. Until December 2025 it made heads of 64 whatever head_dim said: such a
// file loads once its head_dim is set to 64.)
var nsa = family{layer: nsaLayer, activation: "swish", defaults: nsaDefaults, adapt: nsaConfig}

func nsaLayer(b *builder, i int) Layer {
	w := b.weights.Sub("model.layers.%d.", i)
	return &layer{
		attnNorm: w.Norm("attn_norm", b.Hidden),
		attn:     b.nativeSparse(i),
		ffnNorm:  w.Norm("mlp_norm", b.Hidden),
		ffn:      b.mlp(i),
	}
}

// nativeSparse loads the attention of layer i.
func (b *builder) nativeSparse(i int) *attention.NSA {
	w := b.weights.Sub("model.layers.%d.attn.", i)
	q, kv := b.Heads*b.HeadDim, b.KVHeads*b.HeadDim
	return &attention.NSA{
		Q:     w.Linear("q_proj", q, b.Hidden),
		K:     w.Linear("k_proj", kv, b.Hidden),
		V:     w.Linear("v_proj", kv, b.Hidden),
		Gates: w.Linear("g_proj", b.Heads*kernel.Branches, b.Hidden),
		O:     w.SplitLinear("o_proj", b.Hidden, q, b.HeadDim),

		Rope:      b.rope,
		NSAConfig: *b.NSA,
		Heads:     b.Heads, KVHeads: b.KVHeads, KeyDim: b.HeadDim, ValueDim: b.HeadDim,
		Scale: float32(b.QueryScale),
		Layer: i,
	}
}

// nsaFields are the fields of config.json that have other names here, or that
// no other family has.
type nsaFields struct {
	NumHeads    *int     `json:"num_heads"`
	NumKVHeads  *int     `json:"num_kv_heads"`
	NormEps     *float64 `json:"norm_eps"`
	HiddenRatio *int     `json:"hidden_ratio"`
	BlockSize   *int     `json:"block_size"`
	BlockCounts *int     `json:"block_counts"`
	WindowSize  *int     `json:"window_size"`
}

// nsaDefaults gives fields the names that other families have. Their values are
// checked under their own.
func nsaDefaults(hf *hfConfig) error {
	var f nsaFields
	if err := hf.read(&f); err != nil {
		return err
	}
	if f.NumHeads == nil {
		return errors.New("num_heads is missing")
	}
	if hf.HeadDim == nil {
		return errors.New("head_dim is missing")
	}
	heads, kvHeads, eps := *f.NumHeads, or(f.NumKVHeads, *f.NumHeads), or(f.NormEps, 1e-6)
	switch {
	case heads < 1 || heads > maxWidth:
		return fmt.Errorf("num_heads is %d, expected 1 to %d", heads, maxWidth)
	case kvHeads < 1 || heads%kvHeads != 0:
		return fmt.Errorf("num_kv_heads is %d, expected a divisor of num_heads %d", kvHeads, heads)
	case !(eps >= 0) || eps > 1:
		return fmt.Errorf("norm_eps is %v, expected 0 to 1", eps)
	}
	hf.NumAttentionHeads, hf.NumKeyValueHeads, hf.RMSNormEps = &heads, &kvHeads, &eps
	if hf.IntermediateSize != nil || hf.HiddenSize == nil {
		return nil
	}
	// Two thirds of hidden_ratio times the hidden size, up to a multiple of 256.
	ratio, hidden := or(f.HiddenRatio, 4), *hf.HiddenSize
	if ratio < 1 || ratio > maxWidth {
		return fmt.Errorf("hidden_ratio is %d, expected 1 to %d", ratio, maxWidth)
	}
	if hidden > 0 && hidden <= maxWidth {
		hf.IntermediateSize = new((hidden*ratio*2/3 + 255) / 256 * 256)
	} else {
		hf.IntermediateSize = new(1) // the hidden size will be refused
	}
	return nil
}

// maxNSABlock bounds block_size; the pages of the cache are multiples of it.
const maxNSABlock = 1 << 12

func nsaConfig(c *Config, hf *hfConfig) error {
	var f nsaFields
	if err := hf.read(&f); err != nil {
		return err
	}
	const initial, local = 1, 2
	block, count, window := or(f.BlockSize, 64), or(f.BlockCounts, 16), or(f.WindowSize, 512)
	switch {
	case block < 1 || block > maxNSABlock:
		return fmt.Errorf("block_size is %d, expected 1 to %d", block, maxNSABlock)
	case count < initial+local || count > math.MaxInt32:
		return fmt.Errorf("block_counts is %d, expected at least %d: the first block and the last two are always selected", count, initial+local)
	case window < 0 || window > math.MaxInt32:
		return fmt.Errorf("window_size is %d, expected a number of positions, or 0 for no window", window)
	}
	c.NSA = &attention.NSAConfig{
		CompressBlock: block, Stride: block,
		SelectBlock: block, Select: count, Initial: initial, Local: local,
		Window: window,
	}
	return nil
}
