package sample

// A StopSet is a compiled list of stop strings, shared by the choices of a
// request. It is an Aho–Corasick automaton (1975): every node is a prefix of
// some stop string, and a byte of text moves to the longest prefix that the
// text then ends with, in amortised constant time however many there are.
type StopSet struct {
	stops []string
	nodes []stopNode // [0] is the empty prefix
	first [256]int32 // children of the empty prefix; 0: none
}

// stopNode has its children as a list: few nodes have more than one.
type stopNode struct {
	child, sibling int32 // 0: none
	fail           int32 // the longest proper suffix that is a node
	depth          int32 // length of the prefix in bytes
	stop           int32 // first of the stop strings that the prefix ends with; -1: none
	char           byte
}

// NewStopSet compiles stop strings, which must be UTF-8 and not empty
// (Params.Validate). Where two are complete at the same byte, the one that is
// listed first counts.
func NewStopSet(stops []string) *StopSet {
	s := &StopSet{stops: stops, nodes: []stopNode{{stop: -1}}}
	for i, stop := range stops {
		at := int32(0)
		for j := range len(stop) {
			next := s.child(at, stop[j])
			if next == 0 {
				next = s.grow(at, stop[j])
			}
			at = next
		}
		if s.nodes[at].stop < 0 {
			s.nodes[at].stop = int32(i)
		}
	}
	s.link()
	return s
}

// child returns the node after one more byte, 0 if there is none.
func (s *StopSet) child(at int32, c byte) int32 {
	if at == 0 {
		return s.first[c]
	}
	for n := s.nodes[at].child; n != 0; n = s.nodes[n].sibling {
		if s.nodes[n].char == c {
			return n
		}
	}
	return 0
}

func (s *StopSet) grow(at int32, c byte) int32 {
	n := int32(len(s.nodes))
	s.nodes = append(s.nodes, stopNode{sibling: s.nodes[at].child, depth: s.nodes[at].depth + 1, stop: -1, char: c})
	s.nodes[at].child = n
	if at == 0 {
		s.first[c] = n
	}
	return n
}

// link sets the fail links, by increasing depth, and hands stops down them.
func (s *StopSet) link() {
	queue := make([]int32, 1, len(s.nodes))
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		for n := s.nodes[at].child; n != 0; n = s.nodes[n].sibling {
			queue = append(queue, n)
			if at == 0 {
				continue
			}
			node := &s.nodes[n]
			node.fail = s.step(s.nodes[at].fail, node.char)
			if shorter := s.nodes[node.fail].stop; node.stop < 0 || shorter >= 0 && shorter < node.stop {
				node.stop = shorter
			}
		}
	}
}

// step returns the node after one more byte of text.
func (s *StopSet) step(at int32, c byte) int32 {
	for {
		if n := s.child(at, c); n != 0 || at == 0 {
			return n
		}
		at = s.nodes[at].fail
	}
}

// A StopMatcher watches the text of one choice for stop strings. It holds back
// text that may be the beginning of one, and nothing else. What it returns does
// not depend on how the text is cut into pieces: the stop string that is
// complete first ends the text.
type StopMatcher struct {
	set     *StopSet
	include bool
	at      int32
	held    []byte
	stop    int32 // the one that was found; -1: none yet
}

// NewMatcher returns a matcher at the beginning of a text. With include the
// stop string is part of the text, and nothing needs to be held back.
func (s *StopSet) NewMatcher(include bool) *StopMatcher {
	return &StopMatcher{set: s, include: include, stop: -1}
}

// Feed takes the next piece of text, of whole UTF-8 characters, and returns
// the text that can be sent, likewise whole, and whether a stop string has
// ended it. After the end there is no more text.
func (m *StopMatcher) Feed(piece string) (text string, stopped bool) {
	return m.feed(piece, true)
}

// Pass is Feed for text in which no stop string may end, because min_tokens is
// not reached. One that begins in it may end in what follows.
func (m *StopMatcher) Pass(piece string) (text string) {
	text, _ = m.feed(piece, false)
	return text
}

func (m *StopMatcher) feed(piece string, search bool) (string, bool) {
	if m.stop >= 0 {
		return "", true
	}
	for i := range len(piece) {
		m.at = m.set.step(m.at, piece[i])
		stop := m.set.nodes[m.at].stop
		if stop < 0 || !search {
			continue
		}
		m.stop = stop
		text := append(m.held, piece[:i+1]...)
		m.held = nil
		if !m.include {
			text = text[:len(text)-len(m.set.stops[stop])]
		}
		return string(text), true
	}
	if m.include {
		return piece, false
	}
	m.held = append(m.held, piece...)
	n := len(m.held) - int(m.set.nodes[m.at].depth)
	if n == 0 {
		return "", false
	}
	text := string(m.held[:n])
	m.held = m.held[:copy(m.held, m.held[n:])]
	return text, false
}

// Flush returns the text held back, when the output ends otherwise.
func (m *StopMatcher) Flush() string {
	text := string(m.held)
	m.held, m.at = nil, 0
	return text
}

// Stop returns the stop string that ended the text.
func (m *StopMatcher) Stop() (stop string, found bool) {
	if m.stop < 0 {
		return "", false
	}
	return m.set.stops[m.stop], true
}
