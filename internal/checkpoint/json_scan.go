package checkpoint

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// A jsonScanner reads JSON whose structure is known: the header of a
// safetensors file and the map of an index. Unlike encoding/json it lets
// the reader see duplicate keys, and since it only descends where the
// reader asks it to, a deeply nested value cannot deepen the stack.
type jsonScanner struct {
	src []byte
	pos int
}

// object reads an object, calling member with each key; member reads the
// value. The key is valid until member returns.
func (s *jsonScanner) object(member func(key []byte) error) error {
	return s.list('{', '}', func() error {
		key, err := s.str()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		return member(key)
	})
}

// array reads an array, calling element to read each element.
func (s *jsonScanner) array(element func() error) error { return s.list('[', ']', element) }

func (s *jsonScanner) list(open, end byte, item func() error) error {
	if err := s.expect(open); err != nil {
		return err
	}
	if s.peek() == end {
		s.pos++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if s.peek() == end {
			s.pos++
			return nil
		}
		if err := s.expect(','); err != nil {
			return err
		}
	}
}

// str reads a string. The result points into the source unless the string
// has escapes.
func (s *jsonScanner) str() ([]byte, error) {
	if err := s.expect('"'); err != nil {
		return nil, err
	}
	start, escaped := s.pos, false
	for ; s.pos < len(s.src); s.pos++ {
		switch c := s.src[s.pos]; {
		case c == '"':
			text := s.src[start:s.pos]
			s.pos++
			if !escaped {
				return text, nil
			}
			var plain string
			if err := json.Unmarshal(s.src[start-1:s.pos], &plain); err != nil {
				return nil, fmt.Errorf("byte %d: bad escape in a string", start)
			}
			return []byte(plain), nil
		case c == '\\':
			escaped = true
			s.pos++
		case c < ' ':
			return nil, fmt.Errorf("byte %d: control character in a string", s.pos)
		}
	}
	return nil, fmt.Errorf("byte %d: string without an end", start)
}

// size reads a number that can be a length: an integer from 0 to the
// largest int.
func (s *jsonScanner) size() (int, error) {
	s.space()
	start := s.pos
	for s.pos < len(s.src) && s.src[s.pos] > ' ' && s.src[s.pos] != ',' && s.src[s.pos] != ']' && s.src[s.pos] != '}' {
		s.pos++
	}
	text := string(s.src[start:min(s.pos, start+40)])
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > math.MaxInt || text[0] == '0' && text != "0" {
		return 0, fmt.Errorf("byte %d: %s: expected an integer from 0 to %d", start, quoted(text), math.MaxInt)
	}
	return int(n), nil
}

// end checks that only white space is left.
func (s *jsonScanner) end() error {
	if s.space(); s.pos < len(s.src) {
		return fmt.Errorf("byte %d: %q after the end of the JSON object", s.pos, s.src[s.pos])
	}
	return nil
}

func (s *jsonScanner) expect(c byte) error {
	switch got := s.peek(); {
	case s.pos == len(s.src):
		return fmt.Errorf("byte %d: the JSON ends early: expected %q", s.pos, c)
	case got != c:
		return fmt.Errorf("byte %d: found %q, expected %q", s.pos, got, c)
	}
	s.pos++
	return nil
}

// peek returns the next byte that is not white space, 0 at the end.
func (s *jsonScanner) peek() byte {
	if s.space(); s.pos < len(s.src) {
		return s.src[s.pos]
	}
	return 0
}

func (s *jsonScanner) space() {
	for s.pos < len(s.src) {
		switch s.src[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}
