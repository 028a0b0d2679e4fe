package chat

import (
	"errors"
	"testing"
)

// A variable that a template does not read would be left out without a word.
func TestUnreadVariables(t *testing.T) {
	template := mustParse(t, `{% set shown = true %}{% for role, seen in [(1, 2)] %}{% endfor %}{% with inner = 1 %}{% endwith %}{% set block %}{% endset %}`+
		`{% macro m(x) %}{{ x if effort is defined }}{% endmacro %}{{ 'on' if thinking else 'off' }}{{ messages[0].content }}`)
	for name, read := range map[string]bool{
		"thinking": true, "effort": true, "enable_thinking": false, "shown": false, "role": false, "seen": false, "inner": false, "block": false, "content": false,
	} {
		c := Conversation{Messages: []Message{User("hi")}, Kwargs: NewObject(name, true)}
		_, err := template.Prompt(t.Context(), c)
		var e *VariableError
		if template.Reads(name) != read || (err == nil) != read || err != nil && (!errors.As(err, &e) || e.Name != name) {
			t.Errorf("%s: read %v, %v", name, template.Reads(name), err)
		}
		c.Kwargs = NewObject(name, nil)
		if _, err := template.Prompt(t.Context(), c); err != nil {
			t.Errorf("%s without a value: %v", name, err)
		}
	}
}
