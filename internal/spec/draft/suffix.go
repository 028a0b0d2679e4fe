package draft

import "github.com/foretoken/foretoken/internal/spec"

// SuffixOptions bound what a Suffix remembers. Zeros are replaced by defaults.
type SuffixOptions struct {
	Sequence   int // tokens of a sequence that is running
	Shared     int // tokens of a namespace's outputs
	Namespaces int // that have outputs; the one used longest ago is dropped
}

// A token that is remembered takes about a hundred bytes: far less than its
// keys and values do while its sequence runs, and with these defaults 26 MB for
// a namespace.
const (
	suffixSequence   = 64 << 10
	suffixShared     = 256 << 10
	suffixNamespaces = 8
)

const (
	// suffixDepth is how long a context may be. Longer ones draft no better, and
	// a token costs as many steps at most.
	suffixDepth = 32
	// suffixPiece is how many tokens one Propose takes in, of all sequences
	// together, and how many of an output are: some two milliseconds. A long prompt
	// is taken in by several.
	suffixPiece = 2 << 10
)

// Suffix drafts what most often followed the end of the text, there and in
// outputs of sequences that have ended: SuffixDecoding (2411.04975) on suffix
// automata. It costs little, and is right where requests resemble each other.
type Suffix struct {
	o         SuffixOptions
	sequences map[uint64]*recalled
	shared    map[string]*history
	clock     uint64 // ticks whenever a history is used
}

// recalled is a sequence as far as it has been taken in.
type recalled struct {
	text  *spec.Suffixes
	taken int // tokens
}

// history is the outputs of one namespace.
type history struct {
	text *spec.Suffixes
	used uint64
}

// NewSuffix returns a Suffix that has seen nothing.
func NewSuffix(o SuffixOptions) *Suffix {
	for _, v := range []struct {
		value *int
		most  int
	}{{&o.Sequence, suffixSequence}, {&o.Shared, suffixShared}, {&o.Namespaces, suffixNamespaces}} {
		if *v.value <= 0 {
			*v.value = v.most
		}
	}
	return &Suffix{o: o, sequences: map[uint64]*recalled{}, shared: map[string]*history{}}
}

// Propose implements Drafter. The draft is a chain, with the confidences of
// spec.Propose.
func (s *Suffix) Propose(asks []Ask, _ func(depth int) bool) error {
	left := suffixPiece
	for _, ask := range asks {
		r := s.sequences[ask.ID]
		if r == nil {
			r = &recalled{text: spec.NewSuffixes(suffixDepth, s.o.Sequence)}
			s.sequences[ask.ID] = r
		}
		n := min(len(ask.Tokens)-r.taken, left)
		r.text.Append(ask.Tokens[r.taken : r.taken+n]...)
		r.taken, left = r.taken+n, left-n

		n = min(ask.Depth, ask.Nodes)
		if h := s.shared[ask.Namespace]; h != nil {
			s.touch(h)
			spec.Propose(ask.Draft, ask.Tokens, n, 1, r.text, h.text)
		} else {
			spec.Propose(ask.Draft, ask.Tokens, n, 1, r.text)
		}
	}
	return nil
}

// Observe implements Drafter.
func (s *Suffix) Observe(Target, []Observed) error { return nil }

// Ended implements Drafter: the namespace remembers the output, of a long one
// the end.
func (s *Suffix) Ended(q *Sequence) {
	output := q.Tokens[min(q.Prompt, len(q.Tokens)):]
	if len(output) == 0 {
		return
	}
	h := s.shared[q.Namespace]
	if h == nil {
		if len(s.shared) >= s.o.Namespaces {
			s.drop()
		}
		h = &history{text: spec.NewSuffixes(suffixDepth, s.o.Shared)}
		s.shared[q.Namespace] = h
	}
	s.touch(h)
	h.text.Append(output[max(0, len(output)-suffixPiece):]...)
	h.text.End()
}

// Forget implements Drafter.
func (s *Suffix) Forget(id uint64) { delete(s.sequences, id) }

func (s *Suffix) touch(h *history) {
	s.clock++
	h.used = s.clock
}

// drop forgets the namespace that was used longest ago.
func (s *Suffix) drop() {
	oldest, at := ^uint64(0), ""
	for name, h := range s.shared {
		if h.used < oldest {
			oldest, at = h.used, name
		}
	}
	delete(s.shared, at)
}
