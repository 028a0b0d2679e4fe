package jinja

import (
	"context"
	"time"

	"github.com/foretoken/foretoken/internal/chat/jinja/parse"
	"github.com/foretoken/foretoken/internal/chat/value"
)

// Template is a compiled template. It is immutable: any number of renderings may run at a time.
type Template struct {
	body []parse.Stmt
}

// Compile parses a source. The error is a *SyntaxError.
func Compile(source string) (*Template, error) {
	body, err := parse.Template(source, parse.Known{
		Filter: func(name string) bool { return filters[name] != nil },
		Test:   func(name string) bool { return tests[name] != nil },
	})
	if err != nil {
		return nil, err
	}
	return &Template{body}, nil
}

// Body returns the parsed template, to look into. It must not be changed.
func (t *Template) Body() []parse.Stmt { return t.body }

// Render runs the template over the variables, which it does not change. strftime_now prints now. The
// error is a *RaisedError, an *Error or a *LimitError.
func (t *Template) Render(ctx context.Context, vars *value.Object, now time.Time, limits Limits) (string, error) {
	limits = limits.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, limits.Time)
	defer cancel()
	m := &machine{budget: newBudget(ctx, limits), vars: vars, now: now}
	m.out = &buffer{}
	if _, err := m.execAll(t.body, &scope{}); err != nil {
		return "", err
	}
	return m.out.String(), nil
}
