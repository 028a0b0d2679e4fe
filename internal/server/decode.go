package server

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// bodyLimits bound the JSON of a body beside its length, as each value takes
// memory beyond its text: a batch of prompts as token ids has fewer values, a
// logit_bias for every token of the largest vocabularies no more keys, and a
// number of more digits is none that anybody reads.
var bodyLimits = value.Limits{Values: 1 << 20, Keys: 1 << 18, Digits: 64}

// A checker is a struct of fields that knows more of them than their types.
type checker interface{ check() error }

// A reader is the type of a field that has several forms.
type reader interface {
	read(path string, v value.Value) error
}

// readRequest reads the body of r, a JSON object, into the struct that into
// points to. Fields have their names as json tags; null is as good as absent. A
// field that the struct does not have is an error, as is a key that comes twice.
func readRequest(r *http.Request, into any) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		// Who set these limits knows what to say of them.
		if large := (*http.MaxBytesError)(nil); errors.As(err, &large) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errLarge) {
			return fmt.Errorf("reading the body: %w", err)
		}
		return badRequest("", "the body could not be read to its end")
	}
	return decodeRequest(body, into)
}

func decodeRequest(body []byte, into any) error {
	v, err := value.DecodeUnique(body, bodyLimits)
	if err != nil {
		return badRequest("", "the body is not what this server reads as JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	o, ok := v.(*value.Object)
	if !ok {
		return badRequest("", "the body is %s, expected a JSON object", kindOf(v))
	}
	return fillStruct("", o, reflect.ValueOf(into).Elem())
}

// fill sets a field to a value that is not null.
func fill(path string, v value.Value, to reflect.Value) error {
	if r, ok := reflect.TypeAssert[reader](to.Addr()); ok {
		return r.read(path, v)
	}
	mismatch := func(expected string) error {
		return badRequest(path, "%s is %s, expected %s", path, kindOf(v), expected)
	}
	switch to.Kind() {
	case reflect.Interface: // value.Value
		to.Set(reflect.ValueOf(v))
	case reflect.Pointer:
		if o, ok := v.(*value.Object); to.Type() == reflect.TypeFor[*value.Object]() {
			if !ok {
				return mismatch("an object")
			}
			to.Set(reflect.ValueOf(o))
			return nil
		}
		to.Set(reflect.New(to.Type().Elem()))
		return fill(path, v, to.Elem())
	case reflect.String:
		s, ok := v.(string)
		if !ok {
			return mismatch("a string")
		}
		to.SetString(s)
	case reflect.Bool:
		b, ok := v.(bool)
		if !ok {
			return mismatch("true or false")
		}
		to.SetBool(b)
	case reflect.Int, reflect.Int32, reflect.Int64:
		i, ok := integer(v)
		if !ok || to.OverflowInt(i) {
			return mismatch(fmt.Sprintf("an integer of %d bits", to.Type().Bits()))
		}
		to.SetInt(i)
	case reflect.Float32:
		f, ok := number(v)
		if !ok || math.Abs(f) > math.MaxFloat32 {
			return mismatch("a number within float32")
		}
		to.SetFloat(f)
	case reflect.Slice:
		l, ok := v.(*value.List)
		if !ok {
			return mismatch("a list")
		}
		if ids, ok := reflect.TypeAssert[*[]int32](to.Addr()); ok { // of which there may be very many
			var err error
			*ids, err = tokenIDs(path, l)
			return err
		}
		to.Set(reflect.MakeSlice(to.Type(), len(l.Items), len(l.Items)))
		for i, item := range l.Items {
			at := fmt.Sprintf("%s[%d]", path, i)
			if item == nil {
				return badRequest(at, "%s is null", at)
			}
			if err := fill(at, item, to.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		o, ok := v.(*value.Object)
		if !ok {
			return mismatch("an object")
		}
		return fillStruct(path, o, to)
	default:
		panic(fmt.Sprintf("server: field %s of type %v", path, to.Type()))
	}
	return nil
}

func fillStruct(path string, o *value.Object, to reflect.Value) error {
	fields := fieldsOf(to.Type())
	for k, v := range o.All() {
		name := k.(string) // decoded objects have no other keys
		at := clip(name)
		if path != "" {
			at = path + "." + at
		}
		field, known := fields[name]
		switch {
		case !known:
			if err := refuseField(at, name, v, fields); err != nil {
				return err
			}
		case v != nil:
			if err := fill(at, v, to.FieldByIndex(field)); err != nil {
				return err
			}
		}
	}
	if c, ok := reflect.TypeAssert[checker](to.Addr()); ok {
		return c.check()
	}
	return nil
}

// typeFields are the results of fieldsOf by type: there may be very many messages.
var typeFields sync.Map // map[reflect.Type]map[string][]int

// fieldsOf returns where the fields of a struct are by their json names, those
// of embedded structs with them.
func fieldsOf(s reflect.Type) map[string][]int {
	if all, ok := typeFields.Load(s); ok {
		return all.(map[string][]int)
	}
	all := map[string][]int{}
	for _, f := range reflect.VisibleFields(s) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous {
			all[name] = f.Index
		}
	}
	typeFields.Store(s, all)
	return all
}

// refuseField says why a field is none of the request's. What asks for nothing
// is harmless where the field has a meaning elsewhere.
func refuseField(path, name string, v value.Value, fields map[string][]int) error {
	if why, ok := unsupported[name]; ok {
		if asksNothing(v) {
			return nil
		}
		return badRequest(path, "%s is not supported: %s", path, why)
	}
	for known := range fields {
		if plain(known) == plain(name) {
			return badRequest(path, "unknown field %q; did you mean %q?", path, known)
		}
	}
	return badRequest(path, "unknown field %q", path)
}

// clip is a client's text as messages have it.
func clip(text string) string {
	if r := []rune(text); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return text
}

// plain is a name without what people write differently.
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

func asksNothing(v value.Value) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case *value.List:
		return len(v.Items) == 0
	case *value.Object:
		return v.Len() == 0
	}
	return false
}

// integer also takes 16.0, which languages without integers write.
func integer(v value.Value) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		if i := int64(v); math.Abs(v) < 1<<53 && float64(i) == v {
			return i, true
		}
	}
	return 0, false
}

func number(v value.Value) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// kindOf names a value in a message, and shows it if it is short.
func kindOf(v value.Value) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		if len(v) > 40 {
			return "a string"
		}
		return fmt.Sprintf("%q", v)
	case *value.List:
		return "a list"
	case *value.Object:
		return "an object"
	case bool, int64, float64:
		return fmt.Sprint(v)
	}
	return "a number beyond 64 bits"
}
