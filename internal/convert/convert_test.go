package convert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/fixtures"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

func openCheckpoint(t *testing.T, path string) *checkpoint.Checkpoint {
	t.Helper()
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func quantize(t *testing.T, src Source, d tensor.DType) *checkpoint.Checkpoint {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.gguf")
	var done, total int64
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Quantize(context.Background(), src, d, f, func(d, t int64) { done, total = d, t }); err != nil {
		t.Fatal(err)
	}
	if done == 0 || done != total {
		t.Errorf("progress ended at %d of %d", done, total)
	}
	return openCheckpoint(t, out)
}

// source is the Hugging Face form of a model.
func source(t *testing.T, dir string) Source {
	c := openCheckpoint(t, dir)
	data, err := c.File("tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	config, err := c.File("tokenizer_config.json")
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.FromJSON(data, config)
	if err != nil {
		t.Fatal(err)
	}
	return Source{Checkpoint: c, Tokenizer: tok, Template: testmodel.ChatTemplate}
}

// values decodes every tensor by its stored name.
func values(t *testing.T, c *checkpoint.Checkpoint) map[string][]float32 {
	t.Helper()
	all := map[string][]float32{}
	for _, name := range c.Names() {
		info, _ := c.Info(name)
		w, err := load(c, name, info.Stored)
		if err != nil {
			t.Fatal(err)
		}
		all[info.Stored] = w.vector
		for _, m := range w.matrices {
			row := make([]float32, m.Cols)
			for r := range m.Rows {
				m.Row(row, r)
				all[info.Stored] = append(all[info.Stored], row...)
			}
		}
	}
	return all
}

func specs() map[string]testmodel.Spec {
	specs := map[string]testmodel.Spec{}
	for _, family := range testmodel.Families() {
		if architectures[family] != "" {
			specs[family] = testmodel.Family(family)
		}
	}
	scaled := testmodel.Family("llama")
	scaled.Scaling = testmodel.Scaling{Type: "llama3", Factor: 8, Original: 64}
	scaled.Bias = true
	specs["llama with llama3 scaling and biases"] = scaled
	scaled.Scaling.Type = "yarn"
	specs["llama with yarn"] = scaled
	return specs
}

// A Hugging Face directory written as F32 has the tensors, the configuration
// and the tokenizer of the model's own GGUF form.
func TestSafetensorsBecomeGGUF(t *testing.T) {
	for name, spec := range specs() {
		t.Run(name, func(t *testing.T) {
			got := quantize(t, source(t, testmodel.Safetensors(t, spec)), tensor.F32)
			want := openCheckpoint(t, testmodel.GGUF(t, spec))

			gotValues, wantValues := values(t, got), values(t, want)
			for tensor, w := range wantValues {
				g, ok := gotValues[tensor]
				delete(gotValues, tensor)
				if !ok || len(g) != len(w) {
					t.Errorf("%s: %d values, want %d", tensor, len(g), len(w))
					continue
				}
				for i := range w {
					if math.Abs(float64(g[i]-w[i])) > 1e-6*math.Abs(float64(w[i])) {
						t.Errorf("%s: value %d is %v, want %v", tensor, i, g[i], w[i])
						break
					}
				}
			}
			for tensor := range gotValues {
				t.Errorf("%s is written, but the model has no such tensor", tensor)
			}

			gotConfig, err := model.ReadConfig(got)
			if err != nil {
				t.Fatal(err)
			}
			wantConfig, err := model.ReadConfig(want)
			if err != nil {
				t.Fatal(err)
			}
			if !sameConfig(gotConfig, wantConfig) {
				t.Errorf("configuration\n%+v, want\n%+v", *gotConfig, *wantConfig)
			}
			if s, _ := got.Metadata().String("tokenizer.chat_template"); s != testmodel.ChatTemplate {
				t.Errorf("chat template %q", s)
			}
			sameTokens(t, got, want)
		})
	}
}

func sameConfig(a, b *model.Config) bool {
	x, y := *a, *b
	if (x.LocalRope == nil) != (y.LocalRope == nil) || x.LocalRope != nil && *x.LocalRope != *y.LocalRope {
		return false
	}
	if (x.MoE == nil) != (y.MoE == nil) || x.MoE != nil && *x.MoE != *y.MoE {
		return false
	}
	x.LocalRope, y.LocalRope, x.MoE, y.MoE = nil, nil, nil, nil
	return fmt.Sprintf("%+v", x) == fmt.Sprintf("%+v", y)
}

func sameTokens(t *testing.T, got, want *checkpoint.Checkpoint) {
	t.Helper()
	a, err := tokenizer.FromGGUF(got.Metadata())
	if err != nil {
		t.Fatal(err)
	}
	b, err := tokenizer.FromGGUF(want.Metadata())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"hello world", "<|im_start|>user\n123 and é\t\t<|im_end|>", " the  \n\n or"} {
		x, err := a.Encode(text, tokenizer.Options{Special: true})
		if err != nil {
			t.Fatal(err)
		}
		y, err := b.Encode(text, tokenizer.Options{Special: true})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(x, y) {
			t.Errorf("%q: %v, want %v", text, x, y)
		}
	}
}

func stored(c *checkpoint.Checkpoint, name string) checkpoint.TensorInfo {
	for _, n := range c.Names() {
		if info, _ := c.Info(n); info.Stored == name {
			return info
		}
	}
	return checkpoint.TensorInfo{}
}

// Quantised matrices are as close as their type allows; vectors keep their bits.
func TestQuantize(t *testing.T) {
	spec := testmodel.Family("llama")
	path := testmodel.GGUF(t, spec)
	src := openCheckpoint(t, path)
	want := values(t, src)
	for d, tolerance := range map[tensor.DType]float64{tensor.F16: 1e-3, tensor.BF16: 8e-3, tensor.Q8_0: 1e-2, tensor.Q4_0: 0.15, tensor.Q4_1: 0.15} {
		got := quantize(t, Source{Checkpoint: src}, d)
		gotValues := values(t, got)
		for name, w := range want {
			g, info := gotValues[name], stored(got, name)
			vector := len(info.Shape) == 1
			if wantType := map[bool]tensor.DType{true: tensor.F32, false: d}[vector]; info.DType != wantType {
				t.Errorf("%s is %v, want %v", name, info.DType, wantType)
			}
			var diff, size float64
			for i := range w {
				diff += math.Pow(float64(g[i]-w[i]), 2)
				size += math.Pow(float64(w[i]), 2)
			}
			if rms := math.Sqrt(diff / size); rms > tolerance || vector && rms != 0 {
				t.Errorf("%v %s: relative error %v", d, name, rms)
			}
		}
		if config, err := model.Check(got); err != nil || config.Layers != spec.Layers {
			t.Errorf("%v: %v", d, err)
		}
	}
}

func TestRecommendedSamplingIsKept(t *testing.T) {
	dir := testmodel.Safetensors(t, testmodel.Family("llama"))
	file := `{"temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.05, "repetition_penalty": 1.1}`
	if err := os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	m := quantize(t, source(t, dir), tensor.Q8_0).Metadata()
	for key, want := range map[string]any{"temp": float32(0.6), "top_k": int32(20), "top_p": float32(0.95), "min_p": float32(0.05), "penalty_repeat": float32(1.1)} {
		if got := m.Get("general.sampling." + key); got != want {
			t.Errorf("general.sampling.%s is %v, want %v", key, got, want)
		}
	}
	if name, _ := m.String("general.name"); name != filepath.Base(dir) {
		t.Errorf("general.name is %q, want %q", name, filepath.Base(dir))
	}
}

// A tokenizer that GGUF's keys cannot express is kept as it is, with what
// tokenizer_config.json adds to it.
func TestInexpressibleTokenizer(t *testing.T) {
	for _, bosBy := range []string{"tokenizer.json", "tokenizer_config.json"} {
		t.Run("BOS by "+bosBy, func(t *testing.T) {
			dir := testmodel.Safetensors(t, testmodel.Family("llama"))
			edit(t, filepath.Join(dir, "tokenizer.json"), func(f map[string]any) {
				f["added_tokens"].([]any)[0].(map[string]any)["lstrip"] = true
				if bosBy != "tokenizer.json" {
					f["post_processor"] = nil
				}
			})
			edit(t, filepath.Join(dir, "tokenizer_config.json"), func(f map[string]any) {
				f["tokenizer_class"], f["add_bos_token"] = "LlamaTokenizerFast", true
			})
			src := source(t, dir)
			if _, err := src.Tokenizer.GGUF(); err == nil || !src.Tokenizer.AddsBOS() {
				t.Fatalf("%v, adds BOS %v: the test needs another tokenizer", err, src.Tokenizer.AddsBOS())
			}
			got, err := tokenizer.FromGGUF(quantize(t, src, tensor.F32).Metadata())
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"hello <bos>world", "<|im_start|>user"} {
				want, _ := src.Tokenizer.Encode(text, tokenizer.Options{Special: true})
				ids, err := got.Encode(text, tokenizer.Options{Special: true})
				if err != nil || !slices.Equal(ids, want) {
					t.Errorf("%q: %v, %v; want %v", text, ids, err, want)
				}
			}
			if a, b := got.EOG(), src.Tokenizer.EOG(); !slices.Equal(a, b) {
				t.Errorf("end tokens %v, want %v", a, b)
			}
		})
	}
}

