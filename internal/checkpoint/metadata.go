package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
)

// Metadata are the keys and values at the start of a GGUF file. They are a
// copy: they stay valid after the checkpoint is closed.
//
// Each getter answers for its own types only and reports any other type as
// absent; Get tells which it is.
type Metadata struct {
	raw    []byte // the encoded keys and values
	keys   []string
	values map[string]metaValue
}

// A metaValue is where a value is in Metadata.raw.
type metaValue struct {
	typ        metaType // of the value, or of each element
	array      bool
	count      int // elements
	start, end int // the payload, in raw
}

// A metaType is the type of a metadata value (gguf_metadata_value_type).
type metaType uint32

const (
	metaUint8 metaType = iota
	metaInt8
	metaUint16
	metaInt16
	metaUint32
	metaInt32
	metaFloat32
	metaBool
	metaString
	metaArray
	metaUint64
	metaInt64
	metaFloat64
	metaTypes // their number
)

// metaGo is the Go type that holds a value of each metaType.
var metaGo = [...]reflect.Type{
	metaUint8:   reflect.TypeFor[uint8](),
	metaInt8:    reflect.TypeFor[int8](),
	metaUint16:  reflect.TypeFor[uint16](),
	metaInt16:   reflect.TypeFor[int16](),
	metaUint32:  reflect.TypeFor[uint32](),
	metaInt32:   reflect.TypeFor[int32](),
	metaFloat32: reflect.TypeFor[float32](),
	metaBool:    reflect.TypeFor[bool](),
	metaString:  reflect.TypeFor[string](),
	metaArray:   nil,
	metaUint64:  reflect.TypeFor[uint64](),
	metaInt64:   reflect.TypeFor[int64](),
	metaFloat64: reflect.TypeFor[float64](),
}

// Keys lists the keys in the order of the file.
func (m *Metadata) Keys() []string { return slices.Clone(m.keys) }

// Arch is general.architecture, "" if the file does not say.
func (m *Metadata) Arch() string {
	arch, _ := m.String("general.architecture")
	return arch
}

// Has reports whether there is a key, of whatever type.
func (m *Metadata) Has(key string) bool {
	_, ok := m.values[key]
	return ok
}

// Get returns the value of key as the Go type of the same name, or a slice
// of it for an array; nil if there is no such key.
func (m *Metadata) Get(key string) any {
	v, ok := m.values[key]
	switch {
	case !ok:
		return nil
	case v.typ == metaString && v.array:
		return m.strings(v)
	case v.typ == metaString:
		return string(m.raw[v.start:v.end])
	}
	// v.end-v.start was checked to be exactly count numbers.
	numbers := reflect.MakeSlice(reflect.SliceOf(metaGo[v.typ]), v.count, v.count)
	if _, err := binary.Decode(m.raw[v.start:v.end], binary.LittleEndian, numbers.Interface()); err != nil {
		panic(fmt.Sprintf("metadata key %q: %v", key, err))
	}
	if v.array {
		return numbers.Interface()
	}
	return numbers.Index(0).Interface()
}

// strings decodes an array of strings. One copy of the array holds them all:
// a vocabulary has some 10⁵.
func (m *Metadata) strings(v metaValue) []string {
	text := string(m.raw[v.start:v.end])
	list := make([]string, v.count)
	at := 0
	for i := range list {
		n := int(binary.LittleEndian.Uint64(m.raw[v.start+at:]))
		list[i] = text[at+8 : at+8+n]
		at += 8 + n
	}
	return list
}

// String returns a string.
func (m *Metadata) String(key string) (string, bool) {
	s, ok := m.Get(key).(string)
	return s, ok
}

// Bool returns a boolean.
func (m *Metadata) Bool(key string) (value, ok bool) {
	value, ok = m.Get(key).(bool)
	return value, ok
}

// Int returns an integer of any type. A uint64 that does not fit is absent.
func (m *Metadata) Int(key string) (int64, bool) {
	switch v := reflect.ValueOf(m.Get(key)); {
	case v.CanInt():
		return v.Int(), true
	case v.CanUint() && v.Uint() <= math.MaxInt64:
		return int64(v.Uint()), true
	}
	return 0, false
}

// Float returns a floating-point number of either type.
func (m *Metadata) Float(key string) (float64, bool) {
	v := reflect.ValueOf(m.Get(key))
	if !v.CanFloat() {
		return 0, false
	}
	return v.Float(), true
}

// Strings returns an array of strings.
func (m *Metadata) Strings(key string) ([]string, bool) {
	list, ok := m.Get(key).([]string)
	return list, ok
}

// Floats returns an array of floating-point numbers of either type.
func (m *Metadata) Floats(key string) ([]float32, bool) {
	switch list := m.Get(key).(type) {
	case []float32:
		return list, true
	case []float64:
		out := make([]float32, len(list))
		for i, v := range list {
			out[i] = float32(v)
		}
		return out, true
	}
	return nil, false
}

// Ints returns an array of integers of any type, or of booleans as 0 and 1.
// An array with a number that does not fit is absent.
func (m *Metadata) Ints(key string) ([]int32, bool) {
	switch list := m.Get(key).(type) {
	case []int32:
		return list, true
	case []uint8:
		return toInt32(list)
	case []int8:
		return toInt32(list)
	case []uint16:
		return toInt32(list)
	case []int16:
		return toInt32(list)
	case []uint32:
		return toInt32(list)
	case []uint64:
		return toInt32(list)
	case []int64:
		return toInt32(list)
	case []bool:
		out := make([]int32, len(list))
		for i, v := range list {
			if v {
				out[i] = 1
			}
		}
		return out, true
	}
	return nil, false
}

func toInt32[T uint8 | int8 | uint16 | int16 | uint32 | uint64 | int64](list []T) ([]int32, bool) {
	out := make([]int32, len(list))
	for i, v := range list {
		out[i] = int32(v)
		if T(out[i]) != v || (out[i] < 0) != (v < 0) {
			return nil, false
		}
	}
	return out, true
}
