package jinja

import (
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/chat/value"
)

func lengthFilter(m *machine, v value.Value, p params) (value.Value, error) {
	n, err := m.length(v)
	return int64(n), err
}

func firstFilter(m *machine, v value.Value, p params) (value.Value, error) {
	it, err := m.iterate(v)
	if err != nil {
		return nil, err
	}
	item, ok, err := it()
	if err == nil && !ok {
		return &undefined{hint: "No first item, sequence was empty."}, nil
	}
	return item, err
}

func lastFilter(m *machine, v value.Value, p params) (value.Value, error) {
	items, err := m.reversed(v)
	if err != nil {
		return nil, err
	}
	item, ok, err := items()
	if err == nil && !ok {
		return &undefined{hint: "No last item, sequence was empty."}, nil
	}
	return item, err
}

// reversed returns an iterator from the end, where v has one.
func (m *machine) reversed(v value.Value) (iterator, error) {
	switch x := v.(type) {
	case *value.Object:
		v = &view{x, "keys"}
	case string, markup, *value.List, *value.Tuple, *span, *view, *undefined:
	default:
		return nil, typeErrorf("'%s' object is not reversible", typeName(v))
	}
	items, err := m.list(v)
	if err != nil {
		return nil, err
	}
	return m.counted(len(items), func(i int) value.Value { return items[len(items)-1-i] }), nil
}

func reverseFilter(m *machine, v value.Value, p params) (value.Value, error) {
	if _, ok := str(v); ok {
		return m.slice(v, [3]value.Value{nil, nil, int64(-1)})
	}
	if it, err := m.reversed(v); err == nil {
		return &generator{it}, nil
	}
	items, err := m.list(v)
	if err != nil {
		return nil, errorf("FilterArgumentError", "argument must be iterable")
	}
	items = slices.Clone(items)
	slices.Reverse(items)
	return m.newList(items)
}

func listFilter(m *machine, v value.Value, p params) (value.Value, error) {
	items, err := m.list(v)
	return &value.List{Items: items}, err
}

// itemsFilter is v.items(), and nothing for an undefined v.
func itemsFilter(m *machine, v value.Value, p params) (value.Value, error) {
	src := v
	switch x := v.(type) {
	case *undefined:
	case *value.Object:
		src = &view{x, "items"}
	default: // an error, but only when the items are asked for
		return &generator{func() (value.Value, bool, error) {
			return nil, false, typeErrorf("Can only get item pairs from a mapping.")
		}}, nil
	}
	it, err := m.iterate(src)
	return &generator{it}, err
}

func dictsortFilter(m *machine, v value.Value, p params) (value.Value, error) {
	by, err := p.str(1, "key")
	if err != nil {
		return nil, err
	}
	if by != "key" && by != "value" {
		return nil, errorf("FilterArgumentError", `You can only sort by either "key" or "value"`)
	}
	o, ok := v.(*value.Object)
	if !ok {
		return nil, missingMethod(v, "items")
	}
	pairs, err := m.list(&view{o, "items"})
	if err != nil {
		return nil, err
	}
	reverse, err := p.int(2, 0)
	if err != nil {
		return nil, err
	}
	return m.sorted(pairs, reverse != 0, func(item value.Value) (value.Value, error) {
		t := item.(*value.Tuple)
		key := t.Items[0]
		if by == "value" {
			key = t.Items[1]
		}
		if p.truth(0) {
			return key, nil
		}
		return m.ignoreCase(key)
	})
}

// missingMethod is the error of calling a method that v does not have.
func missingMethod(v value.Value, name string) error {
	if u, ok := v.(*undefined); ok {
		return u.fail()
	}
	return errorf("AttributeError", "'%s' object has no attribute '%s'", typeName(v), name)
}

// sorted returns the items in the order of their keys. Equal ones stay as they are, in either direction.
func (m *machine) sorted(items []value.Value, reverse bool, key func(value.Value) (value.Value, error)) (value.Value, error) {
	type keyed struct{ item, key value.Value }
	if err := m.items(3 * len(items)); err != nil {
		return nil, err
	}
	all := make([]keyed, len(items))
	for i, item := range items {
		k, err := key(item)
		if err != nil {
			return nil, err
		}
		all[i] = keyed{item, k}
	}
	var err error
	slices.SortStableFunc(all, func(a, b keyed) int {
		if err != nil {
			return 0
		}
		if reverse {
			a, b = b, a
		}
		var c int
		if c, err = m.order(a.key, b.key, "<"); c == 2 {
			return 0
		}
		return c
	})
	out := make([]value.Value, len(all))
	for i, x := range all {
		out[i] = x.item
	}
	return &value.List{Items: out}, err
}

// keyOf returns what an item is compared by: its attribute, in lower case unless case matters.
func (m *machine) keyOf(attribute value.Value, caseSensitive bool) func(value.Value) (value.Value, error) {
	along := path(attribute)
	return func(item value.Value) (value.Value, error) {
		v, err := m.follow(item, along, nil)
		if err != nil || caseSensitive {
			return v, err
		}
		return m.ignoreCase(v)
	}
}

