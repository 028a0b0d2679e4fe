package draft

import "github.com/foretoken/foretoken/internal/spec"

// Lookup drafts what followed an earlier occurrence of the end of the text
// (spec.Lookup): it costs nothing, and is right where a text quotes itself.
type Lookup struct {
	stateless
	least, most int
}

// NewLookup returns a Lookup of n-grams of least to most tokens.
func NewLookup(least, most int) *Lookup {
	return &Lookup{least: max(least, 1), most: max(most, least, 1)}
}

// Propose implements Drafter. The draft is a chain.
//
// How likely a token is depends on how much of the text before it matched: of m
// tokens, those that were drafted included, the confidence is m/(m+1), as if a
// match had gone on m times and then ended. It is no more than an order, and
// what acceptance is learned by.
func (l *Lookup) Propose(asks []Ask, _ func(depth int) bool) error {
	for _, ask := range asks {
		d := ask.Draft
		d.ResetChain()
		var matched int
		d.Tokens, matched = spec.Lookup(d.Tokens, ask.Tokens, l.least, l.most, min(ask.Depth, ask.Nodes))
		for i := range d.Tokens {
			m := float64(matched + i)
			d.Confidence = append(d.Confidence, m/(m+1))
		}
	}
	return nil
}

// stateless are the methods of a drafter that keeps nothing of sequences.
type stateless struct{}

// Observe implements Drafter.
func (stateless) Observe(Target, []Observed) error { return nil }

// Ended implements Drafter.
func (stateless) Ended(*Sequence) {}

// Forget implements Drafter.
func (stateless) Forget(uint64) {}
