package parse

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lexer cuts a template into tokens, one per call of next. It trims text around tags as trim_blocks and
// lstrip_blocks say: the first line break after a block tag or comment goes, and so do spaces before one
// that starts its line; a '-' inside the tag takes all white space on its side, a '+' keeps it.
type lexer struct {
	src   string
	pos   int
	line  int
	mode  kind   // text outside of tags, blockBegin or printBegin inside
	open  []byte // closing brackets owed inside a tag
	ready []token
	store [3]token // what ready is kept in
	err   error
}

func newLexer(src string) *lexer {
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	src = strings.TrimSuffix(src, "\n") // keep_trailing_newline is off
	return &lexer{src: src, line: 1, mode: text}
}

// next returns the next token; after an error or the end, eof for ever.
func (l *lexer) next() token {
	if len(l.ready) == 0 {
		l.ready = l.store[:0]
	}
	for len(l.ready) == 0 && l.err == nil && l.pos < len(l.src) {
		if l.mode == text {
			l.lexText()
		} else {
			l.lexTag()
		}
	}
	if len(l.ready) == 0 || l.err != nil {
		if l.err == nil && l.mode != text {
			l.fail("unexpected end of template inside a tag")
		}
		return token{kind: eof, line: l.line}
	}
	t := l.ready[0]
	l.ready = l.ready[1:]
	return t
}

func (l *lexer) emit(k kind, s string) { l.ready = append(l.ready, token{k, s, l.line}) }

func (l *lexer) fail(format string, args ...any) {
	if l.err == nil {
		l.err = &Error{l.line, fmt.Sprintf(format, args...)}
	}
}

// advance moves past n bytes and counts their lines.
func (l *lexer) advance(n int) {
	l.line += strings.Count(l.src[l.pos:l.pos+n], "\n")
	l.pos += n
}

// lexText reads up to the next tag and the tag's opening, or a whole comment or raw block.
func (l *lexer) lexText() {
	rest := l.src[l.pos:]
	at := tagStart(rest)
	if at < 0 {
		l.emit(text, rest)
		l.advance(len(rest))
		return
	}
	sign, size := byte(0), 2
	if len(rest) > at+2 && (rest[at+2] == '-' || rest[at+2] == '+') {
		sign, size = rest[at+2], 3
	}
	l.emitText(rest[:at], sign, rest[at+1] != '{')
	l.advance(at)

	if rest[at+1] == '#' {
		l.advance(size)
		l.comment()
		return
	}
	if n := rawBegin(rest[at+size:]); rest[at+1] == '%' && n > 0 {
		l.advance(size + n)
		l.raw()
		return
	}
	l.mode = blockBegin
	if rest[at+1] == '{' {
		l.mode = printBegin
	}
	l.emit(l.mode, "")
	l.advance(size)
}

func tagStart(s string) int {
	for i := 0; ; i++ {
		j := strings.IndexByte(s[i:], '{')
		if j < 0 || i+j+1 >= len(s) {
			return -1
		}
		i += j
		if c := s[i+1]; c == '%' || c == '{' || c == '#' {
			return i
		}
	}
}

// emitText emits the text before a tag that has the given sign; the text starts at l.pos.
func (l *lexer) emitText(s string, sign byte, block bool) {
	switch {
	case sign == '-':
		s = strings.TrimRightFunc(s, isSpace)
	case sign != '+' && block:
		lineStart := strings.LastIndexByte(s, '\n') + 1
		fresh := lineStart > 0 || l.pos == 0 || l.src[l.pos-1] == '\n'
		if fresh && strings.TrimLeftFunc(s[lineStart:], isSpace) == "" {
			s = s[:lineStart]
		}
	}
	if s != "" {
		l.emit(text, s)
	}
}

// comment skips up to and with the comment's end.
func (l *lexer) comment() {
	end := strings.Index(l.src[l.pos:], "#}")
	if end < 0 {
		if l.pos < len(l.src) { // Jinja does not mind a comment that begins at the very end
			l.fail("missing end of comment tag")
		}
		return
	}
	sign := byte(0)
	if end > 0 {
		sign = l.src[l.pos+end-1]
	}
	l.advance(end + 2)
	l.afterBlock(sign)
}

// afterBlock skips what goes after a block tag's or comment's end that has the given sign.
func (l *lexer) afterBlock(sign byte) {
	rest := l.src[l.pos:]
	switch {
	case sign == '-':
		l.advance(len(rest) - len(strings.TrimLeftFunc(rest, isSpace)))
	case sign != '+' && strings.HasPrefix(rest, "\n"):
		l.advance(1)
	}
}

