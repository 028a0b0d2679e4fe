package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonScanner reads JSON without building values: a vocabulary and its merges are most of a 10 MB
// file, and encoding/json takes seconds and hundreds of megabytes for them. The text must be valid
// UTF-8.
type jsonScanner struct {
	buf     []byte
	pos     int
	scratch []byte // the last string that held escapes
}

const maxJSONDepth = 256

var errJSON = errors.New("bad JSON")

func (s *jsonScanner) fail(expected string) error {
	return fmt.Errorf("%w at byte %d: expected %s", errJSON, s.pos, expected)
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *jsonScanner) peek() byte {
	for s.pos < len(s.buf) {
		switch c := s.buf[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

func (s *jsonScanner) accept(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

// list runs item for each element between open and end, which commas separate.
func (s *jsonScanner) list(open, end byte, item func() error) error {
	if !s.accept(open) {
		return s.fail(string(open))
	}
	if s.accept(end) {
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if s.accept(end) {
			return nil
		}
		if !s.accept(',') {
			return s.fail("a comma or " + string(end))
		}
	}
}

// object calls member for each key; member must read the value. The key is valid until it reads a
// string.
func (s *jsonScanner) object(member func(key []byte) error) error {
	return s.list('{', '}', func() error {
		key, err := s.str()
		if err != nil {
			return err
		}
		if !s.accept(':') {
			return s.fail("a colon")
		}
		return member(key)
	})
}

func (s *jsonScanner) array(item func() error) error { return s.list('[', ']', item) }

// str reads a string; the result is valid until the next call.
func (s *jsonScanner) str() ([]byte, error) {
	if !s.accept('"') {
		return nil, s.fail("a string")
	}
	start := s.pos
	for i, c := range s.buf[start:] {
		switch {
		case c == '"':
			s.pos = start + i + 1
			return s.buf[start : start+i], nil
		case c == '\\':
			s.pos = start + i
			return s.escapedStr(start)
		case c < ' ':
			s.pos = start + i
			return nil, s.fail("no control character")
		}
	}
	s.pos = len(s.buf)
	return nil, s.fail("the end of a string")
}

// escapedStr continues str at the first backslash.
func (s *jsonScanner) escapedStr(start int) ([]byte, error) {
	s.scratch = append(s.scratch[:0], s.buf[start:s.pos]...)
	for s.pos < len(s.buf) {
		c := s.buf[s.pos]
		switch {
		case c == '"':
			s.pos++
			return s.scratch, nil
		case c < ' ':
			return nil, s.fail("no control character")
		case c != '\\':
			s.scratch = append(s.scratch, c)
			s.pos++
			continue
		}
		s.pos++
		if s.pos == len(s.buf) {
			break
		}
		c = s.buf[s.pos]
		s.pos++
		switch c {
		case '"', '\\', '/':
			s.scratch = append(s.scratch, c)
		case 'b':
			s.scratch = append(s.scratch, '\b')
		case 'f':
			s.scratch = append(s.scratch, '\f')
		case 'n':
			s.scratch = append(s.scratch, '\n')
		case 'r':
			s.scratch = append(s.scratch, '\r')
		case 't':
			s.scratch = append(s.scratch, '\t')
		case 'u':
			r, ok := s.unicodeEscape()
			if !ok {
				return nil, s.fail("four hexadecimal digits of a character")
			}
			s.scratch = utf8.AppendRune(s.scratch, r)
		default:
			return nil, s.fail("an escape")
		}
	}
	return nil, s.fail("the end of a string")
}

func (s *jsonScanner) unicodeEscape() (rune, bool) {
	high, ok := s.hex4()
	if !ok || !utf16.IsSurrogate(high) {
		return high, ok
	}
	if s.pos+2 > len(s.buf) || s.buf[s.pos] != '\\' || s.buf[s.pos+1] != 'u' {
		return 0, false
	}
	s.pos += 2
	low, ok := s.hex4()
	r := utf16.DecodeRune(high, low)
	return r, ok && r != utf8.RuneError
}

func (s *jsonScanner) hex4() (rune, bool) {
	if s.pos+4 > len(s.buf) {
		return 0, false
	}
	var r rune
	for _, c := range s.buf[s.pos : s.pos+4] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	s.pos += 4
	return r, true
}

// id reads a token id: a number from 0 to 2^31-1.
func (s *jsonScanner) id() (int32, error) {
	v, start := int64(0), s.pos
	if c := s.peek(); c >= '0' && c <= '9' {
		start = s.pos
		for s.pos < len(s.buf) && '0' <= s.buf[s.pos] && s.buf[s.pos] <= '9' && v <= 1<<31 {
			v = v*10 + int64(s.buf[s.pos]-'0')
			s.pos++
		}
		if v < 1<<31 {
			return int32(v), nil
		}
	}
	s.pos = start
	return 0, s.fail("a token id")
}

func (s *jsonScanner) float() (float64, error) {
	s.peek()
	start := s.pos
	for s.pos < len(s.buf) && (s.buf[s.pos] > ' ' && s.buf[s.pos] != ',' && s.buf[s.pos] != ']' && s.buf[s.pos] != '}') {
		s.pos++
	}
	v, err := strconv.ParseFloat(string(s.buf[start:s.pos]), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		s.pos = start
		return 0, s.fail("a number")
	}
	return v, nil
}

// boolean reads true or false.
func (s *jsonScanner) boolean() (bool, error) {
	s.peek()
	for _, value := range []bool{true, false} {
		if word := strconv.FormatBool(value); bytes.HasPrefix(s.buf[s.pos:], []byte(word)) {
			s.pos += len(word)
			return value, nil
		}
	}
	return false, s.fail("true or false")
}

// raw skips a value of any kind and returns its text. It checks the nesting, not all of the
// grammar.
func (s *jsonScanner) raw() ([]byte, error) {
	s.peek()
	start := s.pos
	var open [maxJSONDepth]byte
	depth := 0
	for {
		switch c := s.peek(); c {
		case 0:
			return nil, s.fail("a value")
		case '"':
			if _, err := s.str(); err != nil {
				return nil, err
			}
		case '{', '[':
			if depth == maxJSONDepth {
				return nil, fmt.Errorf("%w at byte %d: nested deeper than %d", errJSON, s.pos, maxJSONDepth)
			}
			open[depth] = c + 2 // the closing one, in ASCII
			depth++
			s.pos++
			continue
		case '}', ']':
			if depth == 0 || open[depth-1] != c {
				return nil, s.fail("a value")
			}
			depth--
			s.pos++
		case ',', ':':
			if depth == 0 {
				return nil, s.fail("a value")
			}
			s.pos++
			continue
		default:
			from := s.pos
			for s.pos < len(s.buf) && isScalarByte(s.buf[s.pos]) {
				s.pos++
			}
			if s.pos == from {
				return nil, s.fail("a value")
			}
		}
		if depth == 0 {
			return s.buf[start:s.pos], nil
		}
	}
}

// isScalarByte reports whether c may be part of a number, true, false or null.
func isScalarByte(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E'
}

// documentFields is objectFields of a whole file.
func documentFields(data []byte) (map[string][]byte, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%w: not UTF-8", errJSON)
	}
	return objectFields(data)
}

// objectFields returns the values of an object by key.
func objectFields(data []byte) (map[string][]byte, error) {
	s := jsonScanner{buf: data}
	fields := map[string][]byte{}
	err := s.object(func(key []byte) error {
		name := string(key)
		if _, twice := fields[name]; twice {
			return fmt.Errorf("%w: %q appears twice", errJSON, abbreviate(name))
		}
		var err error
		fields[name], err = s.raw()
		return err
	})
	if err == nil && s.peek() != 0 {
		err = s.fail("the end")
	}
	return fields, err
}
