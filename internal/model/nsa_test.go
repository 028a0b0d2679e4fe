package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/attention"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// nsaJSON is a configuration as flash-linear-attention writes it, to change
// some fields of; "" removes one.
func nsaJSON(changes map[string]string) string {
	fields := map[string]string{
		"architectures": `["NSAForCausalLM"]`, "model_type": `"nsa"`, "block_counts": "16", "block_size": "64", "bos_token_id": "1", "elementwise_affine": "true",
		"eos_token_id": "2", "fuse_cross_entropy": "true", "fuse_norm": "true", "head_dim": "64", "hidden_act": `"swish"`, "hidden_ratio": "4", "hidden_size": "2048",
		"initializer_range": "0.02", "intermediate_size": "null", "max_position_embeddings": "8192", "norm_eps": "1e-06", "num_heads": "64", "num_hidden_layers": "24",
		"num_kv_heads": "4", "qkv_bias": "false", "rope_theta": "10000.0", "tie_word_embeddings": "false", "vocab_size": "32000", "window_size": "512",
	}
	maps.Copy(fields, changes)
	var list []string
	for name, value := range fields {
		if value != "" {
			list = append(list, fmt.Sprintf("%q: %s", name, value))
		}
	}
	return "{" + strings.Join(list, ", ") + "}"
}

