package exec

import (
	"math"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
)

var deepseekVariants = []variant{
	{name: "lite", family: "deepseek_v2"},
	{name: "groups by their best expert", family: "deepseek_v2", change: func(s *testmodel.Spec) {
		s.Latent.QueryRank = 24
		s.Experts.Groups, s.Experts.ActiveGroups, s.Experts.Method, s.Experts.Scale = 3, 2, "group_limited_greedy", 2
	}},
	{name: "normalised instead of scaled", family: "deepseek_v2", only: safetensors, change: func(s *testmodel.Spec) {
		s.Experts.Normalize, s.Experts.Scale = true, 3
	}},
	{name: "no shared expert", family: "deepseek_v2", change: func(s *testmodel.Spec) { s.Experts.Shared = 0 }},
	{name: "every second layer dense", family: "deepseek_v3", only: safetensors, change: func(s *testmodel.Spec) {
		s.Experts.FirstDense, s.Experts.Every = 0, 2
	}},
	{name: "bias, groups and a shared expert", family: "deepseek_v3"},
	{name: "full-rank queries", family: "deepseek_v3", change: func(s *testmodel.Spec) { s.Latent.QueryRank = 0 }},
	{name: "unscaled positions", family: "deepseek_v3", change: func(s *testmodel.Spec) { s.Scaling = testmodel.Scaling{} }},
	{name: "modules not asked for", family: "deepseek_v3", change: func(s *testmodel.Spec) { s.MTP = 1 }},
	{name: "fp8 with scales that heads share", family: "deepseek_v3", only: safetensors, edit: fp8Weights},
	{name: "fp8 with scales for each head", family: "deepseek_v3", only: safetensors, edit: fp8Weights, change: func(s *testmodel.Spec) {
		s.Heads, s.KVHeads, s.Latent.NopeDim, s.Latent.ValueDim, s.Latent.Rank = 2, 2, 128, 128, 144
	}},
	{name: "kv_b in one tensor", family: "deepseek_v3", only: gguf, change: func(s *testmodel.Spec) { s.Latent.Joint = true }},
	{name: "kv_b in one tensor of q8_0", family: "deepseek_v3", only: gguf, change: func(s *testmodel.Spec) {
		s.Latent.Joint, s.Latent.QueryRank, s.Latent.ValueDim, s.Experts.Inner, s.DType = true, 32, 16, 32, tensor.Q8_0
	}},
	{name: "bf16", family: "deepseek_v32", change: func(s *testmodel.Spec) { s.DType = tensor.BF16 }},
	{name: "12 positions at most", family: "deepseek_v32"},
	{name: "one position", family: "deepseek_v32", change: func(s *testmodel.Spec) { s.Latent.TopK = 1 }},
	{name: "33 positions at most", family: "deepseek_v32", change: func(s *testmodel.Spec) { s.Latent.TopK = 33 }},
	{name: "more positions than any sequence has", family: "deepseek_v32", change: func(s *testmodel.Spec) { s.Latent.TopK = 1000 }},
}

// A mistake is one thing that a port gets wrong, and a model that shows it.
type mistake struct{ wrong, family string }

var deepseekMistakes = []mistake{
	{"no mscale", "deepseek_v2"},
	{"no mscale", "deepseek_v3"},
	{"factor on cosines", "deepseek_v3"},
	{"halves", "deepseek_v3"},
	{"rope first", "deepseek_v3"},
	{"no latent norm", "deepseek_v3"},
	{"keys not transposed", "deepseek_v3"},
	{"values of the rotated part", "deepseek_v3"},
	{"values before keys", "deepseek_v3"},

	{"other scoring", "deepseek_v2"},
	{"other scoring", "deepseek_v3"},
	{"other normalisation", "deepseek_v2"},
	{"other normalisation", "deepseek_v3"},
	{"no routed scale", "deepseek_v3"},
	{"no choice bias", "deepseek_v3"},
	{"biased weights", "deepseek_v3"},
	{"no groups", "deepseek_v3"},
	{"other group score", "deepseek_v3"},
	{"no shared expert", "deepseek_v2"},
	{"no shared expert", "deepseek_v3"},

	{"indexer interleaved", "deepseek_v32"},
	{"indexer rope last", "deepseek_v32"},
	{"no mean of index keys", "deepseek_v32"},
	{"no bias of index keys", "deepseek_v32"},
	{"no relu", "deepseek_v32"},
	{"one position less", "deepseek_v32"},
	{"one position more", "deepseek_v32"},
}

// largest returns the largest difference of log-probabilities; rows of logits
// are those of want.
func largest(logits []float32, want [][]float64) (worst float64) {
	vocab := len(logits) / len(want)
	for row := range want {
		for i, p := range logSoftmax(logits[row*vocab : (row+1)*vocab]) {
			if diff := math.Abs(p - want[row][i]); !(diff <= worst) {
				worst = diff
			}
		}
	}
	return worst
}

// Each mistake costs far more than rounding does.
func TestDeepseekMistakes(t *testing.T) {
	const tolerance = 2e-4 // of golden models
	tokens := randomTokens(70)[0]
	for _, family := range []string{"deepseek_v2", "deepseek_v3", "deepseek_v32"} {
		m := testmodel.New(testmodel.Family(family))
		s := open(t, safetensors.write(t, m), 2)
		var table kvcache.Table
		logits := s.logits(t, &table, 0, tokens, len(tokens))
		for _, tc := range deepseekMistakes {
			if tc.family != family {
				continue
			}
			r := newReference(t, m)
			r.wrong = tc.wrong
			if worst := largest(logits, r.logProbs(tokens)); worst < 10*tolerance {
				t.Errorf("%s, %s: largest difference %.2g", family, tc.wrong, worst)
			}
		}
	}
}

