package sample

import (
	"fmt"
	"math"
)

// The processors that change logits before any choice is made, greedy or not.
// They touch few tokens and work in place.

var negInf = float32(math.Inf(-1))

// scan returns the index of the greatest logit, the lowest on ties. Errors: a
// NaN or +Inf (the model or its weights are broken), or every logit -Inf.
func scan(x []float32) (int, error) {
	best, at := negInf, -1
	for i, v := range x {
		if v > best {
			best, at = v, i
		} else if v != v {
			return 0, fmt.Errorf("logit of token %d is NaN", i)
		}
	}
	if at < 0 {
		return 0, errNoToken
	}
	if best > math.MaxFloat32 {
		return 0, fmt.Errorf("logit of token %d is +Inf", at)
	}
	return at, nil
}

// padded reports whether some logits belong to no token: an embedding may have
// more rows than the tokenizer has tokens.
func (r *Row) padded(x []float32) bool { return r.Vocab > 0 && r.Vocab < len(x) }

// restrict masks padding and what the grammar and min_tokens forbid.
func (r *Row) restrict(x []float32) {
	if r.padded(x) {
		for i := r.Vocab; i < len(x); i++ {
			x[i] = negInf
		}
	}
	if r.Allowed != nil {
		for from := 0; from < len(x); from += 64 {
			var allowed uint64
			if w := from / 64; w < len(r.Allowed) {
				allowed = r.Allowed[w]
			}
			if allowed == math.MaxUint64 {
				continue
			}
			for i := range x[from:min(from+64, len(x))] {
				if allowed>>i&1 == 0 {
					x[from+i] = negInf
				}
			}
		}
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
