package model

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// writeForms writes m in both forms and returns what to open.
func writeForms(t *testing.T, m *testmodel.Model) (safetensors, gguf string) {
	t.Helper()
	dir := t.TempDir()
	gguf = filepath.Join(dir, "model.gguf")
	if err := m.WriteSafetensors(dir); err != nil {
		t.Fatal(err)
	}
	if err := m.WriteGGUF(gguf); err != nil {
		t.Fatal(err)
	}
	return dir, gguf
}

func open(t *testing.T, path string) (Model, error) {
	t.Helper()
	return openOptions(t, path, Options{}) // checked, not packed
}

func openOptions(t *testing.T, path string, o Options) (Model, error) {
	t.Helper()
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return Load(c, o)
}

func TestLoadsEveryFamily(t *testing.T) {
	for _, family := range testmodel.Families() {
		safetensors, gguf := writeForms(t, testmodel.New(testmodel.Family(family)))
		for _, path := range []string{safetensors, gguf} {
			m, err := open(t, path)
			if err != nil {
				t.Errorf("%s: %v", family, err)
				continue
			}
			if got, want := len(m.Layers()), m.Config().Layers; got != want || len(m.Cache()) != want {
				t.Errorf("%s: %d layers, %d in the cache, want %d", path, got, len(m.Cache()), want)
			}
		}
	}
}

// likeAnother reports whether a tensor is of a layer that is like another: all
// but the second, unless a model has layers of several kinds.
func likeAnother(family, name string) bool {
	if family == "deepseek_v4" {
		return strings.HasPrefix(name, "model.layers.3.")
	}
	return strings.HasPrefix(name, "model.layers.") && !strings.HasPrefix(name, "model.layers.1.")
}

// Every tensor of a model is needed, and its absence is an error that names
// it as the file would.
func TestMissingTensors(t *testing.T) {
	for _, family := range testmodel.Families() {
		t.Run(family, func(t *testing.T) {
			whole := testmodel.New(testmodel.Family(family))
			for _, tensor := range whole.Tensors {
				if likeAnother(family, tensor.Name) {
					continue
				}
				if strings.Contains(tensor.Name, ".experts.") && !strings.Contains(tensor.Name, ".experts.1.") {
					continue // experts are alike
				}
				m := *whole
				m.Tensors = slices.Clone(whole.Tensors)
				m.Drop(tensor.Name)
				safetensors, gguf := writeForms(t, &m)
				_, err := open(t, safetensors)
				checkError(t, err, m.PublishedName(tensor.Name))

				_, err = open(t, gguf)
				if tensor.Name == "lm_head.weight" {
					if err != nil { // in GGUF, no head means the embedding
						t.Errorf("without lm_head: %v", err)
					}
					continue
				}
				arch, _ := m.Metadata[0].Value.(string)
				stored, ok := checkpoint.GGUFName(arch, testmodel.Stacked(tensor.Name))
				if !ok {
					t.Fatalf("no GGUF name for %s", tensor.Name)
				}
				checkError(t, err, stored)
			}
		})
	}
}

// Every tensor has one shape, which the configuration gives.
func TestWrongShapes(t *testing.T) {
	for _, family := range testmodel.Families() {
		t.Run(family, func(t *testing.T) {
			m := testmodel.New(testmodel.Family(family))
			for i, tensor := range slices.Clone(m.Tensors) {
				if likeAnother(family, tensor.Name) {
					continue
				}
				if strings.Contains(tensor.Name, ".experts.") && !strings.Contains(tensor.Name, ".experts.1.") {
					continue // so are the experts
				}
				shapes := [][]int{{len(tensor.Values)}, {1, len(tensor.Values)}, {1, 1, len(tensor.Values)}}
				if len(tensor.Shape) == 2 && tensor.Shape[0] != tensor.Shape[1] {
					shapes = append(shapes, []int{tensor.Shape[1], tensor.Shape[0]})
				}
				if len(tensor.Shape) == 2 {
					shapes = append(shapes, []int{tensor.Shape[0], tensor.Shape[1] / 2}, []int{tensor.Shape[0], tensor.Shape[1] - 1})
				}
				for _, shape := range shapes {
					if slices.Equal(shape, tensor.Shape) {
						continue
					}
					size := 1
					for _, n := range shape {
						size *= n
					}
					m.Tensors[i].Shape, m.Tensors[i].Values = shape, tensor.Values[:size]
					dir := t.TempDir()
					if err := m.WriteSafetensors(dir); err != nil {
						t.Fatal(err)
					}
					_, err := open(t, dir)
					checkError(t, err, m.PublishedName(tensor.Name), "shape")
				}
				m.Tensors[i] = tensor
			}
		})
	}
}

