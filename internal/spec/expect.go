package spec

import "math"

// Acceptance is the probability that a token drawn from q is accepted against
// p, α = Σ min(p, q) (Leviathan et al. 2211.17192, theorem 3.5).
func Acceptance(p, q Row) (alpha float64) {
	for i, w := range q.W {
		alpha += min(w/q.Total, p.Weight(q.token(i))/p.Total)
	}
	return alpha
}

// ChainTokens is how many tokens a round with a chain of n drafts commits in
// expectation, the bonus included, if each is accepted with probability alpha
// independently: (1 - α^(n+1)) / (1 - α) (Leviathan et al., equation 1).
func ChainTokens(alpha float64, n int) float64 {
	if alpha == 1 {
		return float64(n + 1)
	}
	return (1 - math.Pow(alpha, float64(n+1))) / (1 - alpha)
}

// Speedup is that of such rounds over plain decoding, if one draft token costs
// the share c of a target step and verification costs a step (Leviathan et al.,
// theorem 3.8).
func Speedup(alpha float64, n int, c float64) float64 {
	return ChainTokens(alpha, n) / (float64(n)*c + 1)
}

// Expected is how many tokens a draft commits in expectation, the bonus included,
// if its confidences are right: one and the probability of every node's path.
func (d *Draft) Expected() float64 {
	reach := make([]float64, d.Len())
	total := 1.0
	for i, c := range d.Confidence {
		if p := d.Parent(i); p >= 0 {
			c *= reach[p]
		}
		reach[i] = c
		total += c
	}
	return total
}
