package server

import (
	"strings"

	"github.com/foretoken/foretoken/internal/chat/tools"
)

// A speller finds the tokens that spell the content of an answer. The parser
// drops marks and whitespace around them, and tells some text later than it came.
type speller struct {
	pieces []piece // that content may still be told of, in order
}

// A piece is text as it came, and the scores of the tokens that it took: several,
// where parts of a character or the beginning of a stop string had to wait for
// the others.
type piece struct {
	text   string
	scores []chatLogProb // until they are told
}

// add takes a token and the text that came with it. hidden: the token is not in
// any text, as the one that ends a turn.
func (s *speller) add(text string, score chatLogProb, hidden bool) {
	last := len(s.pieces) - 1
	if last < 0 || s.pieces[last].text != "" {
		s.pieces, last = append(s.pieces, piece{}), last+1
	}
	p := &s.pieces[last]
	p.text = text
	if !hidden {
		p.scores = append(p.scores, score)
	}
}

// tell returns the scores of tokens that d is the first content of.
func (s *speller) tell(d tools.Delta) (scores []chatLogProb) {
	if d.Kind != tools.Content { // what came before it is none, but for the end of the last piece
		s.pieces = s.pieces[max(0, len(s.pieces)-1):]
		return nil
	}
	var all strings.Builder
	for _, p := range s.pieces {
		all.WriteString(p.text)
	}
	// What was dropped is in front of the content, what may be a mark behind it.
	from := max(0, strings.LastIndex(all.String(), d.Text))
	to := from + len(d.Text)
	at := 0
	var left []piece
	for _, p := range s.pieces {
		end := at + len(p.text)
		if at < to && end > from {
			scores = append(scores, p.scores...)
			p.scores = nil
		}
		if end > to || p.text == "" {
			p.text = p.text[min(len(p.text), max(0, to-at)):]
			left = append(left, p)
		}
		at = end
	}
	s.pieces = left
	return scores
}
