package sample

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawRow draws a row of logits of several groups, with ties and masked tokens.
func drawRow(t *rapid.T) Dist {
	noise := Key{Seed: rapid.Uint64().Draw(t, "seed")}.Noise(Draft)
	x := make([]float32, rapid.IntRange(1, 5000).Draw(t, "vocabulary"))
	spread := rapid.SampledFrom([]float64{0, 0.5, 3, 30}).Draw(t, "spread")
	step := rapid.SampledFrom([]float64{1e-6, 1}).Draw(t, "step") // of 1: ties
	masked := rapid.SampledFrom([]float64{0, 0.3, 0.99}).Draw(t, "masked")
	for i := range x {
		x[i] = float32(step * float64(int(noise.Gumbel(int32(i))*spread/step)))
		if noise.Uniform(int32(len(x)+i)) < masked {
			x[i] = negInf
		}
	}
	x[rapid.IntRange(0, len(x)-1).Draw(t, "best")] = 40
	return Dist{X: x, Max: slices.Max(x)}
}

// The first k of a sorted row.
func TestTopKOfRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawRow(t)
		k := min(rapid.SampledFrom([]int{1, 2, 5, 15, 100}).Draw(t, "k"), len(d.X))
		order := make([]int32, len(d.X))
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(d.X[b], d.X[a]) })
		want := slices.Sorted(slices.Values(order[:k]))
		var s Sampler
		if got := s.topK(d, k); !slices.Equal(got.IDs, want) || got.Max != d.Max {
			t.Fatalf("kept %v, want %v", got.IDs, want)
		}
	})
}

// A nucleus found among few tokens is the one that a pass over all finds.
func TestTopPOfRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawRow(t)
		p := rapid.OneOf(rapid.Float64Range(0.001, 0.9999), rapid.SampledFrom([]float64{0.5, 0.25, 0.95, 0.9999999})).Draw(t, "p")
		var whole, s Sampler
		whole.keysByLogit(d)
		total := whole.masses(d)
		want := whole.keep(d, whole.prefix(whole.mass, p*total))
		if got := s.topP(d, p); !slices.Equal(got.IDs, want.IDs) || !slices.Equal(got.X, want.X) || got.Max != want.Max {
			t.Fatalf("kept %v, want %v", got.IDs, want.IDs)
		}
	})
}

// Few tokens tell the nucleus, unless it ends where rounding decides or holds
// much of the row.
func TestNucleus(t *testing.T) {
	for _, test := range []struct {
		name  string
		equal int // tokens at 0, the others at -60
		p     float64
		want  int
		found bool
	}{
		{"one token", 1, 0.9, 1, true},
		{"the middle of a token", 4, 0.6, 3, true},
		{"the end of a token", 4, 0.5, 0, false},
		{"more than the peaks show", 300, 0.501, 151, true},
		{"a flat row", 2000, 0.9, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := Dist{X: slices.Repeat([]float32{-60}, 8192)}
			for i := range test.equal {
				d.X[i*8191/test.equal] = 0
			}
			var s Sampler
			got, found := s.nucleus(d, test.p)
			if found != test.found || len(got.IDs) != test.want {
				t.Errorf("%d tokens, %v; want %d, %v", len(got.IDs), found, test.want, test.found)
			}
		})
	}
}
