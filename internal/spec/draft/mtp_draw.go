package draft

import (
	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/spec"
)

// mtpDraws holds the working memory of draws.
type mtpDraws struct {
	sampler sample.Sampler
	params  sample.Params
	token   []int32
	rest    spec.Row
}

// wants says whether the draft, a chain, can have a token of a depth: nothing
// comes behind one that ends the text.
func (a *Ask) wants(depth int) bool {
	n := a.Draft.Len()
	return n == depth-1 && depth <= min(a.Depth, a.Nodes) && (n == 0 || !a.Row.Params.Ends(a.Draft.Tokens[n-1], a.Row.EOG))
}

// extend adds a token to a draft, a chain, of logits, which are overwritten. Where
// these are not finite, or no token is possible, the draft stays as it is.
func (m *mtpDraws) extend(a *Ask, logits []float32) {
	peak := peakOf(logits)
	d := a.Draft
	drafted := d.Len()
	row := a.behind(drafted+1, &m.params)
	if m.params.Penalized() && row.History != nil {
		row.History.Add(d.Tokens...)
		defer row.History.Remove(d.Tokens...)
	}
	dist, err := m.sampler.Dist(logits, &row)
	if err != nil {
		return
	}
	if a.Drawn {
		q := distribution(d, drafted)
		q.Set(dist)
		m.token = spec.Siblings(m.token[:0], *q, 1, spec.DraftNoise(a.Row.Key(), drafted+1), &m.rest)
	} else {
		m.token = append(m.token[:0], dist.Draw(row.Key().Noise(sample.Token)))
	}
	d.Tokens = append(d.Tokens, m.token...)
	d.Confidence = append(d.Confidence, peak)
	d.Peak = append(d.Peak, peak)
}
