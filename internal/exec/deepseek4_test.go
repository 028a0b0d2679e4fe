package exec

import (
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
)

func init() { variants = append(variants, compressedVariants...) }

var compressedVariants = []variant{
	{name: "all kinds of layers", family: "deepseek_v4"},
	{name: "four groups", family: "deepseek_v4", change: func(s *testmodel.Spec) { s.Compressed.Groups = 4 }},
	{name: "no yarn, no clamp, no hash layers", family: "deepseek_v4", change: func(s *testmodel.Spec) {
		s.Scaling, s.Compressed.Limit, s.Compressed.HashLayers = testmodel.Scaling{}, 0, 0
	}},
	{name: "window of one", family: "deepseek_v4", change: func(s *testmodel.Spec) { s.Window = 1 }},
	{name: "window longer than any sequence", family: "deepseek_v4", change: func(s *testmodel.Spec) { s.Window = 300 }},
	{name: "modules of multi-token prediction", family: "deepseek_v4", only: safetensors, change: func(s *testmodel.Spec) { s.MTP = 1 }},
	{name: "bf16, three parts", family: "deepseek_v4", change: func(s *testmodel.Spec) { s.DType, s.Parts = tensor.BF16, 3 }},
	{name: "q8_0", family: "deepseek_v4", only: gguf, change: func(s *testmodel.Spec) { s.DType = tensor.Q8_0 }},
}

// Sequences in which entries of all kinds are complete, 128 positions among
// them.
func TestCompressedLongSequences(t *testing.T) {
	m := testmodel.New(testmodel.Family("deepseek_v4"))
	path := safetensors.write(t, m)
	tokens := randomTokens(300)
	s, r := open(t, path, 2), newReference(t, m)
	var table kvcache.Table
	worst := largest(s.logits(t, &table, 0, tokens[0], len(tokens[0])), r.logProbs(tokens[0]))
	if !(worst <= 1e-4) {
		t.Errorf("largest difference from the reference %.2g", worst)
	}
	t.Logf("largest difference %.2g", worst)
	checkBits(t, path, exactMode, tokens, []int{3}, []int{1, 50, 128})
	checkBits(t, path, mode{false, tensor.F16}, tokens, []int{2}, []int{7, 300})
	checkRewind(t, path, exactMode, tokens)
}

// compressedMistakes are those that a model of testmodel tells apart.
var compressedMistakes = []string{
	"comb transposed", "post without 2", "softmax over columns", "no sinkhorn", "one iteration", "rows last",
	"hyper-connections not normalised", "one scale", "pre and post swapped", "mean of streams",

	"no head norm", "no kv norm", "no sinks", "mscale", "window of one less", "window of one more",
	"main rope", "main base", "no yarn", "yarn everywhere", "factor on cosines", "halves", "no inverse rope",
	"heads dealt to groups", "groups reversed",

	"entries at their last position", "no rope of entries", "no overlap", "halves swapped", "zeros before the first window",
	"plain mean", "no position bias", "no entry norm",
	"entries one too early", "entries one too late", "entries complete before the row", "all entries",
	"no indexer", "one entry less", "one entry more", "least entries", "no relu", "no index weights", "no rope of index queries",

	"hash ignored", "softmax", "sigmoid", "softplus", "no choice bias", "biased weights", "weights not normalised", "no routed scale",
	"no clamp", "gate clamped from below", "up clamped from above only", "silu clamped", "weighted before the clamp",
	"no shared expert", "shared expert not clamped", "shared expert scaled",
}

// Each mistake costs far more than rounding does.
func TestCompressedMistakes(t *testing.T) {
	const tolerance = 2e-4 // of golden models
	tokens := randomTokens(60)[0]
	m := testmodel.New(testmodel.Family("deepseek_v4"))
	// Twenty iterations converge, from rows or from columns.
	m.Config["hc_sinkhorn_iters"] = 2
	s := open(t, safetensors.write(t, m), 2)
	var table kvcache.Table
	logits := s.logits(t, &table, 0, tokens, len(tokens))
	for _, wrong := range compressedMistakes {
		r := newReference(t, m)
		r.wrong = wrong
		worst := largest(logits, r.logProbs(tokens))
		if !(worst >= 100*tolerance) {
			t.Errorf("%s: largest difference %.2g", wrong, worst)
		}
	}
}

// A module of multi-token prediction reads all streams of the model's last layer
// and has a place of its own in the cache; a model that is not asked for it
// passes it over.
func TestHyperMTP(t *testing.T) {
	spec := testmodel.Family("deepseek_v4")
	spec.MTP = 1
	m := testmodel.New(spec)
	path := safetensors.write(t, m)
	if s := open(t, path, 1); len(s.model.MTP()) != 0 || len(s.model.Cache()) != spec.Layers {
		t.Errorf("%d modules and %d layers in the cache of a model without them", len(s.model.MTP()), len(s.model.Cache()))
	}
	s := openWith(t, path, 2, exactMode, model.Options{MTP: true})
	if len(s.model.MTP()) != 1 || len(s.model.Cache()) != spec.Layers+1 {
		t.Fatalf("%d modules, %d layers in the cache", len(s.model.MTP()), len(s.model.Cache()))
	}
	tokens := randomTokens(140)[0]
	r := newReference(t, m)
	want, logits := r.hyperMTP(tokens), s.predict(t, tokens, len(tokens)-1)
	if worst := largest(logits, want); !(worst <= 1e-4) {
		t.Errorf("largest difference %.2g", worst)
	}
	for _, chunk := range []int{1, 7} {
		if got := s.predict(t, tokens, chunk); !slices.Equal(got, logits) {
			t.Errorf("chunks of %d: other bits than in one pass", chunk)
		}
	}
	for _, wrong := range []string{
		"one stream", "token of the same position", "embedding in one stream", "the model's collapse", "the model's norm",
	} {
		r.wrong = wrong
		if worst := largest(logits[:40*s.vocab], r.hyperMTP(tokens[:41])); !(worst >= 1e-2) {
			t.Errorf("%s: largest difference %.2g", wrong, worst)
		}
	}
}
