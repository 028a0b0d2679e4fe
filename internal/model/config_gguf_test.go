package model

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// readConfig is ReadConfig of the file or directory at path.
func readConfig(t *testing.T, path string) (*Config, error) {
	t.Helper()
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return ReadConfig(c)
}

// metadataOnly drops all tensors but the embedding, whose rows are the
// vocabulary: configurations do not read the others.
func metadataOnly(m *testmodel.Model) *testmodel.Model {
	m.Tensors = []testmodel.Tensor{{Name: "model.embed_tokens.weight", Shape: []int{testmodel.Vocab, 1}, Values: make([]float32, testmodel.Vocab)}}
	if !m.Tied {
		head := m.Tensors[0]
		head.Name = "lm_head.weight"
		m.Tensors = append(m.Tensors, head)
	}
	return m
}

// Both files of a model describe the same model.
func TestConfigOfBothForms(t *testing.T) {
	specs := map[string]testmodel.Spec{}
	for _, family := range testmodel.Families() {
		specs[family] = testmodel.Family(family)
	}
	for name, scaling := range map[string]testmodel.Scaling{"linear": {Type: "linear", Factor: 8}, "yarn": {Type: "yarn", Factor: 4, Original: 64}} {
		for _, family := range []string{"llama", "gemma3_text"} {
			s := testmodel.Family(family)
			s.Scaling = scaling
			specs[family+" "+name] = s
		}
	}
	odd := testmodel.Family("qwen2")
	odd.Heads, odd.KVHeads, odd.HeadDim, odd.Hidden, odd.Tied = 9, 3, 10, 90, true
	specs["nine heads"] = odd

	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := testmodel.Write(dir, spec); err != nil {
				t.Fatal(err)
			}
			hf, err := readConfig(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			gguf, err := readConfig(t, filepath.Join(dir, "model.gguf"))
			if err != nil {
				t.Fatal(err)
			}
			// A GGUF file has its own names, float32 numbers, rotary pairs in
			// other places and no defaults for scalings it does not use.
			diff := cmp.Diff(hf, gguf,
				cmpopts.IgnoreFields(Config{}, "Architecture"),
				cmpopts.IgnoreFields(nn.RopeConfig{}, "Interleaved"),
				cmpopts.IgnoreFields(nn.RopeScaling{}, "LowFreq", "HighFreq", "Original"),
				cmpopts.EquateApprox(1e-6, 0))
			if diff != "" {
				t.Errorf("-safetensors +GGUF:\n%s", diff)
			}
			if want := spec.Scaling.Original; gguf.Rope.Scaling.Type == "yarn" && gguf.Rope.Scaling.Original != want {
				t.Errorf("original context %v, want %v", gguf.Rope.Scaling.Original, want)
			}
			if want := gguf.MLA != nil || gguf.V4 != nil || spec.Family == "llama" || spec.Family == "mistral" || spec.Family == "mixtral" || spec.Family == "smollm3"; gguf.Rope.Interleaved != want {
				t.Errorf("interleaved %v, want %v", gguf.Rope.Interleaved, want)
			}
		})
	}
}