// Expanded keys and values give what the latent vectors give, within rounding,
// and each row what it gives alone.
func TestExpanded(t *testing.T) {
	for _, v := range deepseekVariants {
		t.Run(v.family+"/"+v.name, func(t *testing.T) {
			file := v.only
			if file == "" {
				file = gguf
			}
			m := v.model()
			path, r := file.write(t, m), expected(t, m, file)
			for _, cache := range []tensor.DType{tensor.F32, tensor.F16} {
				s := openWith(t, path, 3, mode{true, cache}, model.Options{MLAExpanded: true})
				for _, tokens := range randomTokens(1, 70) {
					var table kvcache.Table
					want := s.logits(t, &table, 0, tokens, len(tokens))
					s.cache.Release(&table)
					if worst := largest(want, r.logProbs(tokens)); cache == tensor.F32 && worst > 1e-4 {
						t.Errorf("%d tokens: largest difference from the reference %.2g", len(tokens), worst)
					}
					for _, chunk := range []int{1, 17} {
						if got := s.logits(t, &table, 0, tokens, chunk); !slices.Equal(got, want) {
							t.Errorf("%v: %d tokens in chunks of %d differ from one pass", cache, len(tokens), chunk)
						}
						s.cache.Release(&table)
					}
				}
			}
		})
	}
}

// Rows keep their bits with rounded activations and every type of cache, and
// after others were added behind them and taken back.
func TestLatentBitsOfRoundedActivations(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Q8_0, tensor.Q4_0, tensor.BF16} {
		spec := testmodel.Family("deepseek_v32")
		spec.DType = d
		spec.Latent = testmodel.Latent{QueryRank: 32, Rank: 64, NopeDim: 32, RopeDim: 32, ValueDim: 32, IndexHeads: 4, IndexDim: 32, TopK: 12}
		path := testmodel.GGUF(t, spec)
		for _, cache := range []tensor.DType{tensor.F16, tensor.BF16, tensor.Q8_0} {
			checkBits(t, path, mode{false, cache}, randomTokens(70), []int{3}, []int{1, 3, 17})
			checkRewind(t, path, mode{false, cache}, randomTokens(40))
		}
	}
}

// A module of multi-token prediction is evaluated beside its model, from what
// the model made of the same positions.
func TestMTP(t *testing.T) {
	for _, family := range []string{"deepseek_v3", "deepseek_v32"} {
		for _, file := range []form{safetensors, gguf} {
			spec := testmodel.Family(family)
			spec.MTP = 1
			m := testmodel.New(spec)
			s := openWith(t, file.write(t, m), 2, exactMode, model.Options{MTP: true})
			if n := len(s.model.MTP()); n != 1 {
				t.Fatalf("%d modules, want 1", n)
			}
			tokens := randomTokens(60)[0]
			r := newReference(t, m)
			want := r.mtp(spec.Layers, tokens)
			got := s.predict(t, tokens, len(tokens)-1)
			if worst := largest(got, want); worst > 1e-4 {
				t.Errorf("%s, %s: largest difference %.2g", family, file, worst)
			}
			for _, chunk := range []int{1, 7} {
				if !slices.Equal(s.predict(t, tokens, chunk), got) {
					t.Errorf("%s, %s: chunks of %d differ from one pass", family, file, chunk)
				}
			}
			r.wrong = "state before embedding"
			if worst := largest(s.predict(t, tokens, 7), r.mtp(spec.Layers, tokens)); worst < 1e-2 {
				t.Errorf("%s: with the state before the embedding, largest difference %.2g", family, worst)
			}
		}
	}
}

// predict returns the logits of the model's module after each of tokens but the
// last, chunk rows at a time.
func (s *subject) predict(t *testing.T, tokens []int32, chunk int) (all []float32) {
	t.Helper()
	var table kvcache.Table
	defer s.cache.Release(&table)
	if err := s.cache.Grow(&table, len(tokens)); err != nil {
		t.Fatal(err)
	}
	module, step := s.model.MTP()[0], new(nn.Step)
	for from := 0; from+1 < len(tokens); from += chunk {
		to := min(from+chunk, len(tokens)-1)
		rows := make([]int, to-from)
		for i := range rows {
			rows[i] = i
		}
		step.Reset()
		step.Add(&table, from, tokens[from:to])
		if err := s.Run(step, nil); err != nil {
			t.Fatal(err)
		}
		states := make([]float32, len(rows)*s.model.StateWidth())
		s.model.States(&s.st, rows, states)
		step.Reset()
		step.Add(&table, from, tokens[from+1:to+1])
		if err := module.Forward(step, &s.st, states); err != nil {
			t.Fatal(err)
		}
		logits := make([]float32, len(rows)*s.vocab)
		hidden := make([]float32, len(rows)*s.model.Config().Hidden)
		module.Hidden(&s.st, rows, hidden)
		module.Logits(&s.st, hidden, logits)
		all = append(all, logits...)
	}
	return all
}
