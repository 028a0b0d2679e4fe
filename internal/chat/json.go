package chat

import "github.com/foretoken/foretoken/internal/chat/value"

// Value is a JSON value: nil, bool, int64, *big.Int, float64, string, *List or *Object.
type Value = value.Value

// Object is a JSON object that keeps the order of its keys.
type Object = value.Object

// List is a JSON array.
type List = value.List

// NewObject returns an object of alternating keys and values.
func NewObject(keysAndValues ...Value) *Object { return value.NewObject(keysAndValues...) }

// NewList returns a list of the items.
func NewList(items ...Value) *List { return value.NewList(items...) }

// DecodeJSON reads one JSON text, keeping the order of keys and the difference between 1 and 1.0. What is
// malformed, nests deeper than value.MaxDepth or has no UTF-8 form is an error that names the byte offset.
func DecodeJSON(data []byte) (Value, error) { return value.Decode(data) }

// EncodeJSON prints a value as prompts have it: Python's json.dumps(v, ensure_ascii=False).
func EncodeJSON(v Value) (string, error) { return value.Encode(v) }
