package jinja

import (
	"math/big"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// binary returns Python's `a op b`.
func (m *machine) binary(op string, a, b value.Value) (value.Value, error) {
	x, okx := number(a)
	y, oky := number(b)
	if okx && oky {
		return m.counting(arithmetic(op, x, y))
	}
	if op == "%" {
		if s, ok := str(a); ok {
			return m.percent(a, s, b)
		}
	}
	for _, v := range []value.Value{a, b} {
		if u, ok := v.(*undefined); ok {
			return nil, u.fail()
		}
	}
	switch op {
	case "+":
		return m.add(a, b)
	case "*":
		if okx {
			return m.repeat(b, a)
		}
		return m.repeat(a, b)
	}
	return nil, unsupported(op, a, b)
}

// counting charges for a large integer.
func (m *machine) counting(v value.Value, err error) (value.Value, error) {
	if i, ok := v.(*big.Int); ok && err == nil {
		err = m.alloc(i.BitLen() / 8)
	}
	return v, err
}

func unsupported(op string, a, b value.Value) error {
	if op == "**" {
		op = "** or pow()"
	}
	return typeErrorf("unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(a), typeName(b))
}

// add joins strings, lists and tuples.
func (m *machine) add(a, b value.Value) (value.Value, error) {
	switch x := a.(type) {
	case string, markup:
		s, _ := str(a)
		t, ok := str(b)
		if !ok {
			return nil, typeErrorf(`can only concatenate str (not "%s") to str`, typeName(b))
		}
		_, safeA := a.(markup)
		_, safeB := b.(markup)
		switch {
		case safeA && !safeB:
			t = escapeHTML(t)
		case safeB && !safeA:
			s = escapeHTML(s)
		}
		if err := m.allocText(len(s) + len(t)); err != nil {
			return nil, err
		}
		if safeA || safeB {
			return markup(s + t), nil
		}
		return s + t, nil
	case *value.List:
		y, ok := b.(*value.List)
		if !ok {
			return nil, typeErrorf(`can only concatenate list (not "%s") to list`, typeName(b))
		}
		if err := m.items(len(x.Items) + len(y.Items)); err != nil {
			return nil, err
		}
		return &value.List{Items: slices.Concat(x.Items, y.Items)}, nil
	case *value.Tuple:
		y, ok := b.(*value.Tuple)
		if !ok {
			return nil, typeErrorf(`can only concatenate tuple (not "%s") to tuple`, typeName(b))
		}
		if err := m.items(len(x.Items) + len(y.Items)); err != nil {
			return nil, err
		}
		return &value.Tuple{Items: slices.Concat(x.Items, y.Items)}, nil
	}
	return nil, unsupported("+", a, b)
}

// repeat returns v * count.
func (m *machine) repeat(v, count value.Value) (value.Value, error) {
	n, ok := index(count)
	n = max(n, 0)
	switch x := v.(type) {
	case string, markup:
		if !ok {
			break
		}
		s, _ := str(v)
		text, err := m.repeatText(s, n)
		return like(v, text), err
	case *value.List:
		if !ok {
			break
		}
		items, err := m.repeatItems(x.Items, n)
		return &value.List{Items: items}, err
	case *value.Tuple:
		if !ok {
			break
		}
		items, err := m.repeatItems(x.Items, n)
		return &value.Tuple{Items: items}, err
	default:
		return nil, unsupported("*", v, count)
	}
	return nil, typeErrorf("can't multiply sequence by non-int of type '%s'", typeName(count))
}

func (m *machine) repeatText(s string, n int) (string, error) {
	if s == "" || n <= 0 {
		return "", nil
	}
	if !m.fits(n, len(s)) {
		return "", m.allocText(-1)
	}
	if err := m.allocText(n * len(s)); err != nil {
		return "", err
	}
	return strings.Repeat(s, n), nil
}

func (m *machine) repeatItems(items []value.Value, n int) ([]value.Value, error) {
	if len(items) == 0 {
		return nil, nil
	}
	if n > m.memory/len(items) {
		return nil, m.alloc(-1)
	}
	if err := m.items(n * len(items)); err != nil {
		return nil, err
	}
	return slices.Repeat(items, n), nil
}

// unary returns -v or +v.
func (m *machine) unary(op string, v value.Value) (value.Value, error) {
	n, ok := number(v)
	if !ok {
		if u, ok := v.(*undefined); ok {
			return nil, u.fail()
		}
		return nil, typeErrorf("bad operand type for unary %s: '%s'", op, typeName(v))
	}
	if op == "+" {
		return n, nil
	}
	switch n := n.(type) {
	case float64:
		return -n, nil
	case *big.Int:
		return value.Int(new(big.Int).Neg(n)), nil
	}
	return m.counting(arithmetic("-", int64(0), n))
}
