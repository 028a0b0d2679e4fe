package parse

import (
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// digits returns how many bytes of s are digits of the set, with single underscores between.
func digits(s, set string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		switch {
		case strings.IndexByte(set, s[i]) >= 0:
			n = i + 1
		case s[i] != '_' || n != i || n == 0:
			return n
		}
	}
	return n
}

const decimal = "0123456789"

// number returns kind and length of the number that s starts with. After a point there are no floats:
// x.1.5 is two subscripts.
func number(s string, afterPoint bool) (kind, int) {
	n := digits(s, decimal)
	if !afterPoint {
		end := n
		if end < len(s) && s[end] == '.' {
			if f := digits(s[end+1:], decimal); f > 0 {
				end += 1 + f
			}
		}
		if end < len(s) && s[end]|0x20 == 'e' {
			e := end + 1
			if e < len(s) && (s[e] == '+' || s[e] == '-') {
				e++
			}
			if d := digits(s[e:], decimal); d > 0 {
				return float, e + d
			}
		}
		if end > n {
			return float, end
		}
	}
	if s[0] == '0' {
		if len(s) > 2 {
			set := map[byte]string{'b': "01", 'o': "01234567", 'x': "0123456789abcdefABCDEF"}[s[1]|0x20]
			if d := digits(strings.TrimPrefix(s[2:], "_"), set); d > 0 {
				return integer, len(s) - len(strings.TrimPrefix(s[2:], "_")) + d
			}
		}
		return integer, digits(s, "0")
	}
	return integer, n
}

// constant returns the value of a number token.
func constant(t token) (value.Value, string) {
	if t.kind == float {
		f, _ := strconv.ParseFloat(t.text, 64) // out of range: infinity, as in Python
		return f, ""
	}
	if len(t.text) > value.MaxDigits {
		return nil, "integer with too many digits"
	}
	i, ok := new(big.Int).SetString(t.text, 0)
	if !ok {
		return nil, "malformed integer"
	}
	return value.Int(i), ""
}

// lexString reads a string literal.
func (l *lexer) lexString(rest string, quote byte) {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case quote:
			s, problem := unescape(rest[1:i])
			if problem != "" {
				l.fail("%s", problem)
				return
			}
			l.emit(str, s)
			l.advance(i + 1)
			return
		}
	}
	l.fail("unexpected char %q: the string has no end", quote)
}

// unescape replaces Python's escapes. Unknown ones stay as they are.
func unescape(s string) (result, problem string) {
	if !strings.Contains(s, `\`) {
		return s, ""
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++ // the lexer saw to it that something follows
		c := s[i]
		if at := strings.IndexByte(`\'"abfnrtv`, c); at >= 0 {
			b.WriteByte("\\'\"\a\b\f\n\r\t\v"[at])
			continue
		}
		switch c {
		case '\n': // a line that goes on
		case '0', '1', '2', '3', '4', '5', '6', '7':
			end := i + 1
			for end < len(s) && end < i+3 && '0' <= s[end] && s[end] <= '7' {
				end++
			}
			n, _ := strconv.ParseUint(s[i:end], 8, 16)
			b.WriteRune(rune(n))
			i = end - 1
		case 'x', 'u', 'U':
			size := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			if len(s)-i-1 < size {
				return "", `truncated \` + string(c) + " escape"
			}
			n, err := strconv.ParseUint(s[i+1:i+1+size], 16, 32)
			if err != nil || !utf8.ValidRune(rune(n)) {
				return "", `malformed \` + string(c) + " escape"
			}
			b.WriteRune(rune(n))
			i += size
		case 'N':
			return "", `\N escapes are not supported`
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}
