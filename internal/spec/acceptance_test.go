package spec

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// iid is a toy whose rows do not depend on the history.
func iid(p, q Row) toy {
	return toy{func([]int32) Row { return p }, func([]int32) Row { return q }}
}

// acceptance is the probability that a token drawn from q is accepted against
// p, α = Σ min(p, q) (Leviathan et al. 2211.17192, theorem 3.5).
func acceptance(p, q Row) (alpha float64) {
	for i, w := range q.W {
		alpha += min(w/q.Total, p.Weight(q.token(i))/p.Total)
	}
	return alpha
}

// chainTokens is how many tokens a round with a chain of n drafts commits in
// expectation, the bonus included, if each is accepted with probability alpha
// independently: (1 - α^(n+1)) / (1 - α) (Leviathan et al., equation 1).
func chainTokens(alpha float64, n int) float64 {
	if alpha == 1 {
		return float64(n + 1)
	}
	return (1 - math.Pow(alpha, float64(n+1))) / (1 - alpha)
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
			if want := chainTokens(acceptance(c.p, c.q), n); math.Abs(got-want) > 1e-12 {
				t.Errorf("p %v, q %v, %d drafts: %v tokens, formula %v", c.p.W, c.q.W, n, got, want)
			}
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
