package adapt

import (
	"slices"
	"time"
)

// Stats count what was drafted, and what it gained.
type Stats struct {
	Arms []ArmStats // in the order of Config
	// Predicted and Measured are the speed-up over decoding without drafts of the
	// same sequences, by the table of step times: of what was expected when drafts
	// were admitted, and of the tokens and times that came. 0: no step yet.
	Predicted, Measured float64
	Drafting            float64 // share of the time that drafters took
}

// ArmStats are those of a drafter.
type ArmStats struct {
	Name            string
	Rounds          uint64   // of a sequence that verified a token at least
	Drafts, Accepts []uint64 // tokens that were verified and accepted, by depth from 1 at [0]
	Tokens          uint64   // committed in rounds, the bonus included
	Drafting        time.Duration
}

// Tau is the mean number of tokens that a round committed.
func (s *ArmStats) Tau() float64 {
	if s.Rounds == 0 {
		return 0
	}
	return float64(s.Tokens) / float64(s.Rounds)
}

// gains are sums over steps without prompt rows, in seconds.
type gains struct {
	took, drafting float64
	plain          float64 // of decoding the tokens that were committed
	expected       float64 // of a step, by the table, with drafting
	expectedPlain  float64 // of decoding the tokens that were expected
}

// Stats returns what was counted. It is a copy.
func (c *Controller) Stats() Stats {
	s := Stats{Arms: slices.Clone(c.stats)}
	for i := range s.Arms {
		a := &s.Arms[i]
		a.Drafts, a.Accepts = slices.Clone(a.Drafts), slices.Clone(a.Accepts)
	}
	s.Predicted, s.Measured = c.Speedup()
	if g := c.gains; g.took > 0 {
		s.Drafting = g.drafting / g.took
	}
	return s
}

// Speedup returns Predicted and Measured.
func (c *Controller) Speedup() (predicted, measured float64) {
	if g := c.gains; g.took > 0 {
		return g.expectedPlain / g.expected, g.plain / g.took
	}
	return 0, 0
}

// count counts a round: nodes of the draft at each depth are in c.nodes.
func (s *ArmStats) count(depths []int32, path int) {
	if len(depths) == 0 {
		return
	}
	s.Rounds++
	s.Tokens += uint64(path) + 1
	for _, d := range depths {
		for len(s.Drafts) < int(d) {
			s.Drafts, s.Accepts = append(s.Drafts, 0), append(s.Accepts, 0)
		}
		s.Drafts[d-1]++
	}
	for d := range path {
		s.Accepts[d]++
	}
}
