package exec

import (
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// A form is a file format that a test model is written in.
type form string

const (
	safetensors form = "safetensors"
	gguf        form = "gguf"
)

// write writes m in one form and returns the path to open.
func (f form) write(t *testing.T, m *testmodel.Model) string {
	t.Helper()
	dir := t.TempDir() // names the weights where there is only one form
	var err error
	if f == gguf {
		err = m.WriteGGUF(filepath.Join(dir, "model.gguf"))
	} else {
		err = m.WriteSafetensors(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A variant is a test model: a family, and what differs from its defaults.
type variant struct {
	name   string
	family string
	change func(*testmodel.Spec)
	config map[string]any // over config.json: what GGUF files cannot say
	edit   func(*testmodel.Model)
	only   form // the one form that can hold it, if not both
}

var variants = []variant{
	{name: "grouped queries", family: "llama"},
	{name: "multi-head", family: "llama", change: func(s *testmodel.Spec) { s.KVHeads = 4 }},
	{name: "multi-query", family: "llama", change: func(s *testmodel.Spec) { s.KVHeads = 1 }},
	{name: "tied", family: "llama", change: func(s *testmodel.Spec) { s.Tied = true }},
	{name: "biases", family: "llama", change: func(s *testmodel.Spec) { s.Bias = true }},
	{name: "nine heads to three", family: "llama", change: func(s *testmodel.Spec) { s.Heads, s.KVHeads, s.HeadDim, s.Hidden = 9, 3, 8, 72 }},
	{name: "five heads, head width not hidden/heads", family: "llama", change: func(s *testmodel.Spec) { s.Heads, s.KVHeads, s.HeadDim = 5, 1, 10 }},
	{name: "llama3 scaling", family: "llama", change: func(s *testmodel.Spec) {
		s.Theta, s.Scaling = 5e5, testmodel.Scaling{Type: "llama3", Factor: 8, Original: 64}
	}},
	{name: "yarn", family: "llama", change: func(s *testmodel.Spec) { s.Scaling = testmodel.Scaling{Type: "yarn", Factor: 4, Original: 64} }},
	{name: "linear scaling", family: "llama", change: func(s *testmodel.Spec) { s.Scaling = testmodel.Scaling{Type: "linear", Factor: 4} }},
	{name: "yarn with its own attention factor", family: "llama", only: safetensors, config: map[string]any{
		"rope_scaling": map[string]any{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "attention_factor": 1.5},
	}},
	{name: "bf16", family: "llama", change: func(s *testmodel.Spec) { s.DType = tensor.BF16 }},
	{name: "fp8 with block scales", family: "llama", only: safetensors, edit: fp8Weights},
	{name: "three parts", family: "llama", change: func(s *testmodel.Spec) { s.Parts = 3 }},
	{name: "q8_0", family: "llama", only: gguf, change: func(s *testmodel.Spec) { s.DType = tensor.Q8_0 }},
	{name: "q4_0", family: "qwen3", only: gguf, change: func(s *testmodel.Spec) { s.DType = tensor.Q4_0 }},

	{name: "no window", family: "mistral"},
	{name: "window of 5", family: "mistral", only: safetensors, change: func(s *testmodel.Spec) { s.Window = 5 }},
	{name: "window of 40", family: "mistral", only: safetensors, change: func(s *testmodel.Spec) { s.Window = 40 }},
	{name: "window longer than any sequence", family: "mistral", only: safetensors, change: func(s *testmodel.Spec) { s.Window = 300 }},

	{name: "untied", family: "qwen2"},
	{name: "tied", family: "qwen2", change: func(s *testmodel.Spec) { s.Tied = true }},
	{name: "window from the second layer on", family: "qwen2", only: safetensors, config: map[string]any{
		"use_sliding_window": true, "sliding_window": 7, "max_window_layers": 1,
	}},
	{name: "head norms", family: "qwen3"},
	{name: "yarn", family: "qwen3", change: func(s *testmodel.Spec) { s.Scaling = testmodel.Scaling{Type: "yarn", Factor: 4, Original: 32} }},

	{name: "two of six experts", family: "mixtral"},
	{name: "every expert", family: "mixtral", change: func(s *testmodel.Spec) { s.Experts.Active = 6 }},
	{name: "a single expert", family: "mixtral", change: func(s *testmodel.Spec) { s.Experts.Count, s.Experts.Active = 1, 1 }},
	{name: "window of 5", family: "mixtral", only: safetensors, change: func(s *testmodel.Spec) { s.Window = 5 }},
	{name: "bf16, three parts", family: "mixtral", change: func(s *testmodel.Spec) { s.DType, s.Parts = tensor.BF16, 3 }},
	{name: "q8_0", family: "mixtral", only: gguf, change: func(s *testmodel.Spec) { s.DType, s.Experts.Inner = tensor.Q8_0, 64 }},

	{name: "three of nine experts", family: "qwen3_moe"},
	{name: "not normalised", family: "qwen3_moe", only: safetensors, config: map[string]any{"norm_topk_prob": false}},
	{name: "every second layer dense", family: "qwen3_moe", only: safetensors, change: func(s *testmodel.Spec) { s.Layers, s.Experts.Every = 4, 2 }},
	{name: "a layer named dense", family: "qwen3_moe", only: safetensors, change: func(s *testmodel.Spec) { s.Experts.Every = 2 }, config: map[string]any{
		"decoder_sparse_step": 1, "mlp_only_layers": []int{0},
	}},
	{name: "window", family: "qwen3_moe", only: safetensors, config: map[string]any{
		"use_sliding_window": true, "sliding_window": 7, "max_window_layers": 1,
	}},
	{name: "fused experts", family: "qwen3_moe", only: safetensors, edit: fuse},
	{name: "fp8 with block scales", family: "qwen3_moe", only: safetensors, edit: fp8Weights},

	{name: "every fourth layer without rope", family: "smollm3"},
	{name: "its own layers without rope", family: "smollm3", only: safetensors, config: map[string]any{"no_rope_layers": []int{0, 1, 1, 0}}},
	{name: "window where there is no rope", family: "smollm3", only: safetensors, config: map[string]any{
		"use_sliding_window": true, "sliding_window": 9,
	}},

	{name: "every third layer global", family: "gemma3_text"},
	{name: "two key-value heads, window of 3", family: "gemma3_text", change: func(s *testmodel.Spec) { s.KVHeads, s.Window = 2, 3 }},
	{name: "window longer than any sequence", family: "gemma3_text", change: func(s *testmodel.Spec) { s.Window = 300 }},
	{name: "linear scaling of global layers", family: "gemma3_text", change: func(s *testmodel.Spec) {
		s.Scaling = testmodel.Scaling{Type: "linear", Factor: 8}
	}},
	{name: "untied", family: "gemma3_text", change: func(s *testmodel.Spec) { s.Tied = false }},
	{name: "its own layer types and scale", family: "gemma3_text", only: safetensors, config: map[string]any{
		"layer_types":           []string{"full_attention", "sliding_attention", "sliding_attention", "full_attention"},
		"query_pre_attn_scalar": 50,
	}},
	{name: "√48 is no bf16 number", family: "gemma3_text", change: func(s *testmodel.Spec) { s.Hidden, s.DType = 48, tensor.BF16 }},
}

func init() { variants = append(variants, deepseekVariants...) }

func (v variant) model() *testmodel.Model {
	spec := testmodel.Family(v.family)
	if v.change != nil {
		v.change(&spec)
	}
	m := testmodel.New(spec)
	maps.Copy(m.Config, v.config)
	if v.edit != nil {
		v.edit(m)
	}
	return m
}

// fp8Weights stores the projections as e4m3 with a scale per block of 128 by
// 128, as DeepSeek and Qwen publish them.
func fp8Weights(m *testmodel.Model) {
	random := rand.New(rand.NewPCG(3, 4))
	var scales []testmodel.Tensor
	for i := range m.Tensors {
		w := &m.Tensors[i]
		if !strings.HasSuffix(w.Name, "_proj.weight") {
			continue
		}
		w.DType, w.Data = tensor.F8E4M3, make([]byte, len(w.Values))
		for i := range w.Data {
			w.Data[i] = byte(random.IntN(0x40)) | byte(random.IntN(2))<<7 // below 2
		}
		tensor.Decode(w.DType, w.Values, w.Data)
		const block = 128
		rows, cols := w.Shape[0], w.Shape[1]
		s := testmodel.Tensor{Name: w.Name + "_scale_inv", Shape: []int{(rows + block - 1) / block, (cols + block - 1) / block}}
		for i := range s.Shape[0] * s.Shape[1] {
			s.Values = append(s.Values, 0.25/float32(1+i%3))
		}
		for i := range w.Values {
			w.Values[i] *= s.Values[i/cols/block*s.Shape[1]+i%cols/block]
		}
		scales = append(scales, s)
	}
	m.Tensors = append(m.Tensors, scales...)
}

func forEachVariant(t *testing.T, f func(t *testing.T, m *testmodel.Model, file form)) {
	for _, v := range variants {
		for _, file := range []form{safetensors, gguf} {
			if v.only == "" || v.only == file {
				t.Run(v.family+"/"+v.name+"/"+string(file), func(t *testing.T) { f(t, v.model(), file) })
			}
		}
	}
}

// forEachModel runs f once for each variant, for what does not depend on the
// form of its file.
func forEachModel(t *testing.T, f func(t *testing.T, path string)) {
	for _, v := range variants {
		file := v.only
		if file == "" {
			file = safetensors
		}
		t.Run(v.family+"/"+v.name, func(t *testing.T) {
			f(t, file.write(t, v.model()))
		})
	}
}

// randomTokens gives the sequences of a test: one token, a few, and enough to
// cross two blocks of the cache.
func randomTokens(lengths ...int) [][]int32 {
	random := rand.New(rand.NewPCG(1, 2))
	var out [][]int32
	for _, n := range lengths {
		tokens := make([]int32, n)
		for i := range tokens {
			tokens[i] = random.Int32N(testmodel.Vocab)
		}
		out = append(out, tokens)
	}
	return out
}

// expected is the reference for the file that m is written to.
func expected(t *testing.T, m *testmodel.Model, file form) *reference {
	r := newReference(t, m)
	if r.gemma() && file == safetensors && m.DType == tensor.BF16 {
		// Hugging Face rounds the factor to the type of the weights.
		r.embedScale = float64(tensor.BF16ToF32(tensor.F32ToBF16(float32(r.embedScale))))
	}
	if m.DType.BlockLen() > 1 {
		for name, weight := range r.tensors {
			if len(weight.Shape) == 2 && weight.Shape[1]%m.DType.BlockLen() == 0 && weight.DType == tensor.Invalid {
				weight.Values = stored(t, m.DType, weight.Values)
				r.tensors[name] = weight
			}
		}
	}
	return r
}

// stored is what quantised values decode to. The permutation of rows in GGUF
// files leaves blocks whole.
func stored(t *testing.T, d tensor.DType, values []float32) []float32 {
	data := make([]byte, d.RowBytes(len(values)))
	if err := tensor.Encode(d, data, values); err != nil {
		t.Fatal(err)
	}
	out := make([]float32, len(values))
	tensor.Decode(d, out, data)
	return out
}

// logProbTolerance is of float32 against float64; a wrong term costs more than 1e-3.
const logProbTolerance = 1e-4

func TestLogProbsAgainstReference(t *testing.T) {
	forEachVariant(t, func(t *testing.T, m *testmodel.Model, file form) {
		s, r := open(t, file.write(t, m), 2), expected(t, m, file)
		worst := 0.0
		for _, tokens := range randomTokens(1, 6, 70) {
			var table kvcache.Table
			logits := s.logits(t, &table, 0, tokens, len(tokens))
			s.cache.Release(&table)
			for pos, want := range r.logProbs(tokens) {
				got := logSoftmax(logits[pos*s.vocab : (pos+1)*s.vocab])
				for i := range want {
					diff := math.Abs(got[i] - want[i])
					if !(diff <= logProbTolerance) {
						t.Fatalf("%d tokens, row %d: log-probability of token %d is %v, want %v", len(tokens), pos, i, got[i], want[i])
					}
					worst = max(worst, diff)
				}
			}
		}
		t.Logf("largest difference %.2g of %.2g", worst, logProbTolerance)
	})
}

func TestGreedyInChunks(t *testing.T) {
	forEachModel(t, func(t *testing.T, path string) {
		s := open(t, path, 2)
		prompt := randomTokens(40)[0]
		want := s.greedy(t, prompt, 24, len(prompt))
		for _, chunk := range []int{1, 7, 32} {
			if got := s.greedy(t, prompt, 24, chunk); !slices.Equal(got, want) {
				t.Errorf("prompt in chunks of %d: got %v, in one pass %v", chunk, got, want)
			}
		}
		// A model that always says the same would pass anything.
		if len(slices.Compact(slices.Sorted(slices.Values(want)))) < 4 {
			t.Errorf("continuation %v has fewer than 4 different tokens", want)
		}
	})
}

func TestBits(t *testing.T) {
	forEachModel(t, func(t *testing.T, path string) {
		checkBits(t, path, exactMode, randomTokens(70), []int{3}, []int{1, 17})
	})
}

func TestRewind(t *testing.T) {
	forEachModel(t, func(t *testing.T, path string) {
		checkRewind(t, path, exactMode, randomTokens(70))
	})
}

// So it is with rounded activations and every type of cache.
func TestBitsOfRoundedActivations(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Q8_0, tensor.Q4_0, tensor.Q4_1, tensor.BF16} {
		for _, cache := range []tensor.DType{tensor.F16, tensor.BF16, tensor.Q8_0} {
			for _, family := range []string{"llama", "gemma3_text", "qwen3_moe"} {
				spec := testmodel.Family(family)
				spec.DType, spec.HeadDim = d, 32
				checkBits(t, testmodel.GGUF(t, spec), mode{false, cache}, randomTokens(70), []int{3}, []int{1, 3, 17})
			}
		}
	}
}

// Sequences of one step do not see each other: each row has the bits it has
// alone.
func TestBitsInBatch(t *testing.T) {
	forEachModel(t, func(t *testing.T, path string) {
		s := open(t, path, 3)
		sequences := randomTokens(5, 1, 33)
		var step nn.Step
		var want []float32
		for _, tokens := range sequences {
			var table kvcache.Table
			want = append(want, s.logits(t, &table, 0, tokens, len(tokens))...)
			s.cache.Release(&table)
		}
		tables := make([]kvcache.Table, len(sequences))
		for i, tokens := range sequences {
			if err := s.cache.Grow(&tables[i], len(tokens)); err != nil {
				t.Fatal(err)
			}
			step.Add(&tables[i], 0, tokens)
		}
		if err := s.Run(&step, nil); err != nil {
			t.Fatal(err)
		}
		rows := make([]int, step.Rows())
		for i := range rows {
			rows[i] = i
		}
		if got := s.Logits(rows); !slices.Equal(got, want) {
			t.Error("logits differ from those of each sequence alone")
		}
	})
}
