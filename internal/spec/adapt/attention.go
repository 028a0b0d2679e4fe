package adapt

// An Attention is what reading the cache adds to a step that decodes, in seconds
// for each position of a sequence's context: Sequence however many rows the
// sequence has, and Row for each of those rows. Time is taken to grow with the
// context without end; where windows or a selection end that, long contexts are
// charged too much until steps with them were seen.
type Attention struct{ Sequence, Row float64 }

// An attended is what attention adds to the step at hand, in seconds: rows that
// are drafted read what their sequence reads in any case.
type attended struct{ step, row float64 }

// attend sets the context of the step at hand: that many positions are read by
// so many sequences, whose rows are all taken to have the mean context.
func (s *Steps) attend(sequences int, positions int64) {
	reads := attended{}
	if sequences > 0 {
		n := float64(positions)
		reads = attended{n * s.Attention.Sequence, n / float64(sequences) * s.Attention.Row}
	}
	if reads != s.reads {
		s.reads = reads
		s.seen++ // times are to be computed anew
	}
}
