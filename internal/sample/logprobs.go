package sample

import (
	"math"
	"slices"
)

// A TokenLogProb is a token with the natural logarithm of its probability.
type TokenLogProb struct {
	Token   int32
	LogProb float64
}

// LogProbs returns the log-probability of token and of the n most likely
// tokens, best first, the lower id on ties. They are of the row of the last
// Dist or Sample, whose Params.LogProbs must not have been negative: of the
// model's own distribution, or with ProcessedLogProbs of the one that is drawn
// from. top is valid until the next call.
func (s *Sampler) LogProbs(token int32, n int) (logProb float64, top []TokenLogProb) {
	d := s.reply
	logProb = math.Inf(-1)
	norm := d.logSum()
	s.top = d.best(s.top[:0], n)
	for i := range s.top {
		s.top[i].LogProb -= norm
	}
	if i, ok := d.find(token); ok {
		logProb = float64(d.X[i]) - norm
	}
	return logProb, s.top
}

// LogProbs is Sampler.LogProbs for a row of logits that nothing is drawn from,
// such as that of a prompt token. top is overwritten and returned, with n
// entries or as many as the vocabulary has. Errors: a NaN or +Inf, or every
// logit -Inf.
func LogProbs(logits []float32, token int32, n int, top []TokenLogProb) (float64, []TokenLogProb, error) {
	best, err := scan(logits)
	if err != nil {
		return 0, nil, err
	}
	s := Sampler{top: top, reply: Dist{X: logits, Max: logits[best]}}
	logProb, top := s.LogProbs(token, n)
	return logProb, top, nil
}

// logSum is the logarithm of the sum of exp(X), in float64 and in the order of
// the tokens.
func (d Dist) logSum() float64 {
	var sum float64
	for _, v := range d.X {
		if u := float64(v) - float64(d.Max); u > faint {
			sum += exp(u)
		}
	}
	return float64(d.Max) + math.Log(sum)
}

// find returns the index of a token in X.
func (d Dist) find(token int32) (int, bool) {
	if d.IDs == nil {
		return int(token), token >= 0 && int(token) < len(d.X)
	}
	return slices.BinarySearch(d.IDs, token)
}

// best appends the n tokens with the greatest X to top, with X as LogProb.
func (d Dist) best(top []TokenLogProb, n int) []TokenLogProb {
	n = min(n, len(d.X))
	if n == 0 {
		return top
	}
	// A heap whose root is the worst of the best so far; most tokens are
	// compared with it and no more.
	for i, v := range d.X {
		t := TokenLogProb{d.token(i), float64(v)}
		switch {
		case len(top) < n:
			top = append(top, t)
			up(top)
		case t.LogProb > top[0].LogProb: // an equal one has a higher id
			top[0] = t
			down(top)
		}
	}
	for end := len(top) - 1; end > 0; end-- {
		top[0], top[end] = top[end], top[0]
		down(top[:end])
	}
	return top
}

// worse orders from the least likely, the higher id first.
func worse(a, b TokenLogProb) bool {
	return a.LogProb < b.LogProb || a.LogProb == b.LogProb && a.Token > b.Token
}

// up restores the heap after an append.
func up(h []TokenLogProb) {
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !worse(h[i], h[parent]) {
			return
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

// down restores the heap after its root was replaced.
func down(h []TokenLogProb) {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && worse(h[child+1], h[child]) {
			child++
		}
		if !worse(h[child], h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
