package spec

import "github.com/foretoken/foretoken/internal/sample"

// Draws is where the randomness of a verification comes from. Coins is it in
// service; the proof of the rules has one that walks every outcome.
type Draws interface {
	// Accept reports an event of probability num/den, sure if that is 1 or
	// more and impossible if num is 0. It is asked once for a node.
	Accept(node int, num, den float64) bool
	// Pick draws a token of the distribution after a row. It is asked once for
	// a row.
	Pick(row int, p Row) int32
}

// Coins are the draws of one round of one sequence.
type Coins struct{ accept, pick sample.Noise }

// NewCoins returns the coins of the round whose first drafted token, or next
// token if there is no draft, is at the key's position. All noise of a round is
// keyed by that position, not by each token's own: block verification decides
// where to stop by tokens and coins beyond it, so the next round, which drafts
// for some of the same positions, must not see them again.
func NewCoins(round sample.Key) Coins {
	return Coins{round.Noise(sample.Accept), round.Noise(sample.Residual)}
}

// DraftNoise returns the noise with which a round's drafts of one depth, from
// 1, are drawn if they are to be verified by Rejection or Block. The key is
// that of NewCoins.
func DraftNoise(round sample.Key, depth int) sample.Noise {
	const purposes = 8 // bits that package sample numbers them with
	return round.Noise(sample.Draft + sample.Purpose(depth)<<purposes)
}

// Siblings appends to dst n different tokens of q, drawn one after another
// without replacement, or as many as q can give: the children of one row, for
// Rejection. Noise of the row's depth serves all rows of that depth, as only one
// of them is on the path. rest is working memory.
func Siblings(dst []int32, q Row, n int, noise sample.Noise, rest *Row) []int32 {
	for i := range n {
		if i > 0 {
			rest.without(q, dst[len(dst)-1])
			q = *rest
		}
		if q.Total == 0 {
			break
		}
		dst = append(dst, q.pick(noise.Uniform(int32(i))))
	}
	return dst
}

// Accept implements Draws.
func (c Coins) Accept(node int, num, den float64) bool {
	return c.accept.Uniform(int32(node))*den < num
}

// Pick implements Draws, by inversion.
func (c Coins) Pick(row int, p Row) int32 { return p.pick(c.pick.Uniform(int32(row))) }