func sortFilter(m *machine, v value.Value, p params) (value.Value, error) {
	items, err := m.list(v)
	if err != nil {
		return nil, err
	}
	keys := []func(value.Value) (value.Value, error){}
	if s, ok := str(p.or(2, nil)); ok { // "a,b": by a, then by b
		for part := range strings.SplitSeq(s, ",") {
			keys = append(keys, m.keyOf(part, p.truth(1)))
		}
	} else {
		keys = append(keys, m.keyOf(p.or(2, nil), p.truth(1)))
	}
	reverse, err := p.int(0, 0)
	if err != nil {
		return nil, err
	}
	return m.sorted(items, reverse != 0, func(item value.Value) (value.Value, error) {
		l := new(value.List) // even of one: items whose keys are equal need no order
		for _, key := range keys {
			k, err := key(item)
			if err != nil {
				return nil, err
			}
			l.Items = append(l.Items, k)
		}
		return l, m.items(len(keys))
	})
}

func uniqueFilter(m *machine, v value.Value, p params) (value.Value, error) {
	key := m.keyOf(p.or(1, nil), p.truth(0))
	seen := map[any]bool{}
	return m.lazy(v, func(item value.Value) (value.Value, bool, error) {
		k, err := key(item)
		if err != nil {
			return nil, false, err
		}
		h, ok := value.Hash(k)
		if !ok {
			return nil, false, typeErrorf("unhashable type: '%s'", typeName(k))
		}
		if s, ok := str(k); ok {
			if err := m.touch(len(s)); err != nil {
				return nil, false, err
			}
		}
		if seen[h] {
			return nil, false, nil
		}
		seen[h] = true
		return item, true, m.items(2)
	})
}

// extremeFilter is min or max: the first of the items that no other one passes.
func extremeFilter(op string, sign int) func(m *machine, v value.Value, p params) (value.Value, error) {
	return func(m *machine, v value.Value, p params) (value.Value, error) {
		key := m.keyOf(p.or(1, nil), p.truth(0))
		var best, bestKey value.Value
		found := false
		err := m.each(v, func(item value.Value) error {
			k, err := key(item)
			if err != nil {
				return err
			}
			if found {
				if c, err := m.order(k, bestKey, op); err != nil || c != sign {
					return err
				}
			}
			best, bestKey, found = item, k, true
			return nil
		})
		if err == nil && !found {
			return &undefined{hint: "No aggregated item, sequence was empty."}, nil
		}
		return best, err
	}
}

// mapFilter applies a filter to every item, or takes an attribute of each.
func mapFilter(m *machine, v value.Value, a args) (value.Value, error) {
	f, err := m.mapping(a)
	return m.lazyIfAny(v, func(item value.Value) (value.Value, bool, error) {
		if err != nil {
			return nil, false, err
		}
		out, err := f(item)
		return out, true, err
	})
}

// lazyIfAny is lazy, but like Jinja's filters does not look at a false v at all.
func (m *machine) lazyIfAny(v value.Value, f func(value.Value) (value.Value, bool, error)) (value.Value, error) {
	if !truth(v) {
		v = &value.List{}
	}
	return m.lazy(v, f)
}

func (m *machine) mapping(a args) (func(value.Value) (value.Value, error), error) {
	if attribute, ok := a.take("attribute"); ok && len(a.pos) == 0 {
		def, _ := a.take("default")
		if len(a.names) > 0 {
			return nil, errorf("FilterArgumentError", "Unexpected keyword argument '%s'", a.names[0])
		}
		along := path(attribute)
		return func(item value.Value) (value.Value, error) { return m.follow(item, along, def) }, nil
	}
	if len(a.pos) == 0 {
		return nil, errorf("FilterArgumentError", "map requires a filter argument")
	}
	name, ok := str(a.pos[0])
	if !ok {
		return nil, errorf("TemplateRuntimeError", "map wants the name of a filter, not %s", typeName(a.pos[0]))
	}
	a.pos = a.pos[1:]
	return func(item value.Value) (value.Value, error) { return m.filter(name, item, a) }, nil
}

// selectFilter is select and reject: by a test of the item, or with byAttr of its attribute.
func selectFilter(want, byAttr bool) filterFunc {
	return func(m *machine, v value.Value, a args) (value.Value, error) {
		f, err := m.condition(a, byAttr)
		return m.lazyIfAny(v, func(item value.Value) (value.Value, bool, error) {
			if err != nil {
				return nil, false, err
			}
			ok, err := f(item)
			return item, ok == want, err
		})
	}
}

func (m *machine) condition(a args, byAttr bool) (func(value.Value) (bool, error), error) {
	var along []value.Value
	if byAttr {
		if len(a.pos) == 0 {
			return nil, errorf("FilterArgumentError", "Missing parameter for attribute name")
		}
		along = path(a.pos[0])
		a.pos = a.pos[1:]
	}
	test := func(v value.Value) (bool, error) { return truth(v), nil }
	if len(a.pos) > 0 {
		name, ok := str(a.pos[0])
		if !ok {
			return nil, errorf("TemplateRuntimeError", "select wants the name of a test, not %s", typeName(a.pos[0]))
		}
		a.pos = a.pos[1:]
		test = func(v value.Value) (bool, error) { return m.test(name, v, a) }
	}
	return func(item value.Value) (bool, error) {
		v, err := m.follow(item, along, nil)
		if err != nil {
			return false, err
		}
		return test(v)
	}, nil
}
