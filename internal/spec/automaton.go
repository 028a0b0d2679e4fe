package spec

import "math/rand/v2"

// An Automaton is the suffix automaton of a growing text: it finds the longest
// end of a context anywhere in the text, and what followed it there how often,
// in time that does not depend on the text's length (Blumer et al. 1985; as a
// drafter: SAM Decoding, 2411.10666, with the counts of SuffixDecoding,
// 2411.04975).
//
// A state stands for the substrings that end at the same set of places. They
// are suffixes of the longest of them; the next shorter suffix is of another
// state, the link. Contexts are counted up to a depth, so that a token costs
// at most that many steps in any text; for longer ones the last depth tokens
// are looked at. Memory is about a hundred bytes a token.
type Automaton struct {
	depth  int32
	states []state
	edges  []edge
	table  []int32 // open addressing by state and token: index of edges + 1, 0 free
	seed   uint64  // of the table's hash: who sends the text shall not choose collisions
	last   int32   // the state of the whole text
}

type state struct {
	length int32 // of its longest substring
	link   int32 // -1 for the root, state 0: the empty substring
	skip   int32 // a suffix of it, on the way to the first that is counted
	count  int32 // of the places where its substrings end
	end    int32 // the last of these: the length of the text up to there
	edges  int32 // the first, -1: none
	best   int32 // the edge followed most often, of equals the last followed
}

type edge struct {
	from, token, to int32
	next            int32 // of the same state, -1: none
}

// separator ends a text among others. It is no token.
const separator = -1

// NewAutomaton returns the automaton of the empty text, for contexts of at most
// depth tokens.
func NewAutomaton(depth int) *Automaton {
	a := &Automaton{depth: int32(max(depth, 1)), seed: rand.Uint64()}
	a.Reset()
	return a
}

// Reset makes the text empty, and keeps the memory.
func (a *Automaton) Reset() {
	a.states = append(a.states[:0], state{link: -1, edges: -1, best: -1})
	a.edges = a.edges[:0]
	clear(a.table)
	a.last = 0
}

// Len returns the length of the text, separators included.
func (a *Automaton) Len() int { return int(a.states[a.last].length) }

// Append adds a token to the text.
func (a *Automaton) Append(token int32) {
	before := a.last
	a.grow(token)
	n := a.states[a.last].length
	// All suffixes of the text occur once more.
	for s := a.counted(a.last); s != 0; s = a.states[s].link {
		a.states[s].count++
		a.states[s].end = n
	}
	// All suffixes of the text before are followed by token once more.
	for s := a.context(before); s >= 0; s = a.states[s].link {
		st := &a.states[s]
		e := a.find(s, token)
		if st.best < 0 || a.follows(e) >= a.follows(st.best) {
			st.best = e
		}
	}
}

// follows returns how often an edge is followed.
func (a *Automaton) follows(e int32) int32 { return a.states[a.edges[e].to].count }

// grow is the construction of Blumer et al.
func (a *Automaton) grow(token int32) {
	p := a.last
	a.last = a.add(state{length: a.states[p].length + 1, edges: -1, best: -1})
	e := int32(-1)
	for ; p >= 0; p = a.states[p].link {
		if e = a.find(p, token); e >= 0 {
			break
		}
		a.connect(p, token, a.last)
	}
	if p < 0 {
		a.relink(a.last, 0)
		return
	}
	q := a.edges[e].to
	if a.states[q].length == a.states[p].length+1 {
		a.relink(a.last, q)
		return
	}
	// q has longer substrings, which do not end here: those that do split off.
	c := a.add(a.states[q])
	a.states[c].length = a.states[p].length + 1
	a.states[c].edges, a.states[c].best = -1, -1
	for i := a.states[q].edges; i >= 0; i = a.edges[i].next {
		copied := a.connect(c, a.edges[i].token, a.edges[i].to)
		if i == a.states[q].best {
			a.states[c].best = copied
		}
	}
	for ; p >= 0; p = a.states[p].link {
		e := a.find(p, token)
		if a.edges[e].to != q {
			break
		}
		a.edges[e].to = c
	}
	a.relink(q, c)
	a.relink(a.last, c)
}

func (a *Automaton) add(s state) int32 {
	a.states = append(a.states, s)
	return int32(len(a.states) - 1)
}

func (a *Automaton) relink(s, link int32) {
	a.states[s].link, a.states[s].skip = link, link
}

// counted returns the first suffix of a state that has a substring of depth+1
// tokens or fewer: counts are kept of these. The way there may be as long as the
// text, in one of equal tokens, so it is shortened for the next time. Where a
// split put a state between, the old way still leads there.
func (a *Automaton) counted(s int32) int32 {
	for a.deep(s) {
		st := &a.states[s]
		if a.deep(st.skip) {
			st.skip = a.states[st.skip].skip
		}
		s = st.skip
	}
	return s
}

// deep reports whether all substrings of a state have more than depth+1 tokens.
func (a *Automaton) deep(s int32) bool {
	link := a.states[s].link
	return link >= 0 && a.states[link].length > a.depth
}

// context returns the state of the last depth tokens of a state's substrings,
// or of all of them if they are fewer.
func (a *Automaton) context(s int32) int32 {
	s = a.counted(s)
	if link := a.states[s].link; link >= 0 && a.states[link].length == a.depth {
		return link
	}
	return s
}

// match returns the state and the length of the longest suffix of a context, of
// depth tokens at most, that some token follows in the text.
func (a *Automaton) match(context []int32) (s int32, length int) {
	for _, token := range context[max(0, len(context)-int(a.depth)):] {
		e := a.find(s, token)
		for ; e < 0 && s != 0; e = a.find(s, token) {
			s = a.states[s].link
			length = int(a.states[s].length)
		}
		if e >= 0 {
			s = a.edges[e].to
			length++
		}
	}
	return a.followed(s, length)
}

// followed returns the longest suffix of a match that some token follows: of a
// match at the text's end only, a shorter one.
func (a *Automaton) followed(s int32, length int) (int32, int) {
	for s != 0 && a.states[s].best < 0 {
		s = a.states[s].link
		length = int(a.states[s].length)
	}
	return s, length
}

// propose appends to a chain the tokens that follow a match most often, of
// equals the latest, until it has n. Where the text ends, a shorter suffix goes on,
// but none of fewer than least tokens.
//
// A confidence is the share of the occurrences that were followed so, with one
// more that was not: how often something new comes is estimated as in method A
// of prediction by partial matching (Cleary and Witten 1984).
func (a *Automaton) propose(dst *Draft, s int32, length, n, least int) {
	for dst.Len() < n {
		if s, length = a.followed(s, length); s == 0 || length < least {
			return
		}
		st := &a.states[s]
		e := a.edges[st.best]
		if e.token == separator {
			return
		}
		occurrences := st.count
		if int(st.end) == a.Len() {
			occurrences-- // nothing follows the last
		}
		dst.Tokens = append(dst.Tokens, e.token)
		dst.Confidence = append(dst.Confidence, float64(a.states[e.to].count)/float64(occurrences+1))
		s, length = a.context(e.to), min(length+1, int(a.depth))
	}
}
