package draft

import (
	"fmt"
	"time"

	"github.com/foretoken/foretoken/internal/sample"
)

// SimulatedOptions say what drafts are to be like.
type SimulatedOptions struct {
	// Acceptance is how likely a token of each position is accepted if those
	// before it are. The last is that of all positions behind it, too.
	Acceptance []float64
	Cost       float64                           // of a pass, in plain decoding steps of the sequences that it drafts for
	Step       func(sequences int) time.Duration // what such a step takes; asked where Cost is not 0
}

// Simulated drafts tokens of no meaning that are accepted as often as it is
// told, to measure what speculation gains without a draft model: what comes out
// is not the model's text.
type Simulated struct {
	stateless
	o    SimulatedOptions
	wait func(time.Duration)
}

// NewSimulated returns a Simulated, or an error if a number is out of its range.
func NewSimulated(o SimulatedOptions) (*Simulated, error) {
	if len(o.Acceptance) == 0 {
		return nil, fmt.Errorf("simulated acceptance has no values, expected one for each position")
	}
	for i, a := range o.Acceptance {
		if !(a >= 0 && a <= 1) {
			return nil, fmt.Errorf("simulated acceptance of position %d is %v, expected 0 to 1", i+1, a)
		}
	}
	if !(o.Cost >= 0 && o.Cost <= maxSimulatedCost) {
		return nil, fmt.Errorf("simulated cost of a drafting pass is %v, expected 0 to %v plain steps", o.Cost, maxSimulatedCost)
	}
	return &Simulated{o: o, wait: spin}, nil
}

const maxSimulatedCost = 100.0

// spin waits as a pass that computes would: a sleep takes a millisecond and more,
// and the processor is given to others.
func spin(d time.Duration) {
	for begin := time.Now(); time.Since(begin) < d; {
	}
}

// Propose implements Drafter: chains of the anchor's own token, all depths in one
// pass, as block drafters make them, which waits for as long as it is to cost.
func (s *Simulated) Propose(asks []Ask, more func(depth int) bool) error {
	if more != nil && !more(1) {
		for _, ask := range asks {
			ask.Draft.ResetChain()
		}
		return nil
	}
	for _, ask := range asks {
		d := ask.Draft
		d.ResetChain()
		for depth := 1; depth <= min(ask.Depth, ask.Nodes); depth++ {
			d.Tokens = append(d.Tokens, ask.Tokens[len(ask.Tokens)-1])
			d.Confidence = append(d.Confidence, s.acceptance(depth))
		}
	}
	if s.o.Cost > 0 {
		s.wait(time.Duration(s.o.Cost * float64(s.o.Step(len(asks)))))
	}
	return nil
}

// acceptance is that of a depth, from 1.
func (s *Simulated) acceptance(depth int) float64 {
	return s.o.Acceptance[min(depth, len(s.o.Acceptance))-1]
}

// Accepted returns how many of n drafted tokens are accepted in the round of a
// key: one after another, by coins of the key.
func (s *Simulated) Accepted(round sample.Key, n int) int {
	coins := round.Noise(sample.Accept)
	for depth := 1; depth <= n; depth++ {
		if !(coins.Uniform(int32(depth)) < s.acceptance(depth)) {
			return depth - 1
		}
	}
	return max(n, 0)
}
