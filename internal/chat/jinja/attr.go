package jinja

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// attr returns v.name: the attribute of that name, else the item. So d.items is the method even if d has
// a key "items".
func (m *machine) attr(v value.Value, name string) (value.Value, error) {
	if u, ok := v.(*undefined); ok {
		return nil, u.fail()
	}
	if a, ok, err := m.native(v, name); ok || err != nil {
		return a, err
	}
	if o, ok := v.(*value.Object); ok {
		if item, ok := o.Get(name); ok {
			return item, nil
		}
	}
	return missing(v, name), nil
}

// item returns v[key]: the item, else the attribute of that name. So d['items'] is the key's value, but
// the method if there is no such key.
func (m *machine) item(v, key value.Value) (value.Value, error) {
	switch x := v.(type) {
	case *undefined:
		return nil, x.fail()
	case *value.Object:
		item, ok, err := m.get(x, key)
		if ok || err != nil {
			return item, err
		}
	default:
		if i, ok := index(key); ok {
			item, ok, err := m.at(v, i)
			if ok || err != nil {
				return item, err
			}
		}
	}
	if name, ok := str(key); ok {
		if a, ok, err := m.native(v, name); ok || err != nil {
			return a, err
		}
	}
	return missing(v, key), nil
}

// get returns the value of a key that an object may have, or may not even be able to have.
func (m *machine) get(o *value.Object, key value.Value) (v value.Value, ok bool, err error) {
	if s, isStr := str(key); isStr {
		v, ok = o.Get(s)
		return v, ok, m.touch(len(s))
	}
	v, ok, _ = o.GetKey(key)
	return v, ok, m.step(1)
}

// at returns item i of a sequence; a negative i counts from the end.
func (m *machine) at(v value.Value, i int) (item value.Value, ok bool, err error) {
	n := 0
	switch v.(type) {
	case string, markup, *value.List, *value.Tuple, *span:
		if n, err = m.length(v); err != nil {
			return nil, false, err
		}
	}
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return nil, false, nil
	}
	switch x := v.(type) {
	case *value.List:
		return x.Items[i], true, nil
	case *value.Tuple:
		return x.Items[i], true, nil
	case *span:
		return x.at(i), true, nil
	}
	s, _ := str(v)
	if len(s) == n {
		return like(v, s[i:i+1]), true, nil
	}
	at := runeOffset(s, i)
	_, size := utf8.DecodeRuneInString(s[at:])
	return like(v, s[at:at+size]), true, nil
}

// runeOffset returns the byte offset of character i.
func runeOffset(s string, i int) int {
	for off := range s {
		if i == 0 {
			return off
		}
		i--
	}
	return len(s)
}

// slice returns v[lo:hi:step]. Lists and strings are never changed, so a plain slice shares them.
func (m *machine) slice(v value.Value, bounds [3]value.Value) (value.Value, error) {
	switch x := v.(type) {
	case *undefined:
		return nil, x.fail()
	case string, markup, *value.List, *value.Tuple, *span:
	case *value.Object:
		return nil, typeErrorf("unhashable type: 'slice'")
	default:
		return nil, typeErrorf("'%s' object is not subscriptable", typeName(v))
	}
	n, err := m.length(v)
	if err != nil {
		return nil, err
	}
	lo, hi, step, err := sliceBounds(bounds, n)
	if err != nil {
		return nil, err
	}
	switch x := v.(type) {
	case *value.List:
		items, err := m.sliceItems(x.Items, lo, hi, step)
		return &value.List{Items: items}, err
	case *value.Tuple:
		items, err := m.sliceItems(x.Items, lo, hi, step)
		return &value.Tuple{Items: items}, err
	case *span:
		return &span{x.start + int64(lo)*x.step, x.start + int64(hi)*x.step, x.step * int64(step)}, nil
	}
	s, _ := str(v)
	if step == 1 {
		if len(s) == n {
			return like(v, s[lo:max(lo, hi)]), nil
		}
		from := runeOffset(s, lo)
		return like(v, s[from:from+runeOffset(s[from:], max(0, hi-lo))]), nil
	}
	if err := m.alloc(4 * n); err != nil {
		return nil, err
	}
	runes := []rune(s)
	var b strings.Builder
	for i := lo; step > 0 && i < hi || step < 0 && i > hi; i += step {
		b.WriteRune(runes[i])
	}
	return like(v, b.String()), m.alloc(b.Len())
}

