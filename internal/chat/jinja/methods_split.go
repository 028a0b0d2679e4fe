package jinja

import (
	"math"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// splitMethod is str.split and str.rsplit: at white space or at a separator, at most maxsplit times.
func (m *machine) splitMethod(v value.Value, a args, fromRight bool) (value.Value, error) {
	p, err := a.bind("split", "sep? maxsplit?")
	if err != nil {
		return nil, err
	}
	limit, err := p.int(1, -1)
	if err != nil {
		return nil, err
	}
	if limit < 0 {
		limit = math.MaxInt
	}
	s, _ := str(v)
	if err := m.touch(len(s)); err != nil {
		return nil, err
	}
	var parts []string
	add := func(part string) error {
		parts = append(parts, part)
		return m.items(2)
	}
	if p.or(0, nil) == nil {
		err = splitSpace(s, limit, fromRight, add)
	} else {
		var sep string
		if sep, err = p.str(0, ""); err != nil {
			return nil, err
		}
		if sep == "" {
			return nil, valueErrorf("empty separator")
		}
		err = splitAt(s, sep, limit, fromRight, add)
	}
	if fromRight {
		slices.Reverse(parts)
	}
	items := make([]value.Value, len(parts))
	for i, part := range parts {
		items[i] = like(v, part)
	}
	return &value.List{Items: items}, err
}

func splitSpace(s string, limit int, fromRight bool, add func(string) error) error {
	trim, trimEnd, find := strings.TrimLeftFunc, strings.TrimRightFunc, strings.IndexFunc
	if fromRight {
		trim, trimEnd, find = trimEnd, trim, strings.LastIndexFunc
	}
	for n := 0; ; n++ {
		s = trim(s, isSpace)
		if s == "" {
			return nil
		}
		at := find(s, isSpace)
		if at < 0 {
			return add(s)
		}
		if n == limit {
			return add(trimEnd(s, isSpace))
		}
		part, rest := s[:at], s[at:]
		if fromRight {
			_, size := decodeRune(s[at:])
			part, rest = s[at+size:], s[:at]
		}
		if err := add(part); err != nil {
			return err
		}
		s = rest
	}
}

func splitAt(s, sep string, limit int, fromRight bool, add func(string) error) error {
	find := strings.Index
	if fromRight {
		find = strings.LastIndex
	}
	for range limit {
		at := find(s, sep)
		if at < 0 {
			break
		}
		part, rest := s[:at], s[at+len(sep):]
		if fromRight {
			part, rest = rest, part
		}
		if err := add(part); err != nil {
			return err
		}
		s = rest
	}
	return add(s)
}

// partition is str.partition and str.rpartition: what is before the separator, it, and what is after.
func (m *machine) partition(v value.Value, a args, fromRight bool) (value.Value, error) {
	p, err := a.bind("partition", "sep")
	if err != nil {
		return nil, err
	}
	sep, err := p.str(0, "")
	if err != nil {
		return nil, err
	}
	if sep == "" {
		return nil, valueErrorf("empty separator")
	}
	s, _ := str(v)
	parts := []string{s, "", ""}
	if fromRight {
		parts = []string{"", "", s}
	}
	at := strings.Index(s, sep)
	if fromRight {
		at = strings.LastIndex(s, sep)
	}
	if at >= 0 {
		parts = []string{s[:at], sep, s[at+len(sep):]}
	}
	t := new(value.Tuple)
	for _, part := range parts {
		t.Items = append(t.Items, like(v, part))
	}
	return t, m.alloc(len(s)/256 + 4*itemSize)
}

func (m *machine) splitlinesMethod(v value.Value, a args) (value.Value, error) {
	p, err := a.bind("splitlines", "keepends?")
	if err != nil {
		return nil, err
	}
	keep, err := p.int(0, 0)
	if err != nil {
		return nil, err
	}
	s, _ := str(v)
	lines, err := m.splitLines(s, keep != 0)
	items := make([]value.Value, len(lines))
	for i, line := range lines {
		items[i] = like(v, line)
	}
	return &value.List{Items: items}, err
}

// splitLines splits at Python's line boundaries, of which \n is one of ten.
func (m *machine) splitLines(s string, keepEnds bool) ([]string, error) {
	var lines []string
	for s != "" {
		at := strings.IndexAny(s, "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029")
		end, next := at, len(s)
		if at < 0 {
			end = len(s)
		} else {
			_, size := decodeRune(s[at:])
			if strings.HasPrefix(s[at:], "\r\n") {
				size = 2
			}
			next = at + size
		}
		if keepEnds {
			end = next
		}
		lines = append(lines, s[:end])
		if err := m.items(2); err != nil {
			return nil, err
		}
		if err := m.touch(next); err != nil {
			return nil, err
		}
		s = s[next:]
	}
	return lines, nil
}
