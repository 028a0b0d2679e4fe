package sample

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A naive sampler: everything in float64, everything sorted. margin is the
// smallest distance of any decision from going the other way, ties aside.
type naive struct {
	ids    []int32
	x      []float64
	margin float64
}

func newNaive(logits []float32, r *Row) *naive {
	p := r.Params
	n := &naive{margin: math.Inf(1)}
	prompt, output := map[int32]bool{}, map[int32]float64{}
	if r.History != nil {
		for _, e := range r.History.seen {
			prompt[e.token], output[e.token] = e.prompt, float64(e.output)
		}
	}
	for i, l := range logits {
		id, x := int32(i), float64(l)
		if r.Generated < p.MinTokens && (slices.Contains(r.EOG, id) || slices.Contains(p.StopIDs, id)) {
			x = math.Inf(-1)
		}
		x += float64(p.LogitBias[id])
		if prompt[id] || output[id] > 0 {
			if x > 0 {
				x /= float64(p.RepetitionPenalty)
			} else {
				x *= float64(p.RepetitionPenalty)
			}
		}
		x -= float64(p.FrequencyPenalty) * output[id]
		if output[id] > 0 {
			x -= float64(p.PresencePenalty)
		}
		x /= float64(p.Temperature)
		if !math.IsInf(x, -1) {
			n.ids, n.x = append(n.ids, id), append(n.x, x)
		}
	}
	return n
}

func (n *naive) probs() []float64 {
	p := make([]float64, len(n.x))
	top, total := slices.Max(n.x), 0.0
	for i, x := range n.x {
		p[i] = math.Exp(x - top)
		total += p[i]
	}
	for i := range p {
		p[i] /= total
	}
	return p
}

// decide notes a comparison of a with b.
func (n *naive) decide(a, b float64) {
	if d := math.Abs(a - b); d > 0 {
		n.margin = min(n.margin, d)
	}
}

// keepPrefix sorts by score and keeps tokens while more reports so.
func (n *naive) keepPrefix(score []float64, more func(kept int, mass float64) bool) {
	order := make([]int, len(n.x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(score[a], score[b]) })
	p := n.probs()
	kept, mass := 0, 0.0
	for kept < len(order) && more(kept, mass) {
		mass += p[order[kept]]
		kept++
	}
	if kept < len(order) {
		for _, s := range score {
			n.decide(s, score[order[kept-1]])
			n.decide(s, score[order[kept]])
		}
	}
	left := slices.Sorted(slices.Values(order[:kept]))
	for i, j := range left {
		n.ids[i], n.x[i] = n.ids[j], n.x[j]
	}
	n.ids, n.x = n.ids[:kept], n.x[:kept]
}

func (n *naive) truncate(p *Params) {
	negated := func() []float64 {
		s := make([]float64, len(n.x))
		for i, x := range n.x {
			s[i] = -x
		}
		return s
	}
	if p.MinP > 0 {
		probs := n.probs()
		limit := float64(p.MinP) * slices.Max(probs)
		count := 0
		for _, q := range probs {
			n.decide(q, limit)
			if q >= limit {
				count++
			}
		}
		n.keepPrefix(negated(), func(kept int, _ float64) bool { return kept < count })
	}
	if p.TopK > 0 {
		n.keepPrefix(negated(), func(kept int, _ float64) bool { return kept < p.TopK })
	}
	if p.TopP < 1 {
		n.keepPrefix(negated(), func(_ int, mass float64) bool {
			n.decide(mass, float64(p.TopP))
			return mass < float64(p.TopP)
		})
	}
	if p.TypicalP < 1 {
		var entropy float64
		probs := n.probs()
		score := make([]float64, len(probs))
		for _, q := range probs {
			entropy -= q * math.Log(q)
		}
		for i, q := range probs {
			score[i] = math.Abs(-math.Log(q) - entropy)
		}
		n.keepPrefix(score, func(_ int, mass float64) bool {
			n.decide(mass, float64(p.TypicalP))
			return mass < float64(p.TypicalP)
		})
	}
}

