package jinja

import (
	"errors"
	"testing"
	"time"

	"github.com/foretoken/foretoken/internal/chat/value"
)

type semanticCase struct{ src, want, err string }

const semanticVars = `{
	"s": "Hello", "u": "aé漢😀z", "l": [1, 2, 3],
	"d": {"a": 1, "x": {"b": 2}}, "clash": {"items": 7, "keys": 8},
	"ms": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": null, "n": 2}, {"role": "user", "content": "x", "n": 1}],
	"tool": {"type": "function", "function": {"name": "f", "n": 1.0, "i": 1, "big": 12345678901234567890}}
}`

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// render compiles and renders; kind is the type of the error as Python would name it.
func render(t *testing.T, src, vars string, limits Limits) (text, kind string, err error) {
	t.Helper()
	v, err := value.Decode([]byte(vars))
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := Compile(src)
	if err == nil {
		text, err = tmpl.Render(t.Context(), v.(*value.Object), noon, limits)
	}
	var syntax *SyntaxError
	var raised *RaisedError
	var failed *Error
	var limit *LimitError
	switch {
	case errors.As(err, &syntax):
		kind = "TemplateSyntaxError"
	case errors.As(err, &raised):
		kind = "TemplateError"
	case errors.As(err, &failed):
		kind = failed.Type
	case errors.As(err, &limit):
		kind = "LimitError"
	}
	return text, kind, err
}

func TestSemantics(t *testing.T) {
	for _, group := range semantics {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				got, kind, err := render(t, c.src, semanticVars, Limits{})
				if got != c.want || kind != c.err {
					t.Errorf("%s\n got %q, %v\nwant %q %s", c.src, got, err, c.want, c.err)
				}
			}
		})
	}
}
