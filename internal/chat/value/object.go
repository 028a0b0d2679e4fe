package value

import (
	"fmt"
	"iter"
)

// Object is a JSON object: keys in the order in which they were first set. Keys are strings except in
// objects that a template wrote down itself, where any hashable value will do. The zero value is empty
// and ready to use. It is used by pointer.
type Object struct {
	keys []Value
	vals []Value

	// Positions by Hash of the key, nil while a scan is as fast. Almost all keys are strings.
	index  map[string]int
	others map[any]int
}

const scanLimit = 8

// NewObject returns an object of alternating keys and values: NewObject("role", "user", "content", "hi").
// It panics if a key is not a string or the last value is missing.
func NewObject(keysAndValues ...Value) *Object {
	if len(keysAndValues)%2 != 0 {
		panic("value: NewObject: a key without a value")
	}
	o := new(Object)
	for i := 0; i < len(keysAndValues); i += 2 {
		o.Set(keysAndValues[i].(string), keysAndValues[i+1])
	}
	return o
}

// Len returns the number of keys. A nil object is empty.
func (o *Object) Len() int {
	if o == nil {
		return 0
	}
	return len(o.keys)
}

// At returns the i-th key and its value.
func (o *Object) At(i int) (key, val Value) { return o.keys[i], o.vals[i] }

// All yields keys and values in order.
func (o *Object) All() iter.Seq2[Value, Value] {
	return func(yield func(k, v Value) bool) {
		for i := range o.Len() {
			if !yield(o.keys[i], o.vals[i]) {
				return
			}
		}
	}
}

// Get returns the value of a string key.
func (o *Object) Get(key string) (Value, bool) {
	if i := o.find(key); i >= 0 {
		return o.vals[i], true
	}
	return nil, false
}

// GetKey returns the value of any key. hashable is false for a key no object can have.
func (o *Object) GetKey(key Value) (v Value, found, hashable bool) {
	h, ok := Hash(key)
	if !ok {
		return nil, false, false
	}
	if i := o.find(h); i >= 0 {
		return o.vals[i], true, true
	}
	return nil, false, true
}

// Set sets a string key: at the end if it is new, else in its place. An int becomes an int64.
func (o *Object) Set(key string, v Value) { o.set(key, key, normal(v)) }

// SetKey sets any key, or fails if the key is not hashable.
func (o *Object) SetKey(key, v Value) error {
	h, ok := Hash(key)
	if !ok {
		return fmt.Errorf("unhashable key of type %T", key)
	}
	o.set(h, key, v)
	return nil
}

// set reports whether there was such a key. h is the hash of the key.
func (o *Object) set(h any, key, v Value) (replaced bool) {
	if i := o.find(h); i >= 0 {
		o.vals[i] = v
		return true
	}
	o.keys = append(o.keys, key)
	o.vals = append(o.vals, v)
	switch n := len(o.keys); {
	case o.index != nil:
		o.place(h, n-1)
	case n > scanLimit:
		o.index = make(map[string]int, 2*n)
		for i, k := range o.keys {
			kh, _ := Hash(k)
			o.place(kh, i)
		}
	}
	return false
}

func (o *Object) place(h any, i int) {
	if s, ok := h.(string); ok {
		o.index[s] = i
		return
	}
	if o.others == nil {
		o.others = map[any]int{}
	}
	o.others[h] = i
}

// find returns the position of the key with hash h, or -1.
func (o *Object) find(h any) int {
	if o == nil {
		return -1
	}
	if o.index != nil {
		var i int
		var ok bool
		if s, isString := h.(string); isString {
			i, ok = o.index[s]
		} else {
			i, ok = o.others[h]
		}
		if !ok {
			return -1
		}
		return i
	}
	if s, ok := h.(string); ok {
		for i, k := range o.keys {
			if k, ok := k.(string); ok && k == s {
				return i
			}
			if k, ok := k.(Hasher); ok && k.HashKey() == h {
				return i
			}
		}
		return -1
	}
	for i, k := range o.keys {
		if kh, _ := Hash(k); kh == h {
			return i
		}
	}
	return -1
}

// Clone returns a copy that can be changed without changing o. Values are shared.
func (o *Object) Clone() *Object {
	c := &Object{
		keys: make([]Value, 0, o.Len()),
		vals: make([]Value, 0, o.Len()),
	}
	for k, v := range o.All() {
		h, _ := Hash(k)
		c.set(h, k, v)
	}
	return c
}