func TestLoadErrors(t *testing.T) {
	extra := func(name string, values ...float32) func(*testmodel.Model) {
		return func(m *testmodel.Model) {
			m.Tensors = append(m.Tensors, testmodel.Tensor{Name: name, Shape: []int{len(values)}, Values: values})
		}
	}
	for _, tc := range []struct {
		name, family string
		edit         func(*testmodel.Model)
		safetensors  []string // parts of the error; nil: no error
		gguf         []string
	}{
		{
			"fewer embedding rows than vocab_size", "llama",
			func(m *testmodel.Model) { m.Config["vocab_size"] = testmodel.Vocab + 1 },
			[]string{"model.embed_tokens.weight", "[300, 64]", "[301, 64]"},
			nil,
		},
		{
			"more embedding rows than vocab_size", "qwen3",
			func(m *testmodel.Model) { m.Config["vocab_size"] = testmodel.Vocab - 1 },
			[]string{"model.embed_tokens.weight", "[300, 64]", "[299, 64]"},
			nil,
		},
		{
			"head of another vocabulary", "llama",
			func(m *testmodel.Model) {
				head := m.Tensor("lm_head.weight")
				head.Shape, head.Values = []int{299, 64}, head.Values[:299*64]
			},
			[]string{"lm_head.weight", "[299, 64]", "[300, 64]"},
			[]string{"[299, 64]", "[300, 64]"},
		},
		{
			"fewer layers than there are", "llama",
			func(m *testmodel.Model) {
				m.Config["num_hidden_layers"] = 1
				m.SetMetadata("llama.block_count", uint32(1))
			},
			[]string{"model.layers.1.", "not part of a llama model"},
			[]string{"blk.1.", "not part of a llama model"},
		},
		{
			"more layers than there are", "llama",
			func(m *testmodel.Model) {
				m.Config["num_hidden_layers"] = 3
				m.SetMetadata("llama.block_count", uint32(3))
			},
			[]string{"model.layers.2."},
			[]string{"blk.2."},
		},
		{
			"a head norm that llama does not have", "llama", extra("model.layers.0.self_attn.q_norm.weight", make([]float32, 16)...),
			[]string{"model.layers.0.self_attn.q_norm.weight", "not part of a llama model"},
			[]string{"blk.0.attn_q_norm.weight", "not part of a llama model"},
		},
		{
			"a tensor of a layer that no family has", "qwen2", extra("model.layers.0.self_attn.sinks", 1, 2),
			[]string{"model.layers.0.self_attn.sinks", "not part of a qwen2 model"},
			[]string{"model.layers.0.self_attn.sinks", "not part of a qwen2 model"},
		},
		{
			"a tensor with a GGUF name that no family has", "llama", extra("blk.0.attn_sinks.weight", 1, 2),
			[]string{"blk.0.attn_sinks.weight", "not part"},
			[]string{"blk.0.attn_sinks.weight", "not part"},
		},
		{"stored rotary frequencies", "llama", extra("model.layers.0.self_attn.rotary_emb.inv_freq", 1, 2), nil, nil},
		{"a tensor outside the layers", "llama", extra("vision_tower.patch.weight", 1, 2), nil, nil},
		{
			"a bias of another length", "qwen2",
			func(m *testmodel.Model) {
				bias := m.Tensor("model.layers.0.self_attn.k_proj.bias")
				bias.Shape, bias.Values = []int{16}, bias.Values[:16]
			},
			[]string{"k_proj.bias", "16 values, expected 32"},
			[]string{"blk.0.attn_k.bias", "16 values, expected 32"},
		},
		{"rope divisors of another length", "llama", extra("rope_freqs.weight", 1, 2, 3), []string{"rope_freqs.weight", "3", "8"}, []string{"rope_freqs", "3", "8"}},
		{"a rope divisor of zero", "llama", extra("rope_freqs.weight", 1, 1, 1, 0, 1, 1, 1, 1), []string{"rope_freqs", "value 3 is 0"}, []string{"rope_freqs", "value 3 is 0"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := testmodel.New(testmodel.Family(tc.family))
			tc.edit(m)
			safetensors, gguf := t.TempDir(), filepath.Join(t.TempDir(), "model.gguf")
			if err := m.WriteSafetensors(safetensors); err != nil {
				t.Fatal(err)
			}
			if err := m.WriteGGUF(gguf); err != nil {
				t.Fatal(err)
			}
			for path, want := range map[string][]string{safetensors: tc.safetensors, gguf: tc.gguf} {
				_, err := open(t, path)
				if want == nil && err != nil {
					t.Errorf("%s: %v", path, err)
				}
				if want != nil {
					checkError(t, err, append(want, path)...)
				}
			}
		})
	}
}

