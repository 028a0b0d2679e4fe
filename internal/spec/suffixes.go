package spec

// Suffixes are a text of bounded memory to propose from: that of one sequence,
// prompt and output, or one that many share, outputs of requests that are
// done. An automaton forgets nothing, so there are two: when the young one
// holds half of the limit it becomes the old one, and what the old one held is
// forgotten. Between half of the limit and all of it is remembered, and no step
// of the engine waits for a rebuild.
type Suffixes struct {
	limit      int
	young, old *Automaton
}

// NewSuffixes returns an empty text that keeps at most limit tokens, for
// contexts of at most depth tokens.
func NewSuffixes(depth, limit int) *Suffixes {
	return &Suffixes{limit: max(limit, 2), young: NewAutomaton(depth), old: NewAutomaton(depth)}
}

// Append adds tokens to the text.
func (s *Suffixes) Append(tokens ...int32) {
	for _, token := range tokens {
		if s.young.Len() >= s.limit/2 {
			s.young, s.old = s.old, s.young
			s.young.Reset()
		}
		s.young.Append(token)
	}
}

// End separates what was appended from what comes: no match and no proposal
// goes across.
func (s *Suffixes) End() { s.Append(separator) }

// Len returns how many tokens are remembered, ends included.
func (s *Suffixes) Len() int { return s.young.Len() + s.old.Len() }

// Propose makes dst a chain of at most n tokens that follow the longest end of
// the context, of at least least tokens, in any of the texts; of equally long
// ones it takes the first text's, and the latest in it. The context is the
// sequence, or its last tokens, with the anchor. It returns the length of the
// match, 0 if there is none; the draft is empty too where texts mostly ended.
func Propose(dst *Draft, context []int32, n, least int, texts ...*Suffixes) (matched int) {
	dst.ResetChain()
	var from *Automaton
	var at int32
	for _, text := range texts {
		for _, a := range [...]*Automaton{text.young, text.old} {
			if s, length := a.match(context); length > matched {
				from, at, matched = a, s, length
			}
		}
	}
	if matched < max(least, 1) {
		return 0
	}
	from.propose(dst, at, matched, n, least)
	return matched
}
