//go:build shared

package checkpoint

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/fixtures"
	"github.com/foretoken/foretoken/internal/tensor"
)

// sharedDir is the directory of shared fixtures that env names, by default
// values decodes a tensor of any rank.
func values(t *testing.T, c *Checkpoint, name string) []float32 {
	t.Helper()
	e := c.byName[name]
	n := 1
	for _, d := range e.Shape {
		n *= d
	}
	out := make([]float32, n)
	tensor.Decode(e.DType, out, e.data)
	for i, v := range out {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			t.Fatalf("%s: value %d is %v", name, i, v)
		}
	}
	return out
}

// unpermute undoes the GGUF conversion of q and k rows of architecture
// llama: rows (head, i, half) become (head, half, i).
func unpermute(rows []float32, heads, cols int) []float32 {
	out := make([]float32, 0, len(rows))
	pairs := len(rows) / cols / heads / 2
	for h := range heads {
		for half := range 2 {
			for i := range pairs {
				r := (h*pairs+i)*2 + half
				out = append(out, rows[r*cols:(r+1)*cols]...)
			}
		}
	}
	return out
}

// counterpart finds what a GGUF tensor holds in safetensors files: one tensor, or
// those of the experts of a layer.
func counterpart(t *testing.T, st *Checkpoint, name string) (all []float32, shape []int, tensors int) {
	if info, ok := st.Info(name); ok {
		return values(t, st, name), info.Shape, 1
	}
	layer, projection, _ := strings.Cut(name, ".experts.")
	for {
		expert := fmt.Sprintf("%s.experts.%d.%s", layer, tensors, projection)
		info, ok := st.Info(expert)
		if !ok {
			return all, append([]int{tensors}, shape...), tensors
		}
		all, shape = append(all, values(t, st, expert)...), info.Shape
		tensors++
	}
}

// Both files of a golden model hold the same values under the same names.
func TestGoldenFormatsAgree(t *testing.T) {
	golden := fixtures.Golden(t)
	whole := slices.Concat(fixtures.DenseModels, fixtures.MoEModels)
	// The tensors of latent attention differ, and those of compressed attention have no counterpart.
	other := []string{"deepseek2", "deepseek2-lite", "deepseek32", "deepseek4"}
	for _, model := range slices.Concat(whole, other) {
		t.Run(model, func(t *testing.T) {
			st := open(t, filepath.Join(golden, "models", model))
			gguf := open(t, filepath.Join(golden, "models", model, "model.gguf"))
			if st.Format() != Safetensors || gguf.Format() != GGUF || len(st.ConfigJSON()) == 0 {
				t.Fatalf("formats %v and %v, config %q", st.Format(), gguf.Format(), st.ConfigJSON())
			}
			for _, name := range st.Names() {
				values(t, st, name)
			}
			arch := gguf.Metadata().Arch()
			compared := 0
			for _, name := range gguf.Names() {
				got := values(t, gguf, name)
				want, shape, tensors := counterpart(t, st, name)
				if tensors == 0 {
					continue
				}
				compared += tensors
				if info, _ := gguf.Info(name); !slices.Equal(info.Shape, shape) {
					t.Errorf("%s: shape %v in GGUF, %v in safetensors", name, info.Shape, shape)
					continue
				}
				key := map[bool]string{true: "head_count", false: "head_count_kv"}
				isQ, isK := strings.HasSuffix(name, "q_proj.weight"), strings.HasSuffix(name, "k_proj.weight")
				switch {
				case arch == "llama" && (isQ || isK):
					heads, ok := gguf.Metadata().Int("llama.attention." + key[isQ])
					if !ok {
						t.Fatalf("no %s", key[isQ])
					}
					got = unpermute(got, int(heads), shape[1])
				case arch == "gemma3" && strings.HasSuffix(name, "norm.weight"):
					for i := range want {
						want[i] += 1 // GGUF has 1 + w
					}
				}
				if !slices.Equal(want, got) {
					t.Errorf("%s: values differ", name)
				}
			}
			if slices.Contains(whole, model) && compared != len(st.Names()) {
				t.Errorf("compared %d of %d tensors", compared, len(st.Names()))
			}
			if slices.Contains(fixtures.DenseModels, model) {
				names := slices.DeleteFunc(gguf.Names(), func(n string) bool { return n == "rope_freqs.weight" })
				if diff := cmp.Diff(st.Names(), names); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestGoldenDrafters(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(fixtures.Golden(t), "drafters", "*", "*.safetensors"))
	if err != nil || len(files) < 24 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		c := open(t, file)
		for _, name := range c.Names() {
			values(t, c, name)
		}
	}
}

func TestStories(t *testing.T) {
	c := open(t, filepath.Join(fixtures.Data(t), "models", "stories260K.gguf"))
	for name, want := range map[string][]int{
		"model.embed_tokens.weight":                      {512, 64},
		"model.layers.4.self_attn.k_proj.weight":         {32, 64},
		"model.layers.4.mlp.down_proj.weight":            {64, 172},
		"model.layers.0.input_layernorm.weight":          {64},
		"model.norm.weight":                              {64},
		"model.layers.4.self_attn.o_proj.weight":         {64, 64},
		"model.layers.0.mlp.gate_proj.weight":            {172, 64},
		"model.layers.3.self_attn.q_proj.weight":         {64, 64},
		"model.layers.3.post_attention_layernorm.weight": {64},
	} {
		if info, _ := c.Info(name); !slices.Equal(want, info.Shape) {
			t.Errorf("%s: shape %v, want %v", name, info.Shape, want)
		}
	}
	for _, name := range c.Names() {
		values(t, c, name)
	}
	if layers, _ := c.Metadata().Int("llama.block_count"); layers != 5 {
		t.Errorf("%d layers", layers)
	}
}

func TestVocabularies(t *testing.T) {
	dir := fixtures.Data(t)
	for name, want := range map[string]struct {
		model  string
		tokens int
		merges int
	}{
		"deepseek-llm": {"gpt2", 102400, 99757},
		"gpt-2":        {"gpt2", 50257, 50000},
		"llama-bpe":    {"gpt2", 128256, 280147},
		"llama-spm":    {"llama", 32000, 0},
		"qwen2":        {"gpt2", 151936, 151387},
	} {
		c := open(t, filepath.Join(dir, "tokenizer", "ggml-vocab-"+name+".gguf"))
		model, _ := c.Metadata().String("tokenizer.ggml.model")
		tokens, _ := c.Metadata().Strings("tokenizer.ggml.tokens")
		types, _ := c.Metadata().Ints("tokenizer.ggml.token_type")
		merges, _ := c.Metadata().Strings("tokenizer.ggml.merges")
		if model != want.model || len(tokens) != want.tokens || len(types) != want.tokens || len(merges) != want.merges || len(c.Names()) != 0 {
			t.Errorf("%s: model %s, %d tokens, %d types, %d merges, tensors %v", name, model, len(tokens), len(types), len(merges), c.Names())
		}
	}
}
