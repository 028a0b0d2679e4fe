package draft

import (
	"math"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/spec"
)

// follow makes top the tokens to be drafted after a node, at a depth from 1, best
// first, with the logarithms of their confidences, and returns the peak of the
// distribution. There are none where the logits have none that is possible, or
// are not finite: the draft ends there, and the target will tell.
func (m *Model) follow(w *work, top *[]spec.Candidate, node, depth int, logits []float32) (peak float64) {
	*top = (*top)[:0]
	want := m.shape.wanted(w, node)
	x := m.o.Vocab.logits(m.scatter, logits)
	if len(x) > 0 && &x[0] != &logits[0] {
		m.scatter = x
	}
	peak = peakOf(x)

	row := w.behind(depth, &m.params)
	drawn := w.Drawn && m.shape.drawn()
	ranked := want > 1 && !drawn
	greedy := m.params.Greedy()
	if ranked {
		m.params.LogProbs, m.params.ProcessedLogProbs = 0, true
		if greedy { // ranks are of what the maximum is taken of
			m.params.Temperature, m.params.TopK, m.params.TopP, m.params.MinP, m.params.TypicalP = 1, 0, 1, 0, 1
		}
	}
	if m.params.Penalized() && row.History != nil {
		m.pathTo(w, node)
		row.History.Add(m.path...)
		defer row.History.Remove(m.path...)
	}
	d, err := m.sampler.Dist(x, &row)
	if err != nil {
		return peak
	}
	switch {
	case drawn:
		q := distribution(w.Draft, node+1)
		q.Set(d)
		m.siblings = spec.Siblings(m.siblings[:0], *q, want, spec.DraftNoise(w.Row.Key(), depth), &m.rest)
		confidence := peak // of the distribution and the sibling's number, not of the token
		for _, token := range m.siblings {
			*top = append(*top, spec.Candidate{Token: token, LogProb: logOf(confidence)})
			confidence *= 1 - peak
		}
	case ranked:
		coupled := int32(-1)
		if m.shape.drawn() && !greedy {
			coupled = d.Draw(row.Key().Noise(sample.Token))
			*top = append(*top, spec.Candidate{Token: coupled, LogProb: logOf(peak)})
		}
		_, ranks := m.sampler.LogProbs(0, want)
		for _, t := range ranks {
			if t.Token != coupled && len(*top) < want && !math.IsInf(t.LogProb, -1) {
				*top = append(*top, spec.Candidate{Token: t.Token, LogProb: float32(t.LogProb)})
			}
		}
	default:
		*top = append(*top, spec.Candidate{Token: d.Draw(row.Key().Noise(sample.Token)), LogProb: logOf(peak)})
	}
	return peak
}

// peakOf is the probability of the likeliest token. The sum of exponentials is
// rounded, and may be less than 1.
func peakOf(logits []float32) float64 {
	return min(1, 1/kernel.ExpSum(logits, logits[kernel.Argmax(logits)]))
}

func logOf(p float64) float32 { return float32(math.Log(p)) }

// pathTo makes m.path the tokens from the anchor's child down to a node.
func (m *Model) pathTo(w *work, node int) {
	m.path = m.path[:0]
	for node >= 0 {
		token, parent := m.shape.node(w, node)
		m.path = append(m.path, token)
		node = parent
	}
}

// distribution returns the place of what a row's children are drawn from.
func distribution(d *spec.Draft, row int) *spec.Row {
	for len(d.Q) <= row {
		if len(d.Q) < cap(d.Q) {
			d.Q = d.Q[:len(d.Q)+1] // with the memory of the draft before
		} else {
			d.Q = append(d.Q, spec.Row{})
		}
		q := &d.Q[len(d.Q)-1]
		q.IDs, q.W, q.Total = nil, q.W[:0], 0
	}
	return &d.Q[row]
}

// add appends a node with what is known of it.
func add(d *spec.Draft, c spec.Candidate, parent int, peak float64) {
	if d.Parents == nil {
		d.Tokens = append(d.Tokens, c.Token)
	} else {
		d.Add(c.Token, parent)
	}
	d.Confidence = append(d.Confidence, math.Exp(min(float64(c.LogProb), 0)))
	d.Peak = append(d.Peak, peak)
}
