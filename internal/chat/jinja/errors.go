package jinja

import (
	"errors"
	"fmt"

	"github.com/foretoken/foretoken/internal/chat/jinja/parse"
)

// SyntaxError says that a source is no template.
type SyntaxError = parse.Error

// RaisedError is what a template itself raised with raise_exception: its author's words for a conversation
// the model was not made for.
type RaisedError struct {
	Message string
	Line    int
}

func (e *RaisedError) Error() string { return e.Message }

// Error is a failure of an operation in a template: the conversation lacks what the template reads, or has
// it in another form.
type Error struct {
	Type    string // Python's name: TypeError, UndefinedError, …
	Message string
	Line    int
}

func (e *Error) Error() string {
	return fmt.Sprintf("template line %d: %s: %s", e.Line, e.Type, e.Message)
}

// LimitError says which bound a rendering ran into.
type LimitError struct {
	Limit string
	Err   error // the context's error where time was the limit
}

func (e *LimitError) Error() string { return "template: " + e.Limit }
func (e *LimitError) Unwrap() error { return e.Err }

func errorf(pythonType, format string, args ...any) error {
	return &Error{Type: pythonType, Message: fmt.Sprintf(format, args...)}
}

func typeErrorf(format string, args ...any) error  { return errorf("TypeError", format, args...) }
func valueErrorf(format string, args ...any) error { return errorf("ValueError", format, args...) }

// atLine notes where an error happened, unless an inner node has done so.
func atLine(n parse.Node, err error) error {
	var e *Error
	if errors.As(err, &e) && e.Line == 0 {
		e.Line = n.Line()
	}
	var r *RaisedError
	if errors.As(err, &r) && r.Line == 0 {
		r.Line = n.Line()
	}
	return err
}
