package sample

import (
	"errors"
	"fmt"
	"math"

	"github.com/foretoken/foretoken/internal/kernel"
)

var errNoToken = errors.New("no token is possible: every one is masked")

// A Row is what a draw needs besides its logits.
type Row struct {
	Params    *Params
	Choice    uint32
	Position  int      // of the token to be drawn, in the sequence
	Generated int      // output tokens before it
	History   *History // tokens before it; may be nil unless Params.Penalized
	EOG       []int32  // the model's end-of-generation tokens
	Vocab     int      // tokens from here on are padding, never drawn; 0: there is none
	Allowed   []uint64 // the grammar's mask: token t is bit t%64 of word t/64, none beyond; nil: all
}

// Key returns the key of the draw.
func (r *Row) Key() Key { return Key{r.Params.Seed, r.Choice, r.Position} }

// A Result is a drawn token. LogProb and Top are set if Params.LogProbs is not
// negative.
type Result struct {
	Token   int32
	LogProb float64        // natural logarithm
	Top     []TokenLogProb // best first, valid until the sampler's next call
}

// A Sampler holds the working memory of draws, a few times the vocabulary. It
// may be used for any rows in any order, by one goroutine at a time.
type Sampler struct {
	raw   []float32 // the logits as they came, kept for LogProbs
	ids   []int32   // candidates, ascending
	x     []float32 // their logits / temperature
	keys  []uint32  // their sort keys
	mass  []float64 // their probabilities, relative to the greatest
	tied  []int32   // candidates at the cut that is searched for
	peaks []float32 // the greatest of each group of logits
	set   []uint64  // a bit for each token
	top   []TokenLogProb
	reply Dist // what LogProbs reports on
}

// Sample draws the token of a row. logits is overwritten. Errors concern this
// row alone: logits that are NaN or +Inf, or no token left to draw.
func (s *Sampler) Sample(logits []float32, r *Row) (Result, error) {
	d, err := s.Dist(logits, r)
	if err != nil {
		return Result{}, err
	}
	res := Result{Token: d.Draw(r.Key().Noise(Token))}
	if n := r.Params.LogProbs; n >= 0 {
		res.LogProb, res.Top = s.LogProbs(res.Token, n)
	}
	return res, nil
}

// Dist returns the distribution that the token of a row is drawn from. It runs
// the processors in vLLM's order: mask and min_tokens, bias, penalties,
// temperature, min-p, top-k, top-p, and then typical-p, which vLLM lacks, at the
// end as in Hugging Face's warpers. Each truncation sees the renormalised
// distribution that the one before it left. logits is overwritten and the
// result refers to it and to s: it is valid until either is used again. Errors
// are those of Sample.
func (s *Sampler) Dist(logits []float32, r *Row) (Dist, error) {
	p := r.Params
	best, err := scan(logits)
	if err != nil {
		return Dist{}, err
	}
	if p.LogProbs >= 0 && !p.ProcessedLogProbs {
		s.raw = append(s.raw[:0], logits...)
		s.reply = Dist{X: s.raw, Max: s.raw[best]}
	}

	if r.Allowed != nil || r.padded(logits) || r.Generated < p.MinTokens || len(p.LogitBias) > 0 || p.Penalized() {
		r.restrict(logits)
		for id, b := range p.LogitBias {
			logits[id] += b
		}
		if p.Penalized() {
			p.penalize(logits, r.History)
		}
		if best, err = scan(logits); err != nil {
			return Dist{}, fmt.Errorf("after mask, bias and penalties: %w", err)
		}
	}

	if p.Greedy() {
		if p.ProcessedLogProbs { // as vLLM: of the logits that the maximum is taken of
			s.reply = Dist{X: logits, Max: logits[best]}
		}
		s.ids, s.x = append(s.ids[:0], int32(best)), append(s.x[:0], 0)
		return Dist{IDs: s.ids, X: s.x}, nil
	}

	if p.Temperature != 1 {
		kernel.Divide(logits, p.Temperature)
	}
	d := Dist{X: logits, Max: logits[best]}
	if math.IsInf(float64(d.Max), 0) {
		return Dist{}, fmt.Errorf("logit of token %d divided by temperature %v is %v", best, p.Temperature, d.Max)
	}
	d = s.truncate(d, p)
	if p.ProcessedLogProbs {
		s.reply = d
	}
	return d, nil
}

// A Dist is a distribution over tokens: softmax of X.
type Dist struct {
	IDs []int32   // the tokens of X, ascending; nil: 0, 1, 2, ...
	X   []float32 // logits; -Inf has no probability
	Max float32   // the greatest of X
}

// Draw returns the token with the greatest logit + Gumbel noise: a sample of
// the distribution (Gumbel-max). With the same noise, distributions that
// differ little mostly give the same token.
func (d Dist) Draw(n Noise) int32 { return d.token(n.race(d.IDs, d.X)) }

func (d Dist) token(i int) int32 {
	if d.IDs == nil {
		return int32(i)
	}
	return d.IDs[i]
}

// Weights writes e^(X-Max) of each entry of X to dst, and returns their sum in
// order: probabilities before they are normalised.
func (d Dist) Weights(dst []float64) (total float64) {
	for i, v := range d.X {
		dst[i] = 0
		if u := float64(v) - float64(d.Max); u > faint {
			dst[i] = exp(u)
			total += dst[i]
		}
	}
	return total
}

// Probs writes the probability of every token of the vocabulary to dst.
func (d Dist) Probs(dst []float64) {
	clear(dst)
	var total float64
	for i, v := range d.X {
		if u := float64(v) - float64(d.Max); u > faint {
			w := exp(u)
			dst[d.token(i)] = w
			total += w
		}
	}
	for i := range dst {
		dst[i] /= total
	}
}