func TestNSAConfig(t *testing.T) {
	sparse := func(block, count, window int) *attention.NSAConfig {
		return &attention.NSAConfig{CompressBlock: block, Stride: block, SelectBlock: block, Select: count, Initial: 1, Local: 2, Window: window}
	}
	for name, tc := range map[string]struct {
		changes map[string]string
		want    func(*Config)
	}{
		"as the library's defaults":     {nil, func(*Config) {}},
		"other blocks and no window":    {map[string]string{"block_size": "32", "block_counts": "3", "window_size": "0"}, func(c *Config) { c.NSA = sparse(32, 3, 0) }},
		"what may be left out":          {map[string]string{"block_size": "", "block_counts": "", "window_size": "", "norm_eps": "", "hidden_ratio": "null", "rope_theta": ""}, func(*Config) {}},
		"a key-value head for each":     {map[string]string{"num_kv_heads": "null"}, func(c *Config) { c.KVHeads = 64 }},
		"a width that is written down":  {map[string]string{"intermediate_size": "5000"}, func(c *Config) { c.Intermediate = 5000 }},
		"a width that is a multiple":    {map[string]string{"hidden_size": "768"}, func(c *Config) { c.Hidden, c.Intermediate = 768, 2048 }},
		"another ratio of widths":       {map[string]string{"hidden_ratio": "3"}, func(c *Config) { c.Intermediate = 4096 }},
		"another epsilon":               {map[string]string{"norm_eps": "1e-5"}, func(c *Config) { c.NormEps = 1e-5 }},
		"names of other families apart": {map[string]string{"num_attention_heads": "12", "num_key_value_heads": "12", "rms_norm_eps": "0.1"}, func(*Config) {}},
	} {
		t.Run(name, func(t *testing.T) {
			want := Config{
				Architecture: "nsa", Hidden: 2048, Layers: 24, Heads: 64, KVHeads: 4, HeadDim: 64, Intermediate: 5632, Vocab: 32000, Context: 8192,
				NormEps: 1e-6, QueryScale: 1 / math.Sqrt(64), Rope: nn.RopeConfig{Theta: 1e4, Dim: 64}, NSA: sparse(64, 16, 512), BOS: 1, EOS: []int32{2},
			}
			tc.want(&want)
			got, err := parse(nsaJSON(tc.changes))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, *got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestHostileNSAConfigs(t *testing.T) {
	for _, tc := range []struct {
		field, value string
		want         []string // parts of the error
	}{
		{"num_heads", ``, []string{"num_heads is missing"}},
		{"num_heads", `0`, []string{"num_heads is 0", "1 to"}},
		{"num_heads", `-64`, []string{"num_heads is -64"}},
		{"num_heads", `"64"`, []string{"num_heads is a JSON string", "an integer"}},
		{"num_heads", `1000000000000`, []string{"num_heads is 1000000000000"}},
		{"num_heads", `62`, []string{"num_kv_heads is 4", "a divisor of num_heads 62"}},
		{"num_kv_heads", `0`, []string{"num_kv_heads is 0", "a divisor of num_heads 64"}},
		{"num_kv_heads", `-4`, []string{"num_kv_heads is -4"}},
		{"num_kv_heads", `128`, []string{"num_kv_heads is 128"}},
		{"num_kv_heads", `[4]`, []string{"num_kv_heads is a JSON array"}},
		{"head_dim", ``, []string{"head_dim is missing"}},
		{"head_dim", `63`, []string{"head_dim is 63", "even"}},
		{"head_dim", `0`, []string{"head_dim is 0"}},
		{"block_size", `0`, []string{"block_size is 0", "1 to 4096"}},
		{"block_size", `-64`, []string{"block_size is -64"}},
		{"block_size", `4097`, []string{"block_size is 4097", "1 to 4096"}},
		{"block_size", `64.5`, []string{"block_size is a JSON number 64.5", "an integer"}},
		{"block_counts", `0`, []string{"block_counts is 0", "at least 3"}},
		{"block_counts", `-16`, []string{"block_counts is -16", "at least 3"}},
		{"block_counts", `2`, []string{"block_counts is 2", "the first block and the last two"}},
		{"block_counts", `[16, 16]`, []string{"block_counts is a JSON array", "an integer"}},
		{"block_counts", `5000000000`, []string{"block_counts is 5000000000"}},
		{"window_size", `-1`, []string{"window_size is -1", "0 for no window"}},
		{"window_size", `5000000000`, []string{"window_size is 5000000000"}},
		{"window_size", `"512"`, []string{"window_size is a JSON string"}},
		{"norm_eps", `-1e-6`, []string{"norm_eps is -1e-06", "0 to 1"}},
		{"norm_eps", `2`, []string{"norm_eps is 2"}},
		{"norm_eps", `"x"`, []string{"norm_eps is a JSON string", "a number"}},
		{"hidden_ratio", `0`, []string{"hidden_ratio is 0"}},
		{"hidden_ratio", `-4`, []string{"hidden_ratio is -4"}},
		{"hidden_ratio", `9223372036854775807`, []string{"hidden_ratio is 9223372036854775807"}},
		{"hidden_ratio", `1000000`, []string{"intermediate_size is"}},
		{"hidden_size", `0`, []string{"hidden_size is 0"}},
		{"hidden_size", `-2048`, []string{"hidden_size is -2048"}},
		{"hidden_size", `9223372036854775807`, []string{"hidden_size is 9223372036854775807"}},
		{"hidden_size", ``, []string{"hidden_size is missing"}},
		{"hidden_act", `"gelu"`, []string{`hidden_act "gelu"`, "swish"}},
		{"rope_theta", `0`, []string{"rope_theta is 0"}},
	} {
		t.Run(fmt.Sprintf("%s=%.30s", tc.field, tc.value), func(t *testing.T) {
			_, err := parse(nsaJSON(map[string]string{tc.field: tc.value}))
			checkError(t, err, tc.want...)
		})
	}
}

// Every tensor is needed, under the names of flash-linear-attention, and has one
// shape.
func TestNSATensors(t *testing.T) {
	m := testmodel.New(testmodel.Family("nsa"))
	load := func() error {
		dir := t.TempDir()
		if err := m.WriteSafetensors(dir); err != nil {
			t.Fatal(err)
		}
		_, err := open(t, dir)
		return err
	}
	if err := load(); err != nil {
		t.Fatal(err)
	}
	for i, w := range slices.Clone(m.Tensors) {
		if strings.HasPrefix(w.Name, "model.layers.0.") {
			continue // the second layer is like the first
		}
		whole := m.Tensors
		m.Tensors = slices.Delete(slices.Clone(whole), i, i+1)
		checkError(t, load(), strings.Replace(w.Name, "embeddings", "embed_tokens", 1))

		m.Tensors = slices.Clone(whole)
		m.Tensors[i].Shape, m.Tensors[i].Values = []int{1, len(w.Values)}, w.Values
		checkError(t, load(), w.Name, "shape")
		m.Tensors = whole
	}
	m.Tensors = append(m.Tensors, testmodel.Tensor{Name: "model.layers.1.attn.g_norm", Shape: []int{1}, Values: []float32{1}})
	checkError(t, load(), "model.layers.1.attn.g_norm", "not part of a nsa model")
}

// A position takes two vectors of each key-value head, and as much again for
// every block.
func TestNSACache(t *testing.T) {
	m, err := open(t, testmodel.Safetensors(t, testmodel.Family("nsa")))
	if err != nil {
		t.Fatal(err)
	}
	const layers, kvHeads, dim, block = 2, 2, 16, 4
	if got, want := kvcache.BytesPerToken(m.Cache(), tensor.BF16), layers*kvHeads*2*dim*2*(block+1)/block; got != want {
		t.Errorf("%d bytes per token, want %d", got, want)
	}
}
