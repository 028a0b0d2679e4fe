package spec

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// iid is a toy whose rows do not depend on the history.
func iid(p, q Row) toy {
	return toy{func([]int32) Row { return p }, func([]int32) Row { return q }}
}

// A round of a chain commits (1 - α^(n+1)) / (1 - α) tokens, exactly.
func TestChainTokensIsWhatARoundCommits(t *testing.T) {
	for _, c := range []struct{ p, q Row }{
		{weights(7, 2, 1), weights(5, 3, 2)},
		{weights(1, 1), weights(1, 1)}, // α = 1
		{weights(1, 0), weights(0, 1)}, // α = 0
		{weights(3, 1, 0, 4), weights(1, 1, 1, 1)},
	} {
		for n := range 4 {
			m := iid(c.p, c.q)
			got, _ := expectedTokens(t, rules["rejection of a chain"](m), n).Float64()
			if want := ChainTokens(Acceptance(c.p, c.q), n); math.Abs(got-want) > 1e-12 {
				t.Errorf("p %v, q %v, %d drafts: %v tokens, formula %v", c.p.W, c.q.W, n, got, want)
			}
		}
	}
}

func TestSpeedup(t *testing.T) {
	for _, c := range []struct {
		alpha float64
		n     int
		c     float64
		want  float64
	}{
		{0.8, 7, 0, 4.1611392},
		{0.8, 7, 0.05, 4.1611392 / 1.35},
		{0.5, 0, 0.1, 1},
		{1, 3, 0.25, 4 / 1.75},
	} {
		if got := Speedup(c.alpha, c.n, c.c); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("speedup of α = %v, %d drafts, c = %v is %v, expected %v", c.alpha, c.n, c.c, got, c.want)
		}
	}
}

// Block verification commits as many tokens as token-wise rejection, or more.
func TestBlockCommitsNoFewerTokens(t *testing.T) {
	more := false
	rapid.Check(t, func(t *rapid.T) {
		m := randomToy(rapid.Uint64().Draw(t, "seed"), 3, 9)
		n := rapid.IntRange(0, 3).Draw(t, "drafts")
		block := expectedTokens(t, rules["block"](m), n)
		tokenwise := expectedTokens(t, rules["rejection of a chain"](m), n)
		if block.Cmp(tokenwise) < 0 {
			t.Fatalf("block commits %v tokens, rejection %v", block, tokenwise)
		}
		more = more || block.Cmp(tokenwise) > 0
	})
	if !more {
		t.Error("block verification never commits more")
	}
}

// A deterministic tree whose confidences are the target's own probabilities
// commits as many tokens as Expected says.
func TestExpectedIsWhatATreeCommits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := randomToy(rapid.Uint64().Draw(t, "seed"), 3, 9)
		d := distinctTree(m, rapid.IntRange(0, 3).Draw(t, "depth"))
		d.Confidence = make([]float64, d.Len())
		for i, x := range d.Tokens {
			p := m.p(history(nil, d, d.Parent(i)+1))
			d.Confidence[i] = p.Weight(x) / p.Total
		}
		got := expectedTokens(t, func(b *branches, text []int32, _ int) []int32 {
			v, err := new(Verifier).Rejection(d, m.rows(text, d), b)
			return verify(d, v, err)
		}, 0)
		want := exact(d.Expected())
		if diff, _ := new(big.Rat).Sub(got, want).Float64(); math.Abs(diff) > 1e-12 {
			t.Fatalf("tree commits %v tokens, expected %v", got, want)
		}
	})
}

// distinctTree has the two likeliest children of every node.
func distinctTree(m toy, depth int) *Draft {
	d := new(Draft)
	d.Reset()
	level := []int{0}
	for range depth {
		var below []int
		for _, row := range level {
			best := ranked(m.q(history(nil, d, row)))
			for _, x := range best[:min(2, len(best))] {
				below = append(below, d.Add(x, row-1)+1)
			}
		}
		level = below
	}
	return d
}
