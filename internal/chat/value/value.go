// Package value holds JSON data the way the programs that wrote the templates see it: as Python's
// dicts, lists, ints and floats. Prompts are compared token by token with those programs, so order of
// keys, the difference between 1 and 1.0 and every digit of a number are kept.
package value

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Value is one of:
//
//	nil       null (Python's None)
//	bool
//	int64     an integer
//	*big.Int  an integer outside int64, never one inside
//	float64
//	string    UTF-8
//	*List
//	*Object
//
// Templates make a few more (*Tuple, and the types of package jinja). Lists and objects that were handed
// to a rendering are shared and must not be changed any more.
type Value = any

// List is a JSON array. It is used by pointer, so that values stay comparable.
type List struct{ Items []Value }

// NewList returns a list of the items, which are copied; an int becomes an int64.
func NewList(items ...Value) *List {
	l := &List{make([]Value, len(items))}
	for i, v := range items {
		l.Items[i] = normal(v)
	}
	return l
}

// Tuple is Python's immutable sequence. JSON has none: templates make them, and JSON prints them as arrays.
type Tuple struct {
	Items  []Value
	Fields []string // of a named tuple: the items' names
}

// normal maps the one Go type that callers are bound to pass by habit to the type used here.
func normal(v Value) Value {
	if i, ok := v.(int); ok {
		return int64(i)
	}
	return v
}

// Int returns the integer in its shortest form: int64 where it fits.
func Int(i *big.Int) Value {
	if i.IsInt64() {
		return i.Int64()
	}
	return i
}

// A Hasher is a value of another package that can be a key. Equal values have equal keys.
type Hasher interface{ HashKey() any }

type (
	bigKey   string
	tupleKey string
)

// Hash returns a comparable stand-in for v: two hashable values are equal in Python exactly if their
// stand-ins are equal in Go (1, 1.0 and True are one key). ok is false for lists and objects, and for
// tuples that nest absurdly deep or large.
func Hash(v Value) (key any, ok bool) {
	room := 1 << 16
	return hash(v, 100, &room)
}

// hash looks at most depth levels into tuples and takes at most room bytes of them.
func hash(v Value, depth int, room *int) (key any, ok bool) {
	switch v := v.(type) {
	case nil, string, int64:
		return v, true
	case bool:
		if v {
			return int64(1), true
		}
		return int64(0), true
	case float64:
		if v == math.Trunc(v) {
			if math.Abs(v) < 1<<62 {
				return int64(v), true
			}
			if i, _ := big.NewFloat(v).Int(nil); i != nil {
				return hash(Int(i), depth, room)
			}
		}
		return v, true
	case *big.Int:
		return bigKey(v.String()), true
	case *Tuple:
		if depth == 0 {
			return nil, false
		}
		var b strings.Builder
		for _, item := range v.Items {
			k, ok := hash(item, depth-1, room)
			if !ok {
				return nil, false
			}
			part := keyText(k)
			if *room -= len(part) + 1; *room < 0 {
				return nil, false
			}
			b.WriteString(strconv.Itoa(len(part)))
			b.WriteByte(':')
			b.WriteString(part)
		}
		return tupleKey(b.String()), true
	case *List, *Object:
		return nil, false
	case Hasher:
		return v.HashKey(), true
	}
	return nil, false
}

// keyText writes a key with its type, so that a tuple of keys can be one string.
func keyText(k any) string {
	switch k := k.(type) {
	case nil:
		return "n"
	case string:
		return "s" + k
	case int64:
		return "i" + strconv.FormatInt(k, 10)
	case float64:
		return "f" + strconv.FormatFloat(k, 'g', -1, 64)
	case bigKey:
		return "b" + string(k)
	case tupleKey:
		return "t" + string(k)
	}
	return "?"
}

// A Namer is a value of another package that knows its type's name in Python.
type Namer interface{ TypeName() string }

// TypeName returns Python's name for the type of v.
func TypeName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64, *big.Int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case *Tuple:
		return "tuple"
	case *List:
		return "list"
	case *Object:
		return "dict"
	case Namer:
		return v.TypeName()
	}
	return fmt.Sprintf("%T", v)
}

// FormatFloat prints f as Python's repr does: the shortest decimal that reads back as f, with an exponent
// if that is below -4 or at least 16, and otherwise always with a point.
func FormatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	exp, _ := strconv.Atoi(s[strings.IndexByte(s, 'e')+1:])
	if exp < -4 || exp >= 16 {
		return s
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
