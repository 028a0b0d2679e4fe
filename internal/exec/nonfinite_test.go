package exec

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// forEachValue runs f for the numbers that damaged weights hold.
func forEachValue(t *testing.T, f func(t *testing.T, family string, value float32)) {
	for _, family := range testmodel.Families() {
		for name, value := range map[string]float32{"NaN": float32(math.NaN()), "infinity": float32(math.Inf(1))} {
			t.Run(family+"/"+name, func(t *testing.T) { f(t, family, value) })
		}
	}
}

// A token whose embedding is not finite spoils its own row and those that
// attend to it: no row before it, no other sequence of the step, and no
// sequence that gets its pages later.
func TestNonFiniteEmbedding(t *testing.T) {
	const bad = 7
	forEachValue(t, func(t *testing.T, family string, value float32) {
		spec := testmodel.Family(family)
		spec.Tied = false // else every row's logit of the token is spoilt, too
		m := testmodel.New(spec)
		clean := open(t, safetensors.write(t, m), 2)
		m.Tensor("model.embed_tokens.weight").Values[bad*m.Hidden+3] = value
		broken := open(t, safetensors.write(t, m), 2)

		good := []int32{1, 2, 3, 4, 5, 6, 8, 9}
		mixed := []int32{1, 2, 3, bad, 5, 6}
		alone := func(tokens []int32) []float32 {
			var table kvcache.Table
			defer clean.cache.Release(&table)
			return clean.logits(t, &table, 0, tokens, len(tokens))
		}
		wantGood, wantMixed := alone(good), alone(mixed[:3])

		var step nn.Step
		var tables [2]kvcache.Table
		for i, tokens := range [][]int32{mixed, good} {
			if err := broken.cache.Grow(&tables[i], len(tokens)); err != nil {
				t.Fatal(err)
			}
			step.Add(&tables[i], 0, tokens)
		}
		if err := broken.Run(&step, nil); err != nil {
			t.Fatal(err)
		}
		rows := make([]int, step.Rows())
		for i := range rows {
			rows[i] = i
		}
		logits := broken.Logits(rows)
		mixedLogits, goodLogits := logits[:len(mixed)*broken.vocab], logits[len(mixed)*broken.vocab:]
		if !slices.Equal(goodLogits, wantGood) {
			t.Error("the sequence beside it changed")
		}
		if !slices.Equal(mixedLogits[:3*broken.vocab], wantMixed) {
			t.Error("the rows before it changed")
		}
		for _, v := range mixedLogits[3*broken.vocab : 4*broken.vocab] {
			if !math.IsNaN(float64(v)) {
				t.Fatalf("its own row has the logit %v, expected NaN", v)
			}
		}

		broken.cache.Release(&tables[0])
		var table kvcache.Table
		if got := broken.logits(t, &table, 0, good, 3); !slices.Equal(got, wantGood) {
			t.Error("the next sequence in its pages changed")
		}
	})
}

// One spoilt row of the head is one spoilt logit.
func TestNonFiniteHead(t *testing.T) {
	const bad = 7
	forEachValue(t, func(t *testing.T, family string, value float32) {
		spec := testmodel.Family(family)
		spec.Tied = false
		m := testmodel.New(spec)
		tokens := randomTokens(9)[0]
		var table kvcache.Table
		want := open(t, safetensors.write(t, m), 2).logits(t, &table, 0, tokens, len(tokens))

		m.Tensor("lm_head.weight").Values[bad*m.Hidden+3] = value
		table = kvcache.Table{}
		got := open(t, safetensors.write(t, m), 2).logits(t, &table, 0, tokens, len(tokens))
		for i, v := range got {
			finite := !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0)
			if i%testmodel.Vocab == bad {
				if finite {
					t.Fatalf("row %d: logit %v of the spoilt token", i/testmodel.Vocab, v)
				}
			} else if v != want[i] {
				t.Fatalf("row %d: logit %v of token %d, want %v", i/testmodel.Vocab, v, i%testmodel.Vocab, want[i])
			}
		}
	})
}