// The blocks of a quantised matrix may not fit its rows: then the writer
// keeps float32, and the model loads.
func TestQuantisedWithOddRows(t *testing.T) {
	spec := testmodel.Family("llama")
	spec.DType, spec.Heads, spec.KVHeads, spec.HeadDim = tensor.Q8_0, 5, 5, 10
	if _, err := open(t, testmodel.GGUF(t, spec)); err != nil {
		t.Error(err)
	}
}

// Integers are not weights: no file says what was packed into them.
func TestIntegerWeights(t *testing.T) {
	for _, name := range []string{
		"model.embed_tokens.weight", "model.norm.weight", "model.layers.1.self_attn.q_proj.weight", "model.layers.1.mlp.gate.weight",
		"model.layers.1.mlp.experts.0.up_proj.weight",
	} {
		for _, d := range []tensor.DType{tensor.I8, tensor.U8, tensor.I32, tensor.Bool} {
			path, _ := writeForms(t, testmodel.New(testmodel.Family("qwen3_moe")))
			retype(t, filepath.Join(path, "model.safetensors"), name, d)
			_, err := open(t, path)
			checkError(t, err, name, "type "+d.String())
		}
	}
}

// retype says in the header of a file of float32 tensors that one has another
// type, of as many values.
func retype(t *testing.T, path, name string, d tensor.DType) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 8 + binary.LittleEndian.Uint64(data)
	var header map[string]map[string]any
	if err := json.Unmarshal(data[8:n], &header); err != nil {
		t.Fatal(err)
	}
	values, out := data[n:], []byte(nil)
	for _, key := range slices.Sorted(maps.Keys(header)) {
		entry := header[key]
		if key == "__metadata__" {
			continue
		}
		at := entry["data_offsets"].([]any)
		from, to := int(at[0].(float64)), int(at[1].(float64))
		if key == name {
			to = from + (to-from)/4*d.BlockBytes()
			entry["dtype"] = strings.ToUpper(d.String())
		}
		entry["data_offsets"] = []int{len(out), len(out) + to - from}
		out = append(out, values[from:to]...)
	}
	head, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	data = binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	if err := os.WriteFile(path, slices.Concat(data, head, out), 0o644); err != nil {
		t.Fatal(err)
	}
}
