package jinja

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// What templates work with besides JSON values.

// undefined is what a name, key or attribute gives that is not there. It prints as nothing, is false and
// iterates over nothing; anything else done with it is an error that says what was missing.
type undefined struct {
	hint string // the whole message, if set
	of   value.Value
	has  bool // of is set: a part of something
	name value.Value
	err  string // the error's type, if it is not UndefinedError
}

func (u *undefined) HashKey() any     { return undefined{} }
func (u *undefined) TypeName() string { return "Undefined" }

func (u *undefined) fail() error {
	msg := u.hint
	if msg == "" {
		switch name := u.name.(type) {
		case string:
			msg = fmt.Sprintf("'%s' is undefined", name)
			if u.has {
				msg = fmt.Sprintf("'%s' has no attribute '%s'", objectName(u.of), name)
			}
		default:
			msg = fmt.Sprintf("%s has no element %v", objectName(u.of), name)
		}
	}
	kind := u.err
	if kind == "" {
		kind = "UndefinedError"
	}
	return errorf(kind, "%s", msg)
}

func objectName(v value.Value) string {
	if v == nil {
		return "None"
	}
	return typeName(v) + " object"
}

func missing(of, name value.Value) value.Value { return &undefined{of: of, has: true, name: name} }

// markup is a string that HTML escaping leaves alone. Nothing is escaped here, except what is joined
// to it with +, as in Python.
type markup string

func (s markup) HashKey() any     { return string(s) }
func (s markup) Text() string     { return string(s) }
func (s markup) TypeName() string { return "Markup" }

// str returns the text of a string of either kind.
func str(v value.Value) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case markup:
		return string(v), true
	}
	return "", false
}

// like returns s as the kind of string that v is.
func like(v value.Value, s string) value.Value {
	if _, ok := v.(markup); ok {
		return markup(s)
	}
	return s
}

// span is Python's range.
type span struct{ start, stop, step int64 }

func (r *span) TypeName() string { return "range" }

func (r *span) len() int {
	switch {
	case r.step > 0 && r.start < r.stop:
		return int((r.stop-r.start-1)/r.step + 1)
	case r.step < 0 && r.start > r.stop:
		return int((r.start-r.stop-1)/-r.step + 1)
	}
	return 0
}

func (r *span) at(i int) value.Value { return r.start + int64(i)*r.step }

// generator is the lazy result of filters like map and select: it can be gone through once.
type generator struct{ next iterator }

func (g *generator) TypeName() string { return "generator" }

// view is what keys(), values() and items() of a dict return.
type view struct {
	of   *value.Object
	kind string // keys, values or items
}

func (v *view) TypeName() string { return "dict_" + v.kind }

func (v *view) at(i int) value.Value {
	key, val := v.of.At(i)
	switch v.kind {
	case "keys":
		return key
	case "values":
		return val
	}
	return &value.Tuple{Items: []value.Value{key, val}}
}

// namespace is the one thing in a template whose parts can be set.
type namespace struct{ attrs *value.Object }

func (n *namespace) TypeName() string { return "Namespace" }

// function is a global or a method bound to its object.
type function struct {
	name string
	call func(m *machine, a args) (value.Value, error)
}

func (f *function) TypeName() string { return "function" }

// cycler goes round its items, one for each call of next.
type cycler struct {
	items []value.Value
	pos   int
}

func (c *cycler) TypeName() string { return "Cycler" }

// typeName returns Python's name for the type of v.
func typeName(v value.Value) string { return value.TypeName(v) }
