package tools

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// A pythonScan finds the bracket that closes the arguments of a call.
type pythonScan struct {
	quote  string // that ends the string, "" outside one
	escape bool
	depth  int
}

// scan returns how much of text belongs to the arguments, the bracket included, and whether they end there.
// With hold, quotes that may become three are left.
func (s *pythonScan) scan(text string, hold bool) (n int, end bool) {
	for n < len(text) {
		c := text[n]
		switch {
		case s.escape:
			s.escape = false
		case s.quote != "" && c == '\\':
			s.escape = true
		case s.quote != "":
			switch {
			case strings.HasPrefix(text[n:], s.quote):
				n += len(s.quote)
				s.quote = ""
				continue
			case hold && strings.HasPrefix(s.quote, text[n:]):
				return n, false
			}
		case c == '"' || c == '\'':
			quote, ok := openingQuote(text[n:], hold)
			if !ok {
				return n, false
			}
			n += len(quote)
			if len(quote) != 2 {
				s.quote = quote
			}
			continue
		case c == '(' || c == '[' || c == '{':
			s.depth++
		case c == ')' || c == ']' || c == '}':
			if s.depth--; s.depth < 0 {
				return n + 1, true
			}
		}
		n++
	}
	return n, false
}

// openingQuote returns the one or three quotes that text begins with, or two if they are a whole string.
func openingQuote(text string, hold bool) (string, bool) {
	n := 1
	for n < min(3, len(text)) && text[n] == text[0] {
		n++
	}
	if hold && n == len(text) && n < 3 {
		return "", false
	}
	return text[:n], true
}

// pythonToJSON returns the JSON object of keyword arguments, a=1, b="x".
func pythonToJSON(arguments string) (string, bool) {
	p := python{s: arguments}
	p.out = append(p.out, '{')
	for p.peek() != 0 {
		start := p.pos
		for p.pos < len(p.s) && isIdentifier(rune(p.s[p.pos])) {
			p.pos++
		}
		key := p.s[start:p.pos]
		if key == "" || !p.accept('=') {
			return "", false
		}
		p.out = append(p.out, quoted(key)+": "...)
		if !p.value(0) || !p.accept(',') && p.peek() != 0 {
			return "", false
		}
		if p.peek() != 0 {
			p.out = append(p.out, ", "...)
		}
	}
	return string(append(p.out, '}')), true
}

// python turns literals of Python into JSON.
type python struct {
	s   string
	pos int
	out []byte
}

// peek returns the next character that is no space, 0 at the end.
func (p *python) peek() byte {
	for p.pos < len(p.s) && strings.IndexByte(whitespace, p.s[p.pos]) >= 0 {
		p.pos++
	}
	if p.pos == len(p.s) {
		return 0
	}
	return p.s[p.pos]
}

func (p *python) accept(c byte) bool {
	if p.peek() != c || p.pos == len(p.s) {
		return false
	}
	p.pos++
	return true
}

func (p *python) value(depth int) bool {
	if depth > value.MaxDepth {
		return false
	}
	switch c := p.peek(); {
	case c == '"' || c == '\'':
		s, ok := p.string()
		p.out = append(p.out, quoted(s)...)
		return ok
	case c == '[':
		return p.items('[', ']', depth)
	case c == '(':
		return p.items('(', ')', depth)
	case c == '{':
		return p.items('{', '}', depth)
	}
	return p.word()
}

// items reads a list, a tuple or a dict.
func (p *python) items(open, end byte, depth int) bool {
	p.pos++
	left, right := byte('['), byte(']')
	if open == '{' {
		left, right = '{', '}'
	}
	p.out = append(p.out, left)
	for first := true; !p.accept(end); first = false {
		if !first {
			if !p.accept(',') {
				return false
			}
			if p.accept(end) {
				break
			}
			p.out = append(p.out, ", "...)
		}
		if open == '{' {
			if c := p.peek(); c != '"' && c != '\'' || !p.value(depth+1) || !p.accept(':') {
				return false
			}
			p.out = append(p.out, ": "...)
		}
		if !p.value(depth + 1) {
			return false
		}
	}
	p.out = append(p.out, right)
	return true
}

var pythonWords = map[string]string{
	"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null",
}

// word reads a number or a constant.
func (p *python) word() bool {
	end := p.pos
	for end < len(p.s) && (isIdentifier(rune(p.s[end])) || p.s[end] == '+') {
		end++
	}
	word := p.s[p.pos:end]
	p.pos = end
	if constant, ok := pythonWords[word]; ok {
		p.out = append(p.out, constant...)
		return true
	}
	// JSON takes most numbers as they are, but not +1, 1_000, .5 and 5.
	for _, number := range []string{word, jsonNumber(word)} {
		if _, ok := decodeJSON(number); ok {
			p.out = append(p.out, number...)
			return true
		}
	}
	return false
}

func jsonNumber(word string) string {
	number := strings.TrimPrefix(strings.ReplaceAll(word, "_", ""), "+")
	digits, negative := strings.CutPrefix(number, "-")
	if strings.HasPrefix(digits, ".") {
		digits = "0" + digits
	}
	if strings.HasSuffix(digits, ".") {
		digits += "0"
	}
	if negative {
		return "-" + digits
	}
	return digits
}

func (p *python) string() (string, bool) {
	quote, _ := openingQuote(p.s[p.pos:], false)
	p.pos += len(quote)
	if len(quote) == 2 {
		return "", true
	}
	var b strings.Builder
	for p.pos < len(p.s) {
		switch c := p.s[p.pos]; {
		case strings.HasPrefix(p.s[p.pos:], quote):
			p.pos += len(quote)
			return b.String(), true
		case c == '\\' && p.pos+1 < len(p.s):
			b.WriteString(p.escape())
		default:
			b.WriteByte(c)
			p.pos++
		}
	}
	return "", false
}

// escapes are those of one letter.
var escapes = map[byte]string{
	'\n': "", '\\': `\`, '\'': "'", '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '0': "\x00",
}

// escape reads a backslash and what belongs to it. As in Python, one that means nothing stays.
func (p *python) escape() string {
	c := p.s[p.pos+1]
	p.pos += 2
	if s, ok := escapes[c]; ok {
		return s
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	r, ok := p.hex(digits)
	if digits == 0 || !ok {
		return p.s[p.pos-2 : p.pos]
	}
	if utf16.IsSurrogate(r) && strings.HasPrefix(p.s[p.pos:], `\u`) {
		p.pos += 2
		low, _ := p.hex(4)
		r = utf16.DecodeRune(r, low)
	}
	if !utf8.ValidRune(r) {
		r = utf8.RuneError
	}
	return string(r)
}

// hex reads a number of n digits.
func (p *python) hex(n int) (rune, bool) {
	if n == 0 || len(p.s)-p.pos < n {
		return 0, false
	}
	r, err := strconv.ParseUint(p.s[p.pos:p.pos+n], 16, 32)
	if err != nil {
		return 0, false
	}
	p.pos += n
	return rune(r), true
}