// Random parameters leave the same tokens with the same probabilities. Logits
// come from a coarse grid, so that there are ties.
func TestAgainstReference(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		vocab := rapid.IntRange(1, 60).Draw(t, "vocabulary")
		logits := make([]float32, vocab)
		for i := range logits {
			logits[i] = float32(rapid.IntRange(-32, 32).Draw(t, "logit×4")) / 4
			if rapid.IntRange(0, 15).Draw(t, "masked") == 0 {
				logits[i] = negInf
			}
		}
		token := rapid.Int32Range(0, int32(vocab-1))
		chance := func(name string, on, off float32) float32 {
			if rapid.Bool().Draw(t, name) {
				return on
			}
			return off
		}
		fraction := func(name string) float32 { return rapid.Float32Range(0.01, 1).Draw(t, name) }
		p := Default()
		p.Temperature = rapid.SampledFrom([]float32{0.25, 0.5, 1, 1, 2, 1.7}).Draw(t, "temperature")
		p.TopK = rapid.SampledFrom([]int{-1, 0, 1, 2, 5, 20, 100}).Draw(t, "top_k")
		p.TopP = chance("top_p on", fraction("top_p"), 1)
		p.MinP = chance("min_p on", fraction("min_p")/4, 0)
		p.TypicalP = chance("typical_p on", fraction("typical_p"), 1)
		p.RepetitionPenalty = rapid.SampledFrom([]float32{1, 1, 0.5, 2, 1.3}).Draw(t, "repetition_penalty")
		p.PresencePenalty = rapid.SampledFrom([]float32{0, -2, 0.5}).Draw(t, "presence_penalty")
		p.FrequencyPenalty = rapid.SampledFrom([]float32{0, 0.25, -1.5}).Draw(t, "frequency_penalty")
		p.LogitBias = rapid.MapOfN(token, rapid.Float32Range(-10, 10), 0, 3).Draw(t, "logit_bias")
		p.MinTokens = rapid.IntRange(0, 2).Draw(t, "min_tokens")
		p.StopIDs = rapid.SliceOfN(token, 0, 2).Draw(t, "stop_token_ids")
		h := NewHistory(rapid.SliceOfN(token, 0, 5).Draw(t, "prompt"))
		h.Add(rapid.SliceOfN(token, 0, 5).Draw(t, "output")...)
		r := &Row{Params: &p, Generated: 1, History: h, EOG: rapid.SliceOfN(token, 0, 2).Draw(t, "eog")}

		want := newNaive(logits, r)
		var s Sampler
		d, err := s.Dist(logits, r)
		if len(want.ids) == 0 {
			if err == nil {
				t.Fatal("no error, though every token is masked")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		want.truncate(&p)
		if want.margin < 1e-4 {
			return // float32 may decide otherwise
		}
		compared++
		got, probs := make([]float64, vocab), make([]float64, vocab)
		d.Probs(got)
		for i, q := range want.probs() {
			probs[want.ids[i]] = q
		}
		for i := range got {
			if (got[i] == 0) != (probs[i] == 0) || math.Abs(got[i]-probs[i]) > 5e-5 {
				t.Fatalf("token %d has probability %v, want %v (margin %v)", i, got[i], probs[i], want.margin)
			}
		}
	})
	if compared < 50 {
		t.Errorf("only %d comparisons", compared)
	}
}

// The selection is that of a sort, for keys and masses of any kind.
func TestPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(rapid.Uint32(), rapid.Uint32Range(0, 3), rapid.Uint32Range(1<<21-2, 1<<21+2))
		keys := rapid.SliceOfN(key, 1, 200).Draw(t, "keys")
		mass := make([]float64, len(keys))
		total := 0.0
		for i := range mass {
			mass[i] = float64(rapid.IntRange(0, 3).Draw(t, "mass")) // sums are exact
			total += mass[i]
		}
		if total == 0 {
			mass[0], total = 1, 1
		}
		if rapid.Bool().Draw(t, "count") {
			mass, total = nil, float64(len(keys))
		}
		target := rapid.Float64Range(1e-9, total).Draw(t, "target")

		order := make([]int, len(keys))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
		var want []int32
		for sum := 0.0; sum < target; {
			i := order[len(want)]
			want = append(want, int32(i))
			if mass == nil {
				sum++
			} else {
				sum += mass[i]
			}
		}
		slices.Sort(want)

		s := Sampler{keys: keys}
		got := s.keep(Dist{X: make([]float32, len(keys))}, s.prefix(mass, target)).IDs
		if !slices.Equal(got, want) {
			t.Fatalf("kept %v, want %v", got, want)
		}
	})
}

func TestFloat32Above(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(-200, 200).Draw(t, "x")
		f := float32Above(x)
		if below := math.Nextafter32(f, negInf); float64(f) < x || float64(below) >= x {
			t.Fatalf("the least float32 from %v is not %v", x, f)
		}
	})
}

func TestExp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(-700, 0).Draw(t, "x")
		if got, want := exp(x), math.Exp(x); math.Abs(got-want) > 1e-14*max(1, -x/20)*want {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
	})
	if exp(0) != 1 {
		t.Errorf("exp(0) = %v", exp(0))
	}
}

func TestDescending(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Float32().Draw(t, "a"), rapid.Float32().Draw(t, "b")
		if cmp.Compare(a, b) != -cmp.Compare(descending(a), descending(b)) {
			t.Fatalf("%v and %v have keys %#x and %#x", a, b, descending(a), descending(b))
		}
	})
	if !(descending(0) < descending(negInf) && descending(float32(math.MaxFloat32)) < descending(0)) {
		t.Error("infinity is out of order")
	}
}
