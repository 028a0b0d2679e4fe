package adapt

import "time"

// An Attention is what reading the cache adds to a step that decodes: for each
// position of a sequence's context so long, however many rows the sequence has,
// and so much for each of those rows.
type Attention struct{ Sequence, Row time.Duration }

// An attended is what attention adds to the step at hand, in seconds: rows that
// are drafted read what their sequence reads in any case.
type attended struct{ step, row float64 }

// attend sets the context of the step at hand: that many positions are read by
// so many sequences.
func (s *Steps) attend(sequences int, positions int64) {
	s.reads = attended{}
	if sequences > 0 {
		n := float64(positions)
		s.reads = attended{n * s.Attention.Sequence.Seconds(), n / float64(sequences) * s.Attention.Row.Seconds()}
	}
	s.seen++ // times are to be computed anew
}