func (m *machine) sliceItems(items []value.Value, lo, hi, step int) ([]value.Value, error) {
	if step == 1 {
		hi = max(lo, hi)
		return items[lo:hi:hi], nil
	}
	var out []value.Value
	for i := lo; step > 0 && i < hi || step < 0 && i > hi; i += step {
		out = append(out, items[i])
	}
	return out, m.items(len(out))
}

// sliceBounds clips a slice to a sequence of n items, as Python does: the indices lo, lo+step, … before hi
// exist. A downward slice may end at -1.
func sliceBounds(bounds [3]value.Value, n int) (lo, hi, step int, err error) {
	get := func(v value.Value, def int) int {
		if v == nil {
			return def
		}
		i, ok := index(v)
		if !ok && err == nil {
			err = typeErrorf("slice indices must be integers or None or have an __index__ method")
		}
		return i
	}
	step = get(bounds[2], 1)
	if err == nil && step == 0 {
		err = valueErrorf("slice step cannot be zero")
	}
	if err != nil {
		return 0, 0, 1, err
	}
	step = min(max(step, -n-1), n+1) // a longer step takes no other item
	first, last := 0, n
	if step < 0 {
		first, last = n-1, -1
	}
	clip := func(v value.Value, def int) int {
		i := get(v, def)
		if v != nil && i < 0 {
			i = max(i+n, -1)
		}
		if step < 0 {
			return min(max(i, -1), n-1)
		}
		return min(max(i, 0), n)
	}
	lo, hi = clip(bounds[0], first), clip(bounds[1], last)
	return lo, hi, step, err
}

// native returns the attribute a Python object of v's type has of its own. Attributes the sandbox hides
// come out as undefined values that say so.
func (m *machine) native(v value.Value, name string) (value.Value, bool, error) {
	switch x := v.(type) {
	case *namespace:
		a, ok := x.attrs.Get(name)
		return a, ok, nil
	case *loop:
		return x.attr(name)
	case *cycler:
		a, ok := x.attr(name)
		return a, ok, nil
	case *macro:
		a, ok := x.attr(name)
		return a, ok, nil
	case *value.Tuple:
		if i := slices.Index(x.Fields, name); i >= 0 {
			return x.Items[i], true, nil
		}
	}
	typ := typeName(v)
	if hidden(typ, name) {
		return &undefined{hint: fmt.Sprintf("access to attribute '%s' of '%s' object is unsafe.", name, typ), err: "SecurityError"}, true, nil
	}
	f := methods[typ][name]
	if f == nil {
		return nil, false, nil
	}
	return &function{name, func(m *machine, a args) (value.Value, error) { return f(m, v, a) }}, true, nil
}

// hidden reports whether the sandbox keeps an attribute away from templates: what would change a list or
// dict, and Python's inner workings.
func hidden(typ, name string) bool {
	switch typ {
	case "list":
		switch name {
		case "append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove":
			return true
		}
	case "dict":
		switch name {
		case "clear", "pop", "popitem", "setdefault", "update":
			return true
		}
	}
	return strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__")
}

type methodFunc func(m *machine, self value.Value, a args) (value.Value, error)

// methods are the methods of Python's types.
var methods map[string]map[string]methodFunc

func init() { // in init because methods call methods
	methods = map[string]map[string]methodFunc{
		"str":    strMethods(),
		"Markup": strMethods(),
		"dict":   dictMethods,
		"list":   sequenceMethods,
		"tuple":  sequenceMethods,
		"range":  sequenceMethods,
		"int":    intMethods,
		"bool":   intMethods,
		"float":  floatMethods,
	}
}
