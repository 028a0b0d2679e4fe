package jinja

import (
	"strings"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// percent is Python's s % v: C's conversions, with (name) for the keys of a dict.
func (m *machine) percent(self value.Value, s string, v value.Value) (value.Value, error) {
	operands := []value.Value{v}
	t, isTuple := v.(*value.Tuple)
	if isTuple {
		operands = t.Items
	}
	used := 0
	next := func() (value.Value, error) {
		if used == len(operands) {
			return nil, typeErrorf("not enough arguments for format string")
		}
		used++
		return operands[used-1], nil
	}
	b := text{budget: &m.budget}
	for {
		at := strings.IndexByte(s, '%')
		if at < 0 {
			break
		}
		if err := b.write(s[:at]); err != nil {
			return nil, err
		}
		c, rest, err := parseConversion(s[at+1:], next)
		if err != nil {
			return nil, err
		}
		s = rest
		if c.verb == '%' {
			if err := b.write("%"); err != nil {
				return nil, err
			}
			continue
		}
		var x value.Value
		if c.key != nil {
			if isTuple {
				return nil, typeErrorf("format requires a mapping")
			}
			if x, err = m.item(v, *c.key); err != nil {
				return nil, err
			}
			if u, ok := x.(*undefined); ok {
				return nil, errorf("KeyError", "%s", quote(u.name.(string)))
			}
			used = len(operands)
		} else if x, err = next(); err != nil {
			return nil, err
		}
		text, err := m.convert(c, x)
		if err != nil {
			return nil, err
		}
		if _, ok := self.(markup); ok {
			text = escapeHTML(text)
		}
		if err := b.write(text); err != nil {
			return nil, err
		}
	}
	if used < len(operands) && !lookedUp(v) {
		return nil, typeErrorf("not all arguments converted during string formatting")
	}
	if err := b.write(s); err != nil {
		return nil, err
	}
	return like(self, b.String()), nil
}

// lookedUp reports whether Python takes v for a mapping, of which not all must be printed.
func lookedUp(v value.Value) bool {
	switch v.(type) {
	case *value.Object, *value.List, *undefined, *span:
		return true
	}
	return false
}

// conversion is one %(key)flags width.precision verb.
type conversion struct {
	spec
	key        *string
	left, zero bool
}

func parseConversion(s string, next func() (value.Value, error)) (c conversion, rest string, err error) {
	c.spec = spec{fill: " ", precision: -1}
	incomplete := valueErrorf("incomplete format")
	if strings.HasPrefix(s, "(") {
		depth, end := 0, -1
		for i := range len(s) {
			if s[i] == '(' {
				depth++
			} else if s[i] == ')' {
				if depth--; depth == 0 {
					end = i
					break
				}
			}
		}
		if end < 0 {
			return c, "", valueErrorf("incomplete format key")
		}
		key := s[1:end]
		c.key, s = &key, s[end+1:]
	}
	for ; s != "" && strings.IndexByte("-+ #0", s[0]) >= 0; s = s[1:] {
		switch s[0] {
		case '-':
			c.left = true
		case '#':
			c.alt = true
		case '0':
			c.zero = true
		case '+':
			c.sign = '+'
		case ' ':
			if c.sign == 0 {
				c.sign = ' '
			}
		}
	}
	number := func(n *int) error {
		var ok bool
		if strings.HasPrefix(s, "*") {
			s = s[1:]
			v, err := next()
			if err != nil {
				return err
			}
			if *n, ok = index(v); !ok {
				return typeErrorf("* wants int")
			}
			return nil
		}
		if *n, s, ok = leadingInt(s); !ok {
			return valueErrorf("width too big")
		}
		return nil
	}
	if err := number(&c.width); err != nil {
		return c, "", err
	}
	if c.width < 0 {
		c.left, c.width = true, max(-c.width, 0)
	}
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		if err := number(&c.precision); err != nil {
			return c, "", err
		}
		c.precision = max(c.precision, 0)
	}
	s = strings.TrimLeft(s, "hlL")
	if s == "" {
		return c, "", incomplete
	}
	c.verb = s[0]
	return c, s[1:], nil
}

// convert prints one operand.
func (m *machine) convert(c conversion, v value.Value) (string, error) {
	f := c.spec
	f.align = '>'
	if c.left {
		f.align = '<'
	}
	switch c.verb {
	case 's', 'r', 'a':
		print := m.text
		if c.verb != 's' {
			print = m.repr
		}
		s, err := print(v)
		if err != nil {
			return "", err
		}
		return m.formatString(s, f)
	case 'c':
		if s, ok := str(v); ok {
			if n, err := m.length(v); err != nil || n != 1 {
				return "", typeErrorf("%%c requires int or char")
			}
			f.precision = -1
			return m.formatString(s, f)
		}
	}
	n, ok := number(v)
	if !ok {
		if u, ok := v.(*undefined); ok && strings.IndexByte("diu", c.verb) >= 0 {
			return "", u.fail()
		}
		return "", typeErrorf("%%%c format: a real number is required, not %s", c.verb, typeName(v))
	}
	if c.zero && !c.left && c.verb != 'c' {
		f.align, f.fill = '=', "0"
	}
	switch c.verb {
	case 'd', 'i', 'u':
		f.verb = 'd'
		if isFloat(n) {
			var err error
			if n, err = truncate(n.(float64)); err != nil {
				return "", err
			}
		}
		return m.formatDigits(n, f)
	case 'x', 'X', 'o', 'c':
		if isFloat(n) {
			return "", typeErrorf("%%%c format: an integer is required, not float", c.verb)
		}
		if c.verb == 'c' {
			f.precision, f.sign, f.alt = -1, 0, false
			return m.formatNumber(n, f)
		}
		return m.formatDigits(n, f)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		return m.formatNumber(toFloat(n), f)
	}
	return "", valueErrorf("unsupported format character '%c'", c.verb)
}

// formatDigits prints an integer of which the precision is the least number of digits.
func (m *machine) formatDigits(n value.Value, f spec) (string, error) {
	least := f.precision
	f.precision = -1
	if least < 0 {
		return m.formatNumber(n, f)
	}
	digits, err := m.formatNumber(n, spec{fill: "0", align: '=', sign: f.sign, alt: f.alt, precision: -1, verb: f.verb})
	if err != nil {
		return "", err
	}
	prefix := digits[:len(digits)-len(strings.TrimLeft(digits, "+- "))]
	body := digits[len(prefix):]
	if f.alt && len(body) > 1 && body[0] == '0' && strings.IndexByte("xXo", body[1]) >= 0 {
		prefix, body = prefix+body[:2], body[2:]
	}
	padded, err := m.pad(body, least, "0", func(n int) int { return n })
	if err != nil {
		return "", err
	}
	return m.align(prefix, padded.(string), f)
}
