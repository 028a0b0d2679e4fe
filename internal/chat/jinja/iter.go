package jinja

import (
	"strings"
	"unicode/utf8"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// iterator returns the next item, or ok = false at the end.
type iterator func() (item value.Value, ok bool, err error)

// iterate returns an iterator over v: items, characters, or a dict's keys.
func (m *machine) iterate(v value.Value) (iterator, error) {
	switch v := v.(type) {
	case *undefined:
		return m.counted(0, nil), nil
	case *value.List:
		return m.counted(len(v.Items), func(i int) value.Value { return v.Items[i] }), nil
	case *value.Tuple:
		return m.counted(len(v.Items), func(i int) value.Value { return v.Items[i] }), nil
	case *value.Object:
		return m.counted(v.Len(), func(i int) value.Value { k, _ := v.At(i); return k }), nil
	case *span:
		return m.counted(v.len(), v.at), nil
	case *view:
		return m.counted(v.of.Len(), v.at), nil
	case *generator:
		return v.next, nil
	case string, markup:
		s, _ := str(v)
		return func() (value.Value, bool, error) {
			if s == "" {
				return nil, false, nil
			}
			_, n := utf8.DecodeRuneInString(s)
			c := s[:n]
			s = s[n:]
			return c, true, m.step(1)
		}, nil
	}
	return nil, typeErrorf("'%s' object is not iterable", typeName(v))
}

func (m *machine) counted(n int, at func(i int) value.Value) iterator {
	i := 0
	return func() (value.Value, bool, error) {
		if i == n {
			return nil, false, nil
		}
		i++
		return at(i - 1), true, m.step(1)
	}
}

// lazy returns a generator over the items of v that f passes, in the form f gives them. Generators over
// generators nest like calls.
func (m *machine) lazy(v value.Value, f func(item value.Value) (out value.Value, keep bool, err error)) (value.Value, error) {
	var it iterator
	next := func() (value.Value, bool, error) {
		if it == nil {
			var err error
			if it, err = m.iterate(v); err != nil {
				return nil, false, err
			}
		}
		if err := m.enter(); err != nil {
			return nil, false, err
		}
		defer m.leave()
		for {
			item, ok, err := it()
			if err != nil || !ok {
				return nil, false, err
			}
			out, keep, err := f(item)
			if err != nil || keep {
				return out, keep, err
			}
		}
	}
	return &generator{next}, m.alloc(itemSize * 4)
}

// each calls f for every item of v.
func (m *machine) each(v value.Value, f func(item value.Value) error) error {
	it, err := m.iterate(v)
	if err != nil {
		return err
	}
	for {
		item, ok, err := it()
		if err != nil || !ok {
			return err
		}
		if err := f(item); err != nil {
			return err
		}
	}
}

// list returns the items of v. They must not be changed.
func (m *machine) list(v value.Value) ([]value.Value, error) {
	switch v := v.(type) {
	case *value.List:
		return v.Items, nil
	case *value.Tuple:
		return v.Items, nil
	}
	var items []value.Value
	err := m.each(v, func(item value.Value) error {
		items = append(items, item)
		return m.items(1)
	})
	return items, err
}

// newList returns a list of items that were just made.
func (m *machine) newList(items []value.Value) (value.Value, error) {
	return &value.List{Items: items}, m.items(len(items))
}

// length returns Python's len(v).
func (m *machine) length(v value.Value) (int, error) {
	switch v := v.(type) {
	case string:
		return utf8.RuneCountInString(v), m.touch(len(v))
	case markup:
		return utf8.RuneCountInString(string(v)), m.touch(len(v))
	case *value.List:
		return len(v.Items), nil
	case *value.Tuple:
		return len(v.Items), nil
	case *value.Object:
		return v.Len(), nil
	case *span:
		return v.len(), nil
	case *view:
		return v.of.Len(), nil
	case *loop:
		return v.length()
	case *undefined:
		return 0, nil
	}
	return 0, typeErrorf("object of type '%s' has no len()", typeName(v))
}

// truth returns Python's bool(v).
func truth(v value.Value) bool {
	switch v := v.(type) {
	case nil, *undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case markup:
		return v != ""
	case *value.List:
		return len(v.Items) > 0
	case *value.Tuple:
		return len(v.Items) > 0
	case *value.Object:
		return v.Len() > 0
	case *span:
		return v.len() > 0
	case *view:
		return v.of.Len() > 0
	}
	return true
}

// contains returns Python's x in v.
func (m *machine) contains(v, x value.Value) (bool, error) {
	switch v := v.(type) {
	case string, markup:
		s, _ := str(v)
		sub, ok := str(x)
		if !ok {
			return false, typeErrorf("'in <string>' requires string as left operand, not %s", typeName(x))
		}
		return strings.Contains(s, sub), m.touch(len(s))
	case *value.Object:
		_, found, hashable := v.GetKey(x)
		if !hashable {
			return false, typeErrorf("unhashable type: '%s'", typeName(x))
		}
		if s, ok := str(x); ok {
			return found, m.touch(len(s))
		}
		return found, nil
	}
	it, err := m.iterate(v)
	if err != nil {
		return false, typeErrorf("argument of type '%s' is not iterable", typeName(v))
	}
	for {
		item, ok, err := it()
		if err != nil || !ok {
			return false, err
		}
		if eq, err := m.equal(item, x); err != nil || eq {
			return eq, err
		}
	}
}
