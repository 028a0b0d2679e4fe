package adapt

import "time"

// An Attention is what reading the cache adds to a step that decodes, in seconds
// for each position of a sequence's context: Sequence however many rows the
// sequence has, and Row for each of those rows. Time is taken to grow with the
// context without end, as it was measured by one context: layers with windows, or
// that select what they read, add more than that to shorter contexts and less to
// longer ones.
type Attention struct{ Sequence, Row float64 }

// An attended is what attention adds to the step at hand, in seconds: rows that
// are drafted read what their sequence reads in any case.
type attended struct {
	sequences float64
	step, row float64
}

// attend sets the context of the step at hand: that many positions are read by
// so many sequences, whose rows are all taken to have the mean context.
func (s *Steps) attend(sequences int, positions int64) {
	reads := attended{}
	if sequences > 0 {
		n, p := float64(sequences), float64(positions)
		reads = attended{n, p * s.Attention.Sequence, p / n * s.Attention.Row}
	}
	s.read(reads)
}

// read sets what attention adds to the step at hand.
func (s *Steps) read(reads attended) {
	if reads != s.reads {
		s.reads = reads
		s.seen++ // times are to be computed anew
	}
}

// Some returns how long a step takes in which that many sequences of the step at
// hand decode, with contexts as they have on average.
func (s *Steps) Some(sequences int) time.Duration {
	all := s.reads
	if all.sequences > 0 {
		s.read(attended{float64(sequences), all.step * float64(sequences) / all.sequences, all.row})
		defer s.read(all)
	}
	return s.Time(sequences)
}
