package tools

import (
	"strings"

	"github.com/foretoken/foretoken/internal/chat"
	"github.com/foretoken/foretoken/internal/chat/value"
)

// functions are those that a model may call, by name.
type functions map[string]*function

// A function knows the JSON schema of its parameters.
type function struct{ schema *value.Object }

// newFunctions reads a list as the OpenAI API has it. What is no function is left out.
func newFunctions(tools []chat.Value) functions {
	all := functions{}
	for _, tool := range tools {
		object, _ := tool.(*value.Object)
		f := objectIn(object, "function")
		if f == nil {
			f = object
		}
		if name, _ := f.Get("name"); name != nil {
			if name, ok := name.(string); ok && name != "" {
				all[name] = &function{objectIn(f, "parameters")}
			}
		}
	}
	return all
}

// objectIn returns a field that is an object, else nil.
func objectIn(o *value.Object, key string) *value.Object {
	v, _ := o.Get(key)
	field, _ := v.(*value.Object)
	return field
}

// types are those that a schema allows.
type types uint8

const (
	stringType types = 1 << iota
	integerType
	numberType
	booleanType
	arrayType
	objectType
	nullType

	anyType = ^types(0)
)

var typeNames = map[string]types{
	"string": stringType, "integer": integerType, "number": numberType, "boolean": booleanType,
	"array": arrayType, "object": objectType, "null": nullType,
}

// schemaSteps bounds the schemas that are looked at for one parameter: references may go round in circles.
const schemaSteps = 200

// types returns what a parameter may be, 0 if the schema does not say.
func (f *function) types(parameter string) types {
	v, _ := objectIn(f.schema, "properties").Get(parameter)
	steps := schemaSteps
	return f.typesOf(v, &steps)
}

func (f *function) typesOf(schema value.Value, steps *int) (t types) {
	o, ok := schema.(*value.Object)
	if *steps--; !ok || *steps < 0 {
		return 0
	}
	if ref, _ := o.Get("$ref"); ref != nil {
		return f.typesOf(f.resolve(ref), steps)
	}
	switch named, _ := o.Get("type"); named := named.(type) {
	case string:
		t = typeNames[named]
	case *value.List:
		for _, name := range named.Items {
			name, _ := name.(string)
			t |= typeNames[name]
		}
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := o.Get(key)
		if list, ok := list.(*value.List); ok && t == 0 {
			for _, one := range list.Items {
				t |= f.typesOf(one, steps)
			}
		}
	}
	for _, implied := range []struct {
		key string
		t   types
	}{{"enum", stringType}, {"items", arrayType}, {"properties", objectType}} {
		if _, ok := o.Get(implied.key); ok && t == 0 {
			t = implied.t
		}
	}
	return t
}

// resolve follows a reference within the function's schema, #/$defs/name.
func (f *function) resolve(ref value.Value) value.Value {
	path, _ := ref.(string)
	path, ok := strings.CutPrefix(path, "#/")
	if !ok {
		return nil
	}
	var at value.Value = f.schema
	for part := range strings.SplitSeq(path, "/") {
		o, ok := at.(*value.Object)
		if !ok {
			return nil
		}
		at, _ = o.Get(strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
	}
	return at
}

// json is the JSON of a parameter's text: what it is the text of, if the types allow that, in the model's
// own digits; else a string.
func (t types) json(text string) string {
	trimmed := strings.TrimSpace(text)
	if t&^stringType != 0 && strings.EqualFold(trimmed, "null") {
		return "null"
	}
	if t&booleanType != 0 && (strings.EqualFold(trimmed, "true") || strings.EqualFold(trimmed, "false")) {
		return strings.ToLower(trimmed)
	}
	v, ok := decodeJSON(trimmed)
	if ok && t&typeOf(v) != 0 {
		return trimmed
	}
	return quoted(text)
}

// typeOf returns the types that a JSON value is of, but for strings: quotes are part of a parameter's text.
func typeOf(v value.Value) types {
	switch v := v.(type) {
	case *value.List:
		return arrayType
	case *value.Object:
		return objectType
	case bool, string, nil:
		return 0
	case float64:
		if v != float64(int64(v)) {
			return numberType
		}
	}
	return integerType | numberType
}
