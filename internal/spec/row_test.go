package spec

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/foretoken/foretoken/internal/sample"
)

func TestRowWeight(t *testing.T) {
	dense := weights(3, 0, 2)
	sparse := Row{IDs: []int32{2, 5, 9}, W: []float64{1, 0, 4}, Total: 5}
	for _, c := range []struct {
		row   Row
		token int32
		want  float64
	}{
		{dense, 0, 3},
		{dense, 1, 0},
		{dense, 2, 2},
		{dense, 3, 0},
		{dense, -1, 0},
		{sparse, 2, 1},
		{sparse, 5, 0},
		{sparse, 9, 4},
		{sparse, 0, 0},
		{sparse, 4, 0},
		{sparse, 10, 0},
		{sparse, -1, 0},
		{Row{}, 0, 0},
	} {
		if got := c.row.Weight(c.token); got != c.want {
			t.Errorf("weight of token %d in %v %v is %v, expected %v", c.token, c.row.IDs, c.row.W, got, c.want)
		}
	}
}

// A row is what the sampler draws from, and outlives the sampler's next call.
func TestRowOfSampler(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s sample.Sampler
		params := sample.Default()
		params.Temperature = rapid.SampledFrom([]float32{0, 0.01, 1, 3}).Draw(t, "temperature")
		params.TopK = rapid.IntRange(0, 9).Draw(t, "top_k")
		params.TopP = rapid.SampledFrom([]float32{0.3, 0.9, 1}).Draw(t, "top_p")
		logits := rapid.SliceOfN(rapid.Float32Range(-90, 90), 1, 9).Draw(t, "logits")
		d, err := s.Dist(slices.Clone(logits), &sample.Row{Params: &params})
		if err != nil {
			t.Fatal(err)
		}
		want := make([]float64, len(logits))
		d.Probs(want)
		row := Row{ids: []int32{7}, W: []float64{7, 7, 7}} // used before
		row.Set(d)
		if _, err := s.Dist(make([]float32, 9), &sample.Row{Params: &params}); err != nil {
			t.Fatal(err)
		}
		got := make([]float64, len(logits))
		for i := range got {
			got[i] = row.Weight(int32(i)) / row.Total
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-14, 0)); diff != "" {
			t.Fatalf("probabilities (-sampler +row):\n%s", diff)
		}
	})
}

func TestPick(t *testing.T) {
	for _, c := range []struct {
		row  Row
		u    float64
		want int32
	}{
		{weights(0, 3, 0, 1), 1e-300, 1},
		{weights(0, 3, 0, 1), 0.7499, 1},
		{weights(0, 3, 0, 1), 0.75, 3},
		{weights(0, 3, 0, 1, 0), 1 - 0x1p-53, 3},
		{Row{W: []float64{0, 3, 0, 1, 0}, Total: 4.001}, 1 - 0x1p-53, 3}, // a total that was rounded up
		{Row{IDs: []int32{4, 8}, W: []float64{1, 1}, Total: 2}, 0.6, 8},
	} {
		if got := c.row.pick(c.u); got != c.want {
			t.Errorf("%v of %v is token %d, expected %d", c.u, c.row.W, got, c.want)
		}
	}
}

// Rows of real numbers, far apart and of no mass, with drafts that may be wrong
// about what they were drawn from: no rule commits an impossible token, and all
// that draws are asked is a probability.
func TestRulesCommitPossibleTokens(t *testing.T) {
	weight := rapid.OneOf(
		rapid.Just(0.0),
		rapid.Just(1.0),
		rapid.Float64Range(0, 1),
		rapid.SampledFrom([]float64{1e-304, 1e-200, 1e-17, 0x1p-53, 1e-8, 1 - 0x1p-53}),
	)
	row := rapid.Custom(func(t *rapid.T) Row {
		// The greatest weight is 1, as in a row of the sampler.
		w := append(rapid.SliceOfN(weight, 0, 4).Draw(t, "weights"), 1)
		i := rapid.IntRange(0, len(w)-1).Draw(t, "best")
		w[i], w[len(w)-1] = w[len(w)-1], w[i]
		r := weights(w...)
		if rapid.Bool().Draw(t, "sparse") {
			r.IDs = rapid.SliceOfNDistinct(rapid.Int32Range(0, 6), len(w), len(w), rapid.ID).Draw(t, "tokens")
			slices.Sort(r.IDs)
		}
		return r
	})
	rapid.Check(t, func(t *rapid.T) {
		d := new(Draft)
		chain := rapid.Bool().Draw(t, "chain")
		n := rapid.IntRange(0, 6).Draw(t, "nodes")
		if !chain {
			d.Parents = []int32{}
		}
		for i := range n {
			d.Tokens = append(d.Tokens, rapid.Int32Range(0, 6).Draw(t, "token"))
			if !chain {
				d.Parents = append(d.Parents, int32(rapid.IntRange(-1, i-1).Draw(t, "parent")))
			}
		}
		var p []Row
		same := rapid.Bool().Draw(t, "p is nearly q")
		for range n + 1 {
			q := row.Draw(t, "q")
			if rapid.IntRange(0, 4).Draw(t, "chosen") == 0 {
				q = Row{}
			}
			d.Q = append(d.Q, q)
			p = append(p, row.Draw(t, "p"))
			if same && q.Total > 0 {
				// But for one token, after whose rejection they are equal.
				var w []float64
				less := rapid.IntRange(0, len(q.W)).Draw(t, "less of")
				factor := rapid.Float64Range(0.1, 1).Draw(t, "factor")
				for i, x := range q.W {
					if i == less {
						x /= 2
					}
					w = append(w, x*factor)
				}
				p[len(p)-1] = weights(w...)
				p[len(p)-1].IDs = q.IDs
			}
		}
		if err := d.Check(7); err != nil {
			t.Fatal(err)
		}
		target := func(row int) (Row, error) { return p[row], nil }
		v := new(Verifier)
		draws := anyDraws{t}
		got, err := v.Rejection(d, target, draws)
		checkPossible(t, "rejection", d, p, got, err)
		if chain {
			got, err := v.Block(d, target, draws)
			checkPossible(t, "block", d, p, got, err)
		}
	})
}

