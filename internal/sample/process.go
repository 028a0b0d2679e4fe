package sample

import (
	"fmt"
	"math"

	"github.com/foretoken/foretoken/internal/kernel"
)

// The processors that change logits before any choice is made, greedy or not.
// They touch few tokens and work in place.

var negInf = float32(math.Inf(-1))

// scan returns the index of the greatest logit, the lowest on ties. Errors: a
// NaN or +Inf (the model or its weights are broken), or every logit -Inf.
func scan(x []float32) (int, error) {
	best := kernel.Argmax(x)
	switch {
	case best < 0 || x[best] == negInf:
		return 0, errNoToken
	case x[best] != x[best]:
		return 0, fmt.Errorf("logit of token %d is NaN", best)
	case x[best] > math.MaxFloat32:
		return 0, fmt.Errorf("logit of token %d is +Inf", best)
	}
	return best, nil
}

// padded reports whether some logits belong to no token: an embedding may have
// more rows than the tokenizer has tokens.
func (r *Row) padded(x []float32) bool { return r.Vocab > 0 && r.Vocab < len(x) }

// restrict masks padding and what the grammar and min_tokens forbid.
func (r *Row) restrict(x []float32) {
	if r.padded(x) {
		mask(x[r.Vocab:])
	}
	if r.Allowed != nil {
		n := min(len(x), 64*len(r.Allowed))
		kernel.Mask(x[:n], r.Allowed)
		mask(x[n:])
	}
	if r.Generated < r.Params.MinTokens {
		for _, ids := range [...][]int32{r.EOG, r.Params.StopIDs} {
			for _, id := range ids {
				if int(id) < len(x) {
					x[id] = negInf
				}
			}
		}
	}
}

func mask(x []float32) {
	for i := range x {
		x[i] = negInf
	}
}

// penalize applies the penalties of tokens seen: repetition first, which pulls
// a logit towards less likely whatever its sign (Keskar et al. 2019, 4.1, in
// the form for negative logits), then frequency and presence.
func (p *Params) penalize(x []float32, h *History) {
	for _, e := range h.seen {
		if int(e.token) >= len(x) || e.output == 0 && !e.prompt {
			continue
		}
		v := x[e.token]
		if v > 0 {
			v /= p.RepetitionPenalty
		} else {
			v *= p.RepetitionPenalty
		}
		if e.output > 0 {
			v -= float32(p.FrequencyPenalty * float32(e.output))
			v -= p.PresencePenalty
		}
		x[e.token] = v
	}
}
