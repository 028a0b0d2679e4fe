// Package chat turns conversations into prompts with the chat template of a checkpoint.
//
// Template.Render runs a template over variables as they are. Template.Prompt takes a conversation and
// first brings it into the form that this template wants, which differs from family to family: content as
// text or as a list of parts, a call's arguments as an object or as JSON text, where reasoning goes.
package chat

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/foretoken/foretoken/internal/chat/jinja"
)

// Template is a compiled chat template. It is immutable and may be used by many goroutines at a time.
type Template struct {
	jinja  *jinja.Template
	reads  reads
	vars   map[string]bool // that it looks at
	wants  func() wants    // found out with the first conversation
	limits jinja.Limits
}

// TemplateError says that a template refused a conversation or failed on it. Either way the conversation
// does not fit the model: for a server, a bad request.
type TemplateError struct {
	Message string // for people; for a refusal, the words of the template's author
	Raised  bool   // a refusal by raise_exception
	Err     error
}

func (e *TemplateError) Error() string { return e.Message }
func (e *TemplateError) Unwrap() error { return e.Err }

// LimitError says that a rendering took too long or grew too large.
type LimitError = jinja.LimitError

// Parse compiles the source of a chat template.
func Parse(source string) (*Template, error) { return compile(source, jinja.Limits{}) }

func compile(source string, limits jinja.Limits) (*Template, error) {
	j, err := jinja.Compile(source)
	if err != nil {
		return nil, err
	}
	t := &Template{jinja: j, reads: inspect(j.Body()), vars: variables(j.Body()), limits: limits}
	t.wants = sync.OnceValue(t.probe)
	return t, nil
}

// Render runs the template over variables: messages, tools, add_generation_prompt, bos_token and whatever
// else it reads. strftime_now prints now. The error is a *TemplateError or, if the context ends or the
// rendering goes beyond what any prompt needs, a *LimitError.
func (t *Template) Render(ctx context.Context, vars *Object, now time.Time) (string, error) {
	text, err := t.jinja.Render(ctx, vars, now, t.limits)
	var limit *LimitError
	if err == nil || errors.As(err, &limit) {
		return text, err
	}
	var raised *jinja.RaisedError
	return "", &TemplateError{Message: err.Error(), Raised: errors.As(err, &raised), Err: err}
}