// edit changes a JSON object in a file.
func edit(t *testing.T, path string, change func(map[string]any)) {
	t.Helper()
	var f map[string]any
	fixtures.ReadJSON(t, path, &f)
	change(f)
	data, err := json.Marshal(f)
	if err == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestFailures(t *testing.T) {
	spec := testmodel.Family("llama")
	broken := func(d tensor.DType, value float32) error {
		m := testmodel.New(spec)
		m.Tensor("model.layers.1.mlp.down_proj.weight").Values[3] = value
		path := filepath.Join(t.TempDir(), "model.gguf")
		if err := m.WriteGGUF(path); err != nil {
			t.Fatal(err)
		}
		return Quantize(context.Background(), Source{Checkpoint: openCheckpoint(t, path)}, d, io.Discard, func(int64, int64) {})
	}
	for name, err := range map[string]error{"NaN": broken(tensor.Q8_0, float32(math.NaN())), "too large": broken(tensor.F16, 1e5)} {
		if err == nil || !strings.Contains(err.Error(), "blk.1.ffn_down.weight") {
			t.Errorf("%s: %v, want an error that names the tensor", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Quantize(ctx, Source{Checkpoint: openCheckpoint(t, testmodel.GGUF(t, spec))}, tensor.Q8_0, io.Discard, func(int64, int64) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Architectures that cannot be written are refused by name, in either form.
func TestUnsupportedArchitectures(t *testing.T) {
	refused := 0
	for _, family := range testmodel.Families() {
		if architectures[family] != "" {
			continue
		}
		refused++
		spec := testmodel.Family(family)
		paths := map[string]string{testmodel.Safetensors(t, spec): family}
		if family != "nsa" { // which has no GGUF form
			path := testmodel.GGUF(t, spec)
			paths[path] = openCheckpoint(t, path).Metadata().Arch()
		}
		for path, arch := range paths {
			err := Quantize(context.Background(), Source{Checkpoint: openCheckpoint(t, path)}, tensor.Q8_0, io.Discard, func(int64, int64) {})
			if err == nil || !strings.Contains(err.Error(), "architecture "+arch+" cannot be written as GGUF yet; supported are") {
				t.Errorf("%s: %v, want an error that names %s", path, err, arch)
			}
		}
	}
	if refused == 0 {
		t.Error("no family is refused: the test needs another")
	}
}

// What GGUF has no key for is refused rather than lost.
func TestInexpressibleConfigurations(t *testing.T) {
	window := testmodel.Family("mistral")
	window.Window = 40
	mixtral := testmodel.Family("mixtral")
	mixtral.Window = 40
	dense := testmodel.Family("qwen3_moe")
	dense.Experts.Every = 2
	noRope := testmodel.Family("smollm3")
	noRope.Every = 3
	byType := map[string]any{"rope_parameters": map[string]any{
		"full_attention":    map[string]any{"rope_theta": 1e6},
		"sliding_attention": map[string]any{"rope_theta": 1e4, "rope_type": "linear", "factor": 2},
	}}
	for name, tc := range map[string]struct {
		spec   testmodel.Spec
		config map[string]any // over config.json
		want   string
	}{
		"mistral's window":              {window, nil, "sliding window of 40"},
		"smollm3's other interval":      {noRope, nil, "rotary embeddings"},
		"scaling of gemma's sliding":    {testmodel.Family("gemma3_text"), byType, "rope scaling of sliding layers"},
		"mixtral's window":              {mixtral, nil, "sliding window of 40"},
		"qwen's weights":                {testmodel.Family("qwen3_moe"), map[string]any{"norm_topk_prob": false}, "norm_topk_prob false"},
		"qwen's dense layers":           {dense, nil, "layer 0 has no experts"},
		"rope of qwen's sliding layers": {testmodel.Family("qwen3"), byType, "rotary embeddings of sliding layers"},
	} {
		m := testmodel.New(tc.spec)
		maps.Copy(m.Config, tc.config)
		dir := t.TempDir()
		if err := m.WriteSafetensors(dir); err != nil {
			t.Fatal(err)
		}
		src := Source{Checkpoint: openCheckpoint(t, dir)}
		err := Quantize(context.Background(), src, tensor.F32, io.Discard, func(int64, int64) {})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, tc.want)
		}
	}
}