// anyDraws draws what rapid likes, of what is possible.
type anyDraws struct{ t *rapid.T }

func (a anyDraws) Accept(_ int, num, den float64) bool {
	if !(num >= 0 && den >= 0) || math.IsInf(num, 0) || math.IsInf(den, 0) {
		a.t.Fatalf("accept with probability %v/%v", num, den)
	}
	if num > 0 && num < den {
		return rapid.Bool().Draw(a.t, "accepted")
	}
	return num > 0
}

func (a anyDraws) Pick(_ int, p Row) int32 {
	sum := 0.0
	for _, w := range p.W {
		if !(w >= 0) {
			a.t.Fatalf("pick of weights %v", p.W)
		}
		sum += w
	}
	if !(sum > 0) || sum != p.Total || math.IsInf(sum, 0) {
		a.t.Fatalf("pick of weights %v, sum %v, total %v", p.W, sum, p.Total)
	}
	return p.pick(rapid.SampledFrom([]float64{0x1p-53, 0.5, 1 - 0x1p-53}).Draw(a.t, "pick"))
}

func checkPossible(t *rapid.T, rule string, d *Draft, p []Row, v Verdict, err error) {
	if err != nil {
		t.Fatal(err)
	}
	row := 0
	for _, node := range v.Path {
		if d.Parent(int(node)) != row-1 {
			t.Fatalf("%s: path %v is none of parents %v", rule, v.Path, d.Parents)
		}
		if p[row].Weight(d.Tokens[node]) == 0 {
			t.Fatalf("%s: accepted token %d of probability 0", rule, d.Tokens[node])
		}
		row = int(node) + 1
	}
	if p[row].Weight(v.Next) == 0 {
		t.Fatalf("%s: next token %d of probability 0", rule, v.Next)
	}
}

// After a rejection of a token that q has more of, p and q may be equal but for
// rounding, which may reject once more and leave nothing: p is then kept.
func TestNothingLeftKeepsP(t *testing.T) {
	rejectIfAllowed := acceptOnly(func(num, den float64) bool { return num >= den })
	nothing := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(1, seed))
		q := weights(r.Float64(), r.Float64(), r.Float64(), r.Float64())
		p := weights(q.W[0]/2, q.W[1], q.W[2], q.W[3])
		d := &Draft{Tree: Tree{Tokens: []int32{0, 1}, Parents: []int32{-1, -1}}, Q: []Row{q}}
		v := new(Verifier)
		verdict, err := v.Rejection(d, func(int) (Row, error) { return p, nil }, rejectIfAllowed)
		if err != nil {
			t.Fatal(err)
		}
		if len(verdict.Path) == 0 && v.left[1].Total == 0 {
			nothing++
			if verdict.Next == 0 {
				t.Errorf("seed %d: next token 0, of which nothing was left", seed)
			}
		}
	}
	if nothing == 0 {
		t.Error("there was always something left")
	}
}

// acceptOnly accepts by a rule and picks the likeliest token, of rows with mass.
type acceptOnly func(num, den float64) bool

func (a acceptOnly) Accept(_ int, num, den float64) bool { return a(num, den) }

func (a acceptOnly) Pick(_ int, p Row) int32 {
	if best := slices.Max(p.W); best > 0 {
		return p.token(slices.Index(p.W, best))
	}
	panic("pick of weights that are all 0")
}
