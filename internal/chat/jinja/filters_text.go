package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// soft returns v as a string of its kind: what is no string is printed.
func (m *machine) soft(v value.Value) (value.Value, string, error) {
	if s, ok := str(v); ok {
		return v, s, nil
	}
	s, err := m.text(v)
	return s, s, err
}

func stringFilter(m *machine, v value.Value, p params) (value.Value, error) {
	v, _, err := m.soft(v)
	return v, err
}

func safeFilter(m *machine, v value.Value, p params) (value.Value, error) {
	_, s, err := m.soft(v)
	return markup(s), err
}

func escapeFilter(m *machine, v value.Value, p params) (value.Value, error) {
	if s, ok := v.(markup); ok {
		return s, nil
	}
	return forceEscapeFilter(m, v, p)
}

func forceEscapeFilter(m *machine, v value.Value, p params) (value.Value, error) {
	_, s, err := m.soft(v)
	if err != nil {
		return nil, err
	}
	if err := m.allocText(5 * len(s)); err != nil {
		return nil, err
	}
	return markup(escapeHTML(s)), nil
}

func textFilter(f func(string) string) func(m *machine, v value.Value, p params) (value.Value, error) {
	return func(m *machine, v value.Value, p params) (value.Value, error) {
		v, s, err := m.soft(v)
		if err != nil {
			return nil, err
		}
		return m.mapped(v, f(s))
	}
}

// titleFilter is Jinja's: a word starts after white space or one of -({[<.
func titleFilter(s string) string {
	var b strings.Builder
	for s != "" {
		start := func(r rune) bool { return isSpace(r) || strings.ContainsRune("-({[<", r) }
		n := len(s) - len(strings.TrimLeftFunc(s, start))
		b.WriteString(s[:n])
		s = s[n:]
		end := strings.IndexFunc(s, start)
		if end < 0 {
			end = len(s)
		}
		_, first := utf8.DecodeRuneInString(s[:end])
		b.WriteString(upper(s[:first]))
		b.WriteString(lower(s[first:end]))
		s = s[end:]
	}
	return b.String()
}

func trimFilter(m *machine, v value.Value, p params) (value.Value, error) {
	v, _, err := m.soft(v)
	if err != nil {
		return nil, err
	}
	return m.strip(v, p.or(0, nil), true, true)
}

// replaceFilter prints what is no string, and its result is never marked safe.
func replaceFilter(m *machine, v value.Value, p params) (value.Value, error) {
	var texts [3]string
	for i, x := range []value.Value{v, p[0], p[1]} {
		var err error
		if texts[i], err = m.text(x); err != nil {
			return nil, err
		}
	}
	count := -1
	if p.or(2, nil) != nil {
		var err error
		if count, err = p.int(2, -1); err != nil {
			return nil, err
		}
	}
	return wrap(m.replace(texts[0], texts[1], texts[2], count))
}

func wrap(s string, err error) (value.Value, error) { return s, err }

func indentFilter(m *machine, v value.Value, p params) (value.Value, error) {
	s, ok := str(v)
	if !ok {
		if u, ok := v.(*undefined); ok {
			return nil, u.fail()
		}
		return nil, unsupported("+=", v, "")
	}
	by, ok := str(p.or(0, int64(4)))
	if !ok {
		n, err := p.int(0, 4)
		if err != nil {
			return nil, err
		}
		if by, err = m.repeatText(" ", n); err != nil {
			return nil, err
		}
	}
	lines, err := m.splitLines(s+"\n", false)
	if err != nil {
		return nil, err
	}
	if !m.fits(len(lines), len(by)) {
		return nil, m.allocText(-1)
	}
	if err := m.allocText(len(s) + len(lines)*len(by)); err != nil {
		return nil, err
	}
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == 0 && p.truth(1) || i > 0 && (line != "" || p.truth(2)) {
			b.WriteString(by)
		}
		b.WriteString(line)
	}
	return like(v, b.String()), nil
}

func centerFilter(m *machine, v value.Value, p params) (value.Value, error) {
	width, err := p.int(0, 80)
	if err != nil {
		return nil, err
	}
	v, _, err = m.soft(v)
	if err != nil {
		return nil, err
	}
	return m.pad(v, width, " ", centered(width))
}

func truncateFilter(m *machine, v value.Value, p params) (value.Value, error) {
	length, err := p.int(0, 255)
	if err != nil {
		return nil, err
	}
	end, err := p.str(2, "...")
	if err != nil {
		return nil, err
	}
	leeway := 5
	if p.or(3, nil) != nil {
		if leeway, err = p.int(3, 5); err != nil {
			return nil, err
		}
	}
	endLen := utf8.RuneCountInString(end)
	if length < endLen || leeway < 0 {
		return nil, errorf("AssertionError", "expected length >= %d, got %d", endLen, length)
	}
	n, err := m.length(v)
	if err != nil || n-leeway <= length {
		return v, err
	}
	s, ok := str(v)
	if !ok {
		return nil, typeErrorf("truncate wants a string, not %s", typeName(v))
	}
	s = s[:runeOffset(s, length-endLen)]
	if !p.truth(1) {
		if at := strings.LastIndexByte(s, ' '); at >= 0 {
			s = s[:at]
		}
	}
	return m.add(like(v, s), p.or(2, "..."))
}

func wordCountFilter(m *machine, v value.Value, p params) (value.Value, error) {
	_, s, err := m.soft(v)
	if err != nil {
		return nil, err
	}
	isWord := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }
	n, inWord := int64(0), false
	for _, r := range s {
		if isWord(r) && !inWord {
			n++
		}
		inWord = isWord(r)
	}
	return n, m.touch(len(s))
}

// formatFilter is the % operator: "%s"|format(x).
func formatFilter(m *machine, v value.Value, a args) (value.Value, error) {
	if len(a.pos) > 0 && len(a.names) > 0 {
		return nil, errorf("FilterArgumentError", "can't handle positional and keyword arguments at the same time")
	}
	v, s, err := m.soft(v)
	if err != nil {
		return nil, err
	}
	if len(a.names) > 0 {
		o, err := m.makeObject(a)
		if err != nil {
			return nil, err
		}
		return m.percent(v, s, o)
	}
	return m.percent(v, s, &value.Tuple{Items: a.pos})
}

func joinFilter(m *machine, v value.Value, p params) (value.Value, error) {
	sep, err := m.text(p.or(0, ""))
	if err != nil {
		return nil, err
	}
	along := path(p.or(1, nil))
	return wrap(m.join(sep, v, func(item value.Value) (string, error) {
		item, err := m.follow(item, along, nil)
		if err != nil {
			return "", err
		}
		return m.text(item)
	}))
}
