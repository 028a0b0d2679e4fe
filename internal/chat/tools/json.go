package tools

import (
	"strings"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// A jsonValue finds the end of a JSON value. It does not check it: strings, escapes and depth are all that
// it knows.
type jsonValue struct {
	stops  marks // end a value, too, unless they are in a string
	begun  bool
	string bool // within a string
	escape bool // behind a backslash
	depth  int  // of brackets and braces that are open
}

// scan returns how much of text belongs to the value, and whether it ends there. With hold, what may be the
// beginning of a stop is left.
func (v *jsonValue) scan(text string, hold bool) (n int, end bool) {
	for n < len(text) {
		if v.string {
			if n += v.inString(text[n:]); !v.string && v.depth == 0 {
				return n, true
			}
			continue
		}
		if mark, part := v.stops.begins(text[n:]); mark != "" || part && hold {
			return n, mark != ""
		}
		switch c := text[n]; c {
		case '"':
			if v.begun && v.depth == 0 {
				return n, true
			}
			v.string = true
		case '{', '[':
			if v.begun && v.depth == 0 {
				return n, true
			}
			v.depth++
		case '}', ']':
			if v.depth == 0 {
				return n, true
			}
			if v.depth--; v.depth == 0 {
				return n + 1, true
			}
		case ',', ' ', '\t', '\r', '\n':
			if v.depth == 0 {
				return n, true
			}
		}
		v.begun = true
		n++
	}
	return n, false
}

// inString returns how much of text belongs to the string it begins in.
func (v *jsonValue) inString(text string) (n int) {
	if v.escape {
		v.escape = false
		return 1
	}
	n = strings.IndexAny(text, `"\`)
	if n < 0 {
		return len(text)
	}
	v.string, v.escape = text[n] == '\\', text[n] == '\\'
	return n + 1
}

// jsonString returns the length of the JSON string that text begins with, quotes included, and what it
// says; 0 if it does not end.
func jsonString(text string) (n int, s string) {
	v := jsonValue{string: true}
	for n = 1; v.string && n < len(text); {
		n += v.inString(text[n:])
	}
	if v.string {
		return 0, ""
	}
	if decoded, ok := decodeJSON(text[:n]); ok {
		return n, decoded.(string)
	}
	return n, text[1 : n-1]
}

// decodeJSON returns the value that text is the JSON of, if it is.
func decodeJSON(text string) (value.Value, bool) {
	v, err := value.Decode([]byte(text))
	return v, err == nil
}

// quoted prints text as a JSON string.
func quoted(text string) string {
	s, _ := value.Encode(text) // a string always has a form
	return s
}
