package jinja

import (
	"strconv"
	"strings"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// formatMethod is str.format.
func (m *machine) formatMethod(v value.Value, a args) (value.Value, error) {
	named := new(value.Object)
	for i, name := range a.names {
		named.Set(name, a.named[i])
	}
	return m.formatWith(v, a.pos, named)
}

func (m *machine) formatMapMethod(v value.Value, a args) (value.Value, error) {
	p, err := a.bind("format_map", "mapping")
	if err != nil {
		return nil, err
	}
	named, ok := p[0].(*value.Object)
	if !ok {
		return nil, typeErrorf("format_map() takes a mapping, not %s", typeName(p[0]))
	}
	return m.formatWith(v, nil, named)
}

func (m *machine) formatWith(v value.Value, pos []value.Value, named *value.Object) (value.Value, error) {
	s, _ := str(v)
	f := bracesFormat{m: m, pos: pos, named: named}
	_, f.escape = v.(markup)
	text, err := f.format(s, 0)
	return like(v, text), err
}

// bracesFormat is one str.format: {name.attr[key]!conversion:spec}, where the spec may hold fields again.
type bracesFormat struct {
	m      *machine
	pos    []value.Value
	named  *value.Object
	auto   int  // next field without a number
	manual bool // fields have had numbers
	escape bool
}

func (f *bracesFormat) format(s string, depth int) (string, error) {
	if depth > 1 {
		return "", valueErrorf("Max string recursion exceeded")
	}
	b := text{budget: &f.m.budget}
	for {
		at := strings.IndexAny(s, "{}")
		if at < 0 {
			err := b.write(s)
			return b.String(), err
		}
		if err := b.write(s[:at]); err != nil {
			return "", err
		}
		if len(s) > at+1 && s[at+1] == s[at] {
			if err := b.write(s[at : at+1]); err != nil {
				return "", err
			}
			s = s[at+2:]
			continue
		}
		if s[at] == '}' {
			return "", valueErrorf("Single '}' encountered in format string")
		}
		field, rest, ok := cutField(s[at+1:])
		if !ok {
			return "", valueErrorf("expected '}' before end of string")
		}
		text, err := f.field(field, depth)
		if err != nil {
			return "", err
		}
		if err := b.write(text); err != nil {
			return "", err
		}
		s = rest
	}
}

// cutField cuts s at the brace that closes the field s begins in.
func cutField(s string) (field, rest string, ok bool) {
	depth := 1
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return s[:i], s[i+1:], true
			}
		}
	}
	return "", "", false
}

func (f *bracesFormat) field(field string, depth int) (string, error) {
	name, specText, _ := strings.Cut(field, ":")
	conv := ""
	if i := strings.IndexByte(field, '!'); i >= 0 && i < len(name) {
		name, conv = name[:i], name[i+1:]
	}
	v, err := f.lookup(name)
	if err != nil {
		return "", err
	}
	switch conv {
	case "":
	case "s", "r", "a":
		print := f.m.text
		if conv != "s" {
			print = f.m.repr
		}
		text, err := print(v)
		if err != nil {
			return "", err
		}
		v = text
	default:
		return "", valueErrorf("Unknown conversion specifier %s", conv)
	}
	if specText, err = f.format(specText, depth+1); err != nil {
		return "", err
	}
	spec, err := parseSpec(specText)
	if err != nil {
		return "", err
	}
	text, err := f.m.format(v, spec)
	if err == nil && f.escape {
		text = escapeHTML(text)
	}
	return text, err
}

// lookup finds what a field's name refers to.
func (f *bracesFormat) lookup(name string) (value.Value, error) {
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	first, rest := name[:end], name[end:]
	v, err := f.first(first)
	for rest != "" && err == nil {
		if rest[0] == '.' {
			end := strings.IndexAny(rest[1:], ".[") + 1
			if end == 0 {
				end = len(rest)
			}
			v, err = f.m.attr(v, rest[1:end])
			rest = rest[end:]
			continue
		}
		end := strings.IndexByte(rest, ']')
		if rest[0] != '[' || end < 0 {
			return nil, valueErrorf("Missing ']' in format string")
		}
		var key value.Value = rest[1:end]
		if i, e := strconv.ParseInt(rest[1:end], 10, 64); e == nil {
			key = i
		}
		v, err = f.m.item(v, key)
		rest = rest[end+1:]
	}
	return v, err
}

func (f *bracesFormat) first(name string) (value.Value, error) {
	i := f.auto
	if name == "" {
		if f.manual {
			return nil, valueErrorf("cannot switch from manual field specification to automatic field numbering")
		}
		f.auto++
	} else if n, err := strconv.Atoi(name); err == nil && n >= 0 {
		if f.auto > 0 {
			return nil, valueErrorf("cannot switch from manual field specification to automatic field numbering")
		}
		i, f.manual = n, true
	} else {
		v, ok := f.named.Get(name)
		if !ok {
			return nil, errorf("KeyError", "%s", quote(name))
		}
		return v, nil
	}
	if i >= len(f.pos) {
		return nil, errorf("IndexError", "Replacement index %d out of range for positional args tuple", i)
	}
	return f.pos[i], nil
}
