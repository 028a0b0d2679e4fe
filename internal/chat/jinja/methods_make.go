package jinja

import (
	"strings"
	"unicode/utf8"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// The string methods whose results may be much larger than their operands: sizes are known, and charged,
// before the result is made.

func decodeRune(s string) (rune, int) { return utf8.DecodeRuneInString(s) }

func (m *machine) joinMethod(v value.Value, a args) (value.Value, error) {
	p, err := a.bind("join", "iterable")
	if err != nil {
		return nil, err
	}
	sep, _ := str(v)
	n := 0
	s, err := m.join(sep, p[0], func(item value.Value) (string, error) {
		s, ok := str(item)
		if !ok {
			return "", typeErrorf("sequence item %d: expected str instance, %s found", n, typeName(item))
		}
		n++
		return s, nil
	})
	return like(v, s), err
}

// join joins the texts of the items of v.
func (m *machine) join(sep string, v value.Value, print func(value.Value) (string, error)) (string, error) {
	b := text{budget: &m.budget}
	first := true
	err := m.each(v, func(item value.Value) error {
		s, err := print(item)
		if err != nil {
			return err
		}
		if !first {
			if err := b.write(sep); err != nil {
				return err
			}
		}
		first = false
		return b.write(s)
	})
	return b.String(), err
}

func (m *machine) replaceMethod(v value.Value, a args) (value.Value, error) {
	p, err := a.bind("replace", "old new count?")
	if err != nil {
		return nil, err
	}
	s, _ := str(v)
	old, err := p.str(0, "")
	if err != nil {
		return nil, err
	}
	to, err := p.str(1, "")
	if err != nil {
		return nil, err
	}
	count, err := p.int(2, -1)
	if err != nil {
		return nil, err
	}
	s, err = m.replace(s, old, to, count)
	return like(v, s), err
}

func (m *machine) replace(s, old, to string, count int) (string, error) {
	n := strings.Count(s, old)
	if count >= 0 {
		n = min(n, count)
	}
	if err := m.touch(len(s)); err != nil || n == 0 {
		return s, err
	}
	if !m.fits(n, len(to)-len(old)) {
		return "", m.allocText(-1)
	}
	if err := m.allocText(len(s) + n*(len(to)-len(old))); err != nil {
		return "", err
	}
	return strings.Replace(s, old, to, n), nil
}

// pad puts fill around s so that it is width characters wide; left says how many of the n go before it.
func (m *machine) pad(v value.Value, width int, fill string, left func(n int) int) (value.Value, error) {
	s, _ := str(v)
	size, err := m.length(v)
	if err != nil || size >= width {
		return v, err
	}
	n := width - size
	before := left(n)
	l, err := m.repeatText(fill, before)
	if err != nil {
		return nil, err
	}
	r, err := m.repeatText(fill, n-before)
	if err != nil {
		return nil, err
	}
	return like(v, l+s+r), m.allocText(len(l) + len(s) + len(r))
}

func padMethod(name string, left func(n int) int) methodFunc {
	return func(m *machine, v value.Value, a args) (value.Value, error) {
		width, fill, err := padArgs(name, a)
		if err != nil {
			return nil, err
		}
		return m.pad(v, width, fill, left)
	}
}

func padArgs(name string, a args) (width int, fill string, err error) {
	p, err := a.bind(name, "width fillchar?")
	if err != nil {
		return 0, "", err
	}
	if width, err = p.int(0, 0); err != nil {
		return 0, "", err
	}
	if fill, err = p.str(1, " "); err == nil && utf8.RuneCountInString(fill) != 1 {
		err = typeErrorf("The fill character must be exactly one character long")
	}
	return width, fill, err
}

func (m *machine) centerMethod(v value.Value, a args) (value.Value, error) {
	width, fill, err := padArgs("center", a)
	if err != nil {
		return nil, err
	}
	return m.pad(v, width, fill, centered(width))
}

// centered is where Python puts the odd space: to the left if the width is odd.
func centered(width int) func(n int) int {
	return func(n int) int { return n/2 + n&width&1 }
}

func (m *machine) zfillMethod(v value.Value, a args) (value.Value, error) {
	p, err := a.bind("zfill", "width")
	if err != nil {
		return nil, err
	}
	width, err := p.int(0, 0)
	if err != nil {
		return nil, err
	}
	s, _ := str(v)
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	padded, err := m.pad(s, width-len(sign), "0", func(n int) int { return n })
	if err != nil {
		return nil, err
	}
	return like(v, sign+padded.(string)), nil
}

func (m *machine) expandtabsMethod(v value.Value, a args) (value.Value, error) {
	p, err := a.bind("expandtabs", "tabsize?")
	if err != nil {
		return nil, err
	}
	size, err := p.int(0, 8)
	if err != nil {
		return nil, err
	}
	s, _ := str(v)
	tabs := strings.Count(s, "\t")
	if !m.fits(tabs, size) {
		return nil, m.allocText(-1)
	}
	if err := m.allocText(len(s) + tabs*max(size, 0)); err != nil {
		return nil, err
	}
	var b strings.Builder
	column := 0
	for _, r := range s {
		switch {
		case r != '\t':
			b.WriteRune(r)
			if column++; r == '\n' || r == '\r' {
				column = 0
			}
		case size > 0:
			n := size - column%size
			b.WriteString(strings.Repeat(" ", n))
			column += n
		}
	}
	return like(v, b.String()), nil
}