// Whatever weight is not finite, a model loads and runs.
func TestNonFiniteWeights(t *testing.T) {
	forEachValue(t, func(t *testing.T, family string, value float32) {
		whole := testmodel.New(testmodel.Family(family))
		for i, tensor := range whole.Tensors {
			if strings.HasPrefix(tensor.Name, "model.layers.") && !strings.HasPrefix(tensor.Name, "model.layers.1.") {
				continue // the layers are alike
			}
			if strings.HasSuffix(tensor.Name, ".tid2eid") {
				continue // of integers
			}
			m := *whole
			m.Tensors = slices.Clone(whole.Tensors)
			m.Tensors[i].Values = slices.Repeat([]float32{value}, len(tensor.Values))
			s := open(t, safetensors.write(t, &m), 2)
			var table kvcache.Table
			logits := s.logits(t, &table, 0, randomTokens(24)[0], 20) // every expert works on one
			// What collapses streams is a sigmoid of these, which infinity leaves finite.
			bounded := strings.Contains(tensor.Name, ".hc_head.") && math.IsInf(float64(value), 0)
			if !bounded && !slices.ContainsFunc(logits, func(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) }) {
				t.Errorf("%s: every logit is finite", tensor.Name)
			}
		}
	})
}

// An indexer whose scores are no numbers chooses nothing: a row that would read
// what it chooses fails, and no other row of the step. Rows that see no more than
// may be chosen do not ask it, and keep the bits of the clean model.
func TestNonFiniteIndexer(t *testing.T) {
	const long, short = 40, 10 // tokens of two sequences
	sequences := randomTokens(long, short)
	logits := func(t *testing.T, m *testmodel.Model, o model.Options) []float32 {
		s := openWith(t, safetensors.write(t, m), 2, exactMode, o)
		var step nn.Step
		for _, tokens := range sequences {
			table := new(kvcache.Table)
			if err := s.cache.Grow(table, len(tokens)); err != nil {
				t.Fatal(err)
			}
			step.Add(table, 0, tokens)
		}
		if err := s.Run(&step, nil); err != nil {
			t.Fatal(err)
		}
		rows := make([]int, step.Rows())
		for i := range rows {
			rows[i] = i
		}
		return s.Logits(rows)
	}
	v32, v4 := testmodel.Family("deepseek_v32"), testmodel.Family("deepseek_v4")
	v32.Latent.TopK, v4.Latent.TopK = 12, 5
	for _, tc := range []struct {
		name    string
		spec    testmodel.Spec
		options model.Options
		chooses int // position of the first row that sees more than may be chosen
	}{
		{"V3.2", v32, model.Options{}, 12},
		{"V3.2, expanded", v32, model.Options{MLAExpanded: true}, 12},
		{"V4", v4, model.Options{}, 4*(5+1) - 1}, // that completes the sixth entry
	} {
		whole := testmodel.New(tc.spec)
		want := logits(t, whole, tc.options)
		spoilt := 0
		for i, tensor := range whole.Tensors {
			if !strings.HasPrefix(tensor.Name, "model.layers.1.") || !strings.Contains(tensor.Name, ".indexer.") {
				continue
			}
			for _, value := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
				for _, all := range []bool{true, false} {
					m := *whole
					m.Tensors = slices.Clone(whole.Tensors)
					values := slices.Clone(tensor.Values)
					m.Tensors[i].Values = values
					if spoilt++; !all {
						values = values[3:4]
					}
					for i := range values {
						values[i] = value
					}
					got := logits(t, &m, tc.options)
					for row := range long + short {
						got, want := got[row*testmodel.Vocab:][:testmodel.Vocab], want[row*testmodel.Vocab:][:testmodel.Vocab]
						if row < tc.chooses || row >= long {
							if !slices.Equal(got, want) {
								t.Errorf("%s, %v in %s: row %d, which chooses nothing, changed", tc.name, value, tensor.Name, row)
							}
						} else if i := slices.IndexFunc(got, func(v float32) bool { return v == v }); i >= 0 {
							t.Errorf("%s, %v in %s: row %d, which chooses, has the logit %v", tc.name, value, tensor.Name, row, got[i])
						}
					}
				}
			}
		}
		if spoilt == 0 {
			t.Errorf("%s: no tensor of an indexer was spoilt", tc.name)
		}
	}
}