// rawBegin returns the length of ` raw %}` at the start of s with what it strips, or 0.
func rawBegin(s string) int {
	t := strings.TrimLeftFunc(s, isSpace)
	if !strings.HasPrefix(t, "raw") {
		return 0
	}
	t = strings.TrimLeftFunc(t[3:], isSpace)
	if strings.HasPrefix(t, "-%}") {
		return len(s) - len(strings.TrimLeftFunc(t[3:], isSpace))
	}
	if strings.HasPrefix(t, "%}") { // no line break is trimmed here
		return len(s) - len(t[2:])
	}
	return 0
}

// raw emits the text up to {% endraw %}.
func (l *lexer) raw() {
	rest := l.src[l.pos:]
	for at := 0; ; at += 2 {
		i := strings.Index(rest[at:], "{%")
		if i < 0 {
			if rest != "" {
				l.fail("missing end of raw directive")
			}
			return
		}
		at += i
		t, sign := rest[at+2:], byte(0)
		if t != "" && (t[0] == '-' || t[0] == '+') {
			sign, t = t[0], t[1:]
		}
		t, ok := strings.CutPrefix(strings.TrimLeftFunc(t, isSpace), "endraw")
		if !ok {
			continue
		}
		t = strings.TrimLeftFunc(t, isSpace)
		endSign := byte(0)
		if t != "" && (t[0] == '-' || t[0] == '+') {
			endSign, t = t[0], t[1:]
		}
		if !strings.HasPrefix(t, "%}") {
			continue
		}
		l.emitText(rest[:at], sign, true)
		l.advance(len(rest) - len(t) + 2)
		l.afterBlock(endSign)
		return
	}
}

// lexTag reads one token inside a tag.
func (l *lexer) lexTag() {
	rest := l.src[l.pos:]
	if n := len(rest) - len(strings.TrimLeftFunc(rest, isSpace)); n > 0 {
		l.advance(n)
		return
	}
	// Inside brackets '}}' is two brackets: {{ {'a': {}} }}.
	if len(l.open) == 0 && l.tagEnd(rest) {
		return
	}
	c := rest[0]
	switch {
	case '0' <= c && c <= '9':
		k, n := number(rest, l.pos > 0 && l.src[l.pos-1] == '.')
		l.emit(k, strings.ReplaceAll(rest[:n], "_", ""))
		l.advance(n)
	case c == '\'' || c == '"':
		l.lexString(rest, c)
	default:
		if n := nameLen(rest); n > 0 {
			l.emit(name, rest[:n])
			l.advance(n)
			return
		}
		l.lexOperator(rest)
	}
}

func (l *lexer) tagEnd(rest string) bool {
	end, k := "%}", blockEnd
	if l.mode == printBegin {
		end, k = "}}", printEnd
	}
	sign, n := byte(0), 2
	if rest[0] == '-' || rest[0] == '+' && k == blockEnd {
		sign, n = rest[0], 3
	}
	if !strings.HasPrefix(rest[n-2:], end) {
		return false
	}
	l.emit(k, "")
	l.advance(n)
	if k == printEnd && sign == 0 {
		sign = '+' // no line break goes after }}
	}
	l.afterBlock(sign)
	l.mode = text
	return true
}

const operators = "** // == != >= <= " // the rest is single bytes

func (l *lexer) lexOperator(rest string) {
	n := 1
	if len(rest) > 1 && rest[1] != ' ' && strings.Contains(operators, rest[:2]+" ") {
		n = 2
	} else if strings.IndexByte("+-/*%~[](){}><=.:|,;", rest[0]) < 0 {
		r, _ := utf8.DecodeRuneInString(rest)
		l.fail("unexpected char %q", r)
		return
	}
	switch c := rest[0]; c {
	case '(':
		l.open = append(l.open, ')')
	case '[':
		l.open = append(l.open, ']')
	case '{':
		l.open = append(l.open, '}')
	case ')', ']', '}':
		if len(l.open) == 0 {
			l.fail("unexpected '%c'", c)
			return
		}
		if want := l.open[len(l.open)-1]; want != c {
			l.fail("unexpected '%c', expected '%c'", c, want)
			return
		}
		l.open = l.open[:len(l.open)-1]
	}
	l.emit(op, rest[:n])
	l.advance(n)
}

// isSpace is Python's str.isspace for one character.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

func nameLen(s string) int {
	for i, r := range s {
		switch {
		case r == '_' || unicode.IsLetter(r):
		case i > 0 && (unicode.IsDigit(r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Mc, r)):
		default:
			return i
		}
	}
	return len(s)
}