func TestGGUFConfigKeys(t *testing.T) {
	for _, tc := range []struct {
		family, key string
		value       any
		want        func(*Config) (got, want any)
	}{
		{"llama", "llama.attention.head_count_kv", nil, func(c *Config) (any, any) { return c.KVHeads, 4 }},
		{"llama", "llama.attention.key_length", nil, func(c *Config) (any, any) { return c.HeadDim, 16 }},
		{"llama", "llama.rope.freq_base", nil, func(c *Config) (any, any) { return c.Rope.Theta, 10000.0 }},
		{"llama", "llama.rope.freq_base", uint32(500000), func(c *Config) (any, any) { return c.Rope.Theta, 500000.0 }},
		{"llama", "llama.rope.scaling.type", "none", func(c *Config) (any, any) { return c.Rope.Scaling, nn.RopeScaling{} }},
		{"llama", "llama.rope.scaling.factor", float32(0), func(c *Config) (any, any) { return c.Rope.Scaling, nn.RopeScaling{} }},
		{"llama", "llama.rope.scale_linear", float32(4), func(c *Config) (any, any) {
			return []any{c.Rope.Scaling.Type, c.Rope.Scaling.Factor}, []any{"linear", 4.0}
		}},
		{"llama yarn", "llama.rope.scaling.original_context_length", nil, func(c *Config) (any, any) { return c.Rope.Scaling.Original, 512.0 }},
		{"llama yarn", "llama.rope.scaling.attn_factor", float32(1), func(c *Config) (any, any) { return c.Rope.Scaling.Attention, 0.0 }},
		{"llama yarn", "llama.rope.scaling.attn_factor", float32(0.5), func(c *Config) (any, any) {
			return c.Rope.Scaling.Attention, 0.5 * (1 + 0.1*math.Log(4)) // on top of yarn's own
		}},
		{"llama", "tokenizer.ggml.bos_token_id", nil, func(c *Config) (any, any) { return c.BOS, int32(-1) }},
		{"llama", "tokenizer.ggml.eos_token_id", nil, func(c *Config) (any, any) { return c.EOS, []int32(nil) }},
		{"gemma3_text", "gemma3.rope.freq_base_swa", nil, func(c *Config) (any, any) { return c.LocalRope.Theta, 10000.0 }},
		{"gemma3_text", "gemma3.attention.sliding_window_pattern", nil, func(c *Config) (any, any) { return c.Sliding, []bool{true, true, true, true} }},
		{"gemma3_text", "gemma3.block_count", uint32(62), func(c *Config) (any, any) { return c.QueryScale, 0.25 }}, // 27B: √(hidden/heads)
	} {
		t.Run(fmt.Sprintf("%s=%v", tc.key, tc.value), func(t *testing.T) {
			family, scaling, _ := strings.Cut(tc.family, " ")
			spec := testmodel.Family(family)
			if scaling != "" {
				spec.Scaling = testmodel.Scaling{Type: scaling, Factor: 4, Original: 64}
			}
			m := metadataOnly(testmodel.New(spec))
			m.SetMetadata(tc.key, tc.value)
			path := filepath.Join(t.TempDir(), "model.gguf")
			if err := m.WriteGGUF(path); err != nil {
				t.Fatal(err)
			}
			c, err := readConfig(t, path)
			if err != nil {
				t.Fatal(err)
			}
			got, want := tc.want(c)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestHostileGGUFConfigs(t *testing.T) {
	for _, tc := range []struct {
		family, key string
		value       any // nil: absent
		want        []string
	}{
		{"llama", "general.architecture", "mamba", []string{`architecture "mamba" is not supported`}},
		{"llama", "general.architecture", nil, []string{`architecture "" is not supported`}},
		{"llama", "general.architecture", uint32(1), []string{`architecture "" is not supported`}},
		{"llama", "llama.embedding_length", nil, []string{"key llama.embedding_length is missing"}},
		{"llama", "llama.embedding_length", uint32(0), []string{"key llama.embedding_length is 0"}},
		{"llama", "llama.embedding_length", int32(-64), []string{"key llama.embedding_length is -64"}},
		{"llama", "llama.embedding_length", "64", []string{"key llama.embedding_length", "string", "integer"}},
		{"llama", "llama.embedding_length", float32(64), []string{"key llama.embedding_length", "float32", "integer"}},
		{"llama", "llama.embedding_length", uint64(math.MaxUint64), []string{"key llama.embedding_length", "32-bit"}},
		{"llama", "llama.embedding_length", uint32(1 << 30), []string{"key llama.embedding_length is 1073741824"}},
		{"llama", "llama.block_count", uint32(0), []string{"key llama.block_count is 0"}},
		{"llama", "llama.block_count", uint32(1e9), []string{"block_count is 1000000000"}},
		{"smollm3", "smollm3.block_count", uint32(1e9), []string{"block_count is 1000000000"}},
		{"gemma3_text", "gemma3.block_count", uint32(1e9), []string{"block_count is 1000000000"}},
		{"llama", "llama.attention.head_count", uint32(0), []string{"key llama.attention.head_count is 0"}},
		{"llama", "llama.attention.head_count", []int32{4, 4}, []string{"key llama.attention.head_count", "[4 4]"}},
		{"llama", "llama.attention.head_count_kv", uint32(0), []string{"key llama.attention.head_count_kv is 0"}},
		{"llama", "llama.attention.head_count_kv", uint32(3), []string{"llama.attention.head_count_kv 3"}},
		{"llama", "llama.attention.head_count_kv", []uint32{2, 2}, []string{"key llama.attention.head_count_kv", "[]uint32"}},
		{"llama", "llama.attention.key_length", uint32(15), []string{"key_length 15"}},
		{"llama", "llama.attention.value_length", uint32(8), []string{"key llama.attention.value_length is 8", "16"}},
		{"llama", "llama.attention.layer_norm_rms_epsilon", float32(math.NaN()), []string{"key llama.attention.layer_norm_rms_epsilon is NaN"}},
		{"llama", "llama.context_length", nil, []string{"key llama.context_length is missing"}},
		{"llama", "llama.feed_forward_length", []int32{1}, []string{"key llama.feed_forward_length"}},
		{"qwen2", "qwen2.expert_count", uint32(8), []string{"expert_count is 8", "not supported"}},
		{"llama", "llama.expert_count", uint32(8), []string{"key llama.expert_used_count is missing"}},
		{"mixtral", "llama.expert_count", uint32(1), []string{"key llama.expert_used_count is 2, expected 1 to 1"}},
		{"mixtral", "llama.expert_count", int32(-6), []string{"key llama.expert_count is -6, expected a positive number"}},
		{"mixtral", "llama.expert_count", uint32(1 << 30), []string{"number of experts is 1073741824, expected 1 to 4096"}},
		{"mixtral", "llama.expert_count", "6", []string{"key llama.expert_count", "a 32-bit integer"}},
		{"mixtral", "llama.expert_used_count", uint32(0), []string{"key llama.expert_used_count is 0, expected a positive number"}},
		{"mixtral", "llama.expert_used_count", uint32(7), []string{"key llama.expert_used_count is 7, expected 1 to 6"}},
		{"mixtral", "llama.expert_gating_func", uint32(3), []string{"key llama.expert_gating_func is 3, expected 1 (softmax), 2 (sigmoid) or 4 (sqrtsoftplus)"}},
		{"mixtral", "llama.expert_weights_scale", float32(math.NaN()), []string{"key llama.expert_weights_scale is NaN"}},
		{"mixtral", "llama.expert_weights_scale", float32(-1), []string{"key llama.expert_weights_scale is -1"}},
		{"mixtral", "llama.expert_weights_norm", uint32(1), []string{"key llama.expert_weights_norm", "true or false"}},
		{"mixtral", "llama.expert_group_count", uint32(4), []string{"key llama.expert_group_count is 4, expected a divisor of the 6 experts"}},
		{"mixtral", "llama.expert_shared_count", uint32(1 << 30), []string{"width of shared experts is"}},
		{"qwen3_moe", "qwen3moe.expert_feed_forward_length", nil, []string{"key qwen3moe.expert_feed_forward_length is missing"}},
		{"qwen3_moe", "qwen3moe.expert_feed_forward_length", int32(-1), []string{"expert_feed_forward_length is -1, expected a positive number"}},
		{"llama", "llama.rope.dimension_count", uint32(8), []string{"rope.dimension_count is 8", "16"}},
		{"llama", "llama.rope.freq_base", float32(math.NaN()), []string{"key llama.rope.freq_base is NaN"}},
		{"llama", "llama.rope.freq_base", float32(0), []string{"key llama.rope.freq_base is 0"}},
		{"llama", "llama.rope.freq_base", "x", []string{"key llama.rope.freq_base", "a number"}},
		{"llama", "llama.rope.scaling.type", "longrope", []string{`"longrope" is not supported`}},
		{"llama", "llama.rope.scaling.type", uint32(2), []string{"key llama.rope.scaling.type", "text"}},
		{"llama", "llama.rope.scaling.factor", float32(-4), []string{"linear", "factor is -4"}},
		{"llama", "llama.rope.scaling.factor", float32(math.NaN()), []string{"linear", "factor is NaN"}},
		{"llama", "llama.rope.scaling.factor", float32(math.Inf(1)), []string{"linear", "factor is +Inf"}},
		{"llama", "llama.rope.scaling.attn_factor", float32(1.2), []string{"attn_factor is 1.2"}},
		{"llama", "tokenizer.ggml.bos_token_id", uint32(300), []string{"bos_token_id is 300"}},
		{"llama", "tokenizer.ggml.bos_token_id", uint64(1 << 32), []string{"tokenizer.ggml.bos_token_id", "token id"}},
		{"llama", "tokenizer.ggml.eos_token_id", int32(-1), []string{"tokenizer.ggml.eos_token_id", "token id"}},
		{"gemma3_text", "gemma3.attention.sliding_window", nil, []string{"key gemma3.attention.sliding_window is missing"}},
		{"gemma3_text", "gemma3.attention.sliding_window", uint32(0), []string{"key gemma3.attention.sliding_window is 0"}},
		{"gemma3_text", "gemma3.attention.sliding_window_pattern", uint32(0), []string{"sliding_window_pattern is 0"}},
		{"gemma3_text", "gemma3.attention.sliding_window_pattern", []bool{true, false, true, true}, []string{"sliding_window_pattern"}},
		{"gemma3_text", "gemma3.rope.freq_base_swa", float32(-1), []string{"sliding layers", "sliding layers: gemma3.rope.freq_base_swa is -1"}},
	} {
		t.Run(fmt.Sprintf("%s=%v", tc.key, tc.value), func(t *testing.T) {
			m := metadataOnly(testmodel.New(testmodel.Family(tc.family)))
			m.SetMetadata(tc.key, tc.value)
			path := filepath.Join(t.TempDir(), "model.gguf")
			if err := m.WriteGGUF(path); err != nil {
				t.Fatal(err)
			}
			_, err := readConfig(t, path)
			checkError(t, err, append(tc.want, path)...)
		})
	}
}

// FuzzGGUFConfig: whatever value a key has, the answer is an error of one
// line or a Config whose sizes are sound.
func FuzzGGUFConfig(f *testing.F) {
	var models []*testmodel.Model
	for i, family := range testmodel.Families() {
		m := metadataOnly(testmodel.New(testmodel.Family(family)))
		models = append(models, m)
		for _, p := range m.Metadata {
			f.Add(uint8(i), p.Key, uint8(1), int64(7), 0.0, "")
		}
		arch, _ := m.Metadata[0].Value.(string)
		for _, key := range []string{"rope.scaling.type", "rope.scaling.factor", "rope.scaling.attn_factor", "rope.scale_linear"} {
			f.Add(uint8(i), arch+"."+key, uint8(6), int64(1), 4.0, "yarn")
		}
	}
	path := filepath.Join(f.TempDir(), "model.gguf")
	f.Fuzz(func(t *testing.T, family uint8, key string, kind uint8, integer int64, float float64, text string) {
		m := *models[int(family)%len(models)]
		m.Metadata = slices.Clone(m.Metadata)
		values := []any{
			nil, uint32(integer), integer, uint64(integer), int32(integer), float32(float), text, float, integer%2 == 0,
			[]int32{int32(integer)},
			[]string{text},
			[]float32{float32(float)},
		}
		m.SetMetadata(key, values[int(kind)%len(values)])
		if m.WriteGGUF(path) != nil {
			return // a key that no file can have
		}
		source, err := checkpoint.Open(path)
		if err != nil {
			return
		}
		defer source.Close()
		c, err := ReadConfig(source)
		if err != nil {
			checkError(t, err)
			return
		}
		checkSound(t, c)
	})
}
