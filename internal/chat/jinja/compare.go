package jinja

import (
	"math"
	"math/big"
	"strings"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// equal returns Python's a == b.
func (m *machine) equal(a, b value.Value) (bool, error) {
	if err := m.step(1); err != nil {
		return false, err
	}
	if c, ok := compareNumbers(a, b); ok {
		return c == 0, nil
	}
	if s, ok := str(a); ok {
		t, ok := str(b)
		return ok && s == t, m.touch(len(s))
	}
	switch a := a.(type) {
	case *undefined:
		_, ok := b.(*undefined)
		return ok, nil
	case *value.List:
		if b, ok := b.(*value.List); ok {
			return m.equalItems(a.Items, b.Items)
		}
		return false, nil
	case *value.Tuple:
		if b, ok := b.(*value.Tuple); ok {
			return m.equalItems(a.Items, b.Items)
		}
		return false, nil
	case *value.Object:
		if b, ok := b.(*value.Object); ok {
			return m.equalObjects(a, b)
		}
		return false, nil
	case *span:
		b, ok := b.(*span)
		return ok && (*a == *b || a.len() == b.len() && (a.len() == 0 || a.start == b.start && (a.len() == 1 || a.step == b.step))), nil
	}
	return a == b, nil // None, and things that are only equal to themselves
}

func (m *machine) equalItems(a, b []value.Value) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	if err := m.enter(); err != nil {
		return false, err
	}
	defer m.leave()
	for i := range a {
		if eq, err := m.equal(a[i], b[i]); err != nil || !eq {
			return false, err
		}
	}
	return true, nil
}

func (m *machine) equalObjects(a, b *value.Object) (bool, error) {
	if a.Len() != b.Len() {
		return false, nil
	}
	if err := m.enter(); err != nil {
		return false, err
	}
	defer m.leave()
	for k, v := range a.All() {
		w, ok, _ := b.GetKey(k)
		if !ok {
			return false, nil
		}
		if eq, err := m.equal(v, w); err != nil || !eq {
			return false, err
		}
	}
	return true, nil
}

// compareNumbers compares two numbers; ok is false if one is none. A NaN is unequal to all: the result 2.
func compareNumbers(a, b value.Value) (c int, ok bool) {
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			return compareOrdered(x, y), true
		}
	}
	x, okx := number(a)
	y, oky := number(b)
	if !okx || !oky {
		return 0, false
	}
	if isFloat(x) && math.IsNaN(x.(float64)) || isFloat(y) && math.IsNaN(y.(float64)) {
		return 2, true
	}
	if isFloat(x) && math.IsInf(x.(float64), 0) || isFloat(y) && math.IsInf(y.(float64), 0) {
		return compareOrdered(toFloat(x), toFloat(y)), true
	}
	return exact(x).Cmp(exact(y)), true // a float and an int compare by value, without rounding
}

// exact returns a finite number as a fraction.
func exact(v value.Value) *big.Rat {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v)
	case *big.Int:
		return new(big.Rat).SetInt(v)
	case float64:
		return new(big.Rat).SetFloat64(v)
	}
	return new(big.Rat)
}

func compareOrdered[T int64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// order returns -1, 0 or 1 for Python's order of a and b, or the error of `a op b` if they have none.
// 2 means not comparable: a NaN.
func (m *machine) order(a, b value.Value, op string) (int, error) {
	if err := m.step(1); err != nil {
		return 0, err
	}
	if c, ok := compareNumbers(a, b); ok {
		return c, nil
	}
	if s, ok := str(a); ok {
		if t, ok := str(b); ok {
			return strings.Compare(s, t), m.touch(min(len(s), len(t))) // UTF-8 sorts like code points
		}
	}
	if u, ok := a.(*undefined); ok {
		return 0, u.fail()
	}
	if u, ok := b.(*undefined); ok {
		return 0, u.fail()
	}
	if x, ok := a.(*value.List); ok {
		if y, ok := b.(*value.List); ok {
			return m.orderItems(x.Items, y.Items, op)
		}
	}
	if x, ok := a.(*value.Tuple); ok {
		if y, ok := b.(*value.Tuple); ok {
			return m.orderItems(x.Items, y.Items, op)
		}
	}
	return 0, typeErrorf("'%s' not supported between instances of '%s' and '%s'", op, typeName(a), typeName(b))
}

// orderItems orders by the first items that differ, then by length.
func (m *machine) orderItems(a, b []value.Value, op string) (int, error) {
	if err := m.enter(); err != nil {
		return 0, err
	}
	defer m.leave()
	for i := range min(len(a), len(b)) {
		if eq, err := m.equal(a[i], b[i]); err != nil {
			return 0, err
		} else if !eq {
			return m.order(a[i], b[i], op)
		}
	}
	return compareOrdered(int64(len(a)), int64(len(b))), nil
}

// compare returns Python's `a op b`.
func (m *machine) compare(op string, a, b value.Value) (bool, error) {
	switch op {
	case "==":
		return m.equal(a, b)
	case "!=":
		eq, err := m.equal(a, b)
		return !eq, err
	case "in":
		return m.contains(b, a)
	case "not in":
		in, err := m.contains(b, a)
		return !in, err
	}
	c, err := m.order(a, b, op)
	if err != nil || c == 2 {
		return false, err
	}
	switch op {
	case "<":
		return c < 0, nil
	case "<=":
		return c <= 0, nil
	case ">":
		return c > 0, nil
	}
	return c >= 0, nil
}
