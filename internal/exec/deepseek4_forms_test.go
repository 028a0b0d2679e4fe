package exec

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// A model that transformers saved is the model that DeepSeek published.
func TestCompressedNativeForm(t *testing.T) {
	spec := testmodel.Family("deepseek_v4")
	tokens := randomTokens(150)[0]
	var want []float32
	for _, native := range []bool{false, true} {
		spec.Compressed.Native = native
		s := open(t, testmodel.Safetensors(t, spec), 2)
		var table kvcache.Table
		logits := s.logits(t, &table, 0, tokens, len(tokens))
		if native && !slices.Equal(logits, want) {
			t.Error("the logits of the two forms differ")
		}
		want = logits
	}
}

// storeAsPublished gives m the values that published types hold, and returns a
// model with these types: fp8 with a scale for 128 by 128 values, experts as
// packed fp4 with a scale for 32, scales being powers of two.
func storeAsPublished(m *testmodel.Model) *testmodel.Model {
	random := rand.New(rand.NewPCG(5, 6))
	out := *m
	out.Tensors = slices.Clone(m.Tensors)
	for i, w := range m.Tensors {
		expert := strings.Contains(w.Name, ".experts.")
		float8 := slices.ContainsFunc([]string{
			".q_a_proj.", ".q_b_proj.", "self_attn.kv_proj.", ".o_a_proj.", ".o_b_proj.", ".shared_experts.", ".e_proj.", ".h_proj.",
		}, func(part string) bool { return strings.Contains(w.Name, part) })
		if !expert && !float8 {
			continue
		}
		rows, cols := w.Shape[0], w.Shape[1]
		stored, d, block := w, tensor.F8E4M3, [2]int{128, 128}
		if expert {
			d, block = tensor.F4E2M1, [2]int{1, 32}
		}
		data := make([]byte, rows*d.RowBytes(cols))
		for i := range data {
			if data[i] = byte(random.Uint32()); !expert {
				data[i] &= 0xbf // below 2
			}
		}
		tensor.Decode(d, w.Values, data)
		perRow := (cols + block[1] - 1) / block[1]
		scales := make([]byte, (rows+block[0]-1)/block[0]*perRow)
		powers := make([]float32, len(scales))
		for i := range scales {
			scales[i] = byte(123 + random.IntN(3)) // 1/16 to 1/4
		}
		tensor.Decode(tensor.F8E8M0, powers, scales)
		for i := range w.Values {
			w.Values[i] *= powers[i/cols/block[0]*perRow+i%cols/block[1]]
		}

		stored.DType, stored.Data = d, data
		if expert {
			stored.DType, stored.Shape = tensor.I8, []int{rows, cols / 2}
		}
		out.Tensors[i] = stored
		out.Tensors = append(out.Tensors, testmodel.Tensor{
			Name: strings.TrimSuffix(w.Name, "weight") + "scale", Shape: []int{len(scales) / perRow, perRow}, DType: tensor.F8E8M0, Data: scales,
		})
	}
	return &out
}

// Published types give what the values that they hold give. The groups of the
// output projection share scales, or have their own.
func TestCompressedPublishedTypes(t *testing.T) {
	for _, rank := range []int{32, 128} {
		spec := testmodel.Family("deepseek_v4")
		spec.Compressed.Rank, spec.MTP = rank, 1
		m := testmodel.New(spec)
		path := safetensors.write(t, storeAsPublished(m))
		s, r := openWith(t, path, 2, exactMode, model.Options{MTP: true}), newReference(t, m)
		tokens := randomTokens(60)[0]
		var table kvcache.Table
		if worst := largest(s.logits(t, &table, 0, tokens, 17), r.logProbs(tokens)); !(worst <= 1e-4) {
			t.Errorf("rank %d: largest difference %.2g", rank, worst)
		}
		if worst := largest(s.predict(t, tokens, 17), r.hyperMTP(tokens)); !(worst <= 1e-4) {
			t.Errorf("rank %d, multi-token prediction: largest difference %.2g", rank, worst)
		}
	}
}

// Rounding what is cached, as training did, gives what the same rounding gives
// in float64, but where a value lies between two numbers and goes to the other:
// from there on rows differ. Rounding other values, or otherwise, gives other
// rows.
func TestRoundCache(t *testing.T) {
	v4 := testmodel.Family("deepseek_v4")
	v4.HeadDim, v4.Latent.TopK = 2*64+v4.Latent.RopeDim, 2
	v32 := testmodel.Family("deepseek_v32")
	v32.Latent.TopK = 4
	for _, tc := range []struct {
		testmodel.Spec
		mistakes []string
	}{
		{v4, []string{
			"rotated values rounded", "no hadamard", "scales not powers of two", "whole keys share a scale", "index as fp8", "entries not rounded",
		}},
		{v32, []string{"no hadamard", "scales not powers of two"}},
	} {
		m := testmodel.New(tc.Spec)
		for i := range m.Tensors { // blocks that need scales of their own
			if w := m.Tensors[i]; strings.HasSuffix(w.Name, "self_attn.kv_norm.weight") {
				for j := range 64 {
					w.Values[j] /= 1 << 12
				}
			}
		}
		s := openWith(t, safetensors.write(t, m), 2, exactMode, model.Options{RoundCache: true})
		sequences, all := randomTokens(30, 30, 30, 30), [][]float32(nil)
		for _, tokens := range sequences {
			var table kvcache.Table
			logits := s.logits(t, &table, 0, tokens, len(tokens))
			s.cache.Release(&table)
			if got := s.logits(t, &table, 0, tokens, 7); !slices.Equal(got, logits) {
				t.Errorf("%s: other bits in chunks of 7 than in one pass", tc.Family)
			}
			s.cache.Release(&table)
			all = append(all, logits)
		}
		r := newReference(t, m)
		equal := func() (n int) {
			for i, tokens := range sequences {
				for row, want := range r.logProbs(tokens) {
					if largest(all[i][row*s.vocab:(row+1)*s.vocab], [][]float64{want}) <= 1e-4 {
						n++
					}
				}
			}
			return n
		}
		plain := equal()
		r.rounded = true
		right := equal()
		if right < 60 || plain > right-15 {
			t.Errorf("%s: %d of 120 rows are as with rounding in float64, %d as without", tc.Family, right, plain)
		}
		for _, r.wrong = range tc.mistakes {
			if n := equal(); n > right-15 {
				t.Errorf("%s, %s: %d of 120 rows are the same, without the mistake %d", tc.Family, r.wrong, n, right)
			}
		}
	}
}

// Models that were not trained so are refused, and widths that are no blocks.
func TestRoundCacheRefused(t *testing.T) {
	odd := testmodel.Family("deepseek_v4")
	odd.HeadDim = 64
	index := testmodel.Family("deepseek_v4")
	index.Latent.IndexDim = 48
	for want, spec := range map[string]testmodel.Spec{
		"caches of llama are not rounded":      testmodel.Family("llama"),
		"head_dim less qk_rope_head_dim is 48": odd,
		"index_head_dim is 48":                 index,
	} {
		c, err := checkpoint.Open(testmodel.Safetensors(t, spec))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := model.Load(c, model.Options{RoundCache: true}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q in it", err, want)
		}
		c.Close()
	}
}
