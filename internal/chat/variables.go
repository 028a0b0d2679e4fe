package chat

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/chat/jinja/parse"
)

// VariableError says what is wrong with one of a conversation's Kwargs.
type VariableError struct{ Name, Reason string }

func (e *VariableError) Error() string {
	return fmt.Sprintf("template variable %.80s: %s", e.Name, e.Reason)
}

// Reads reports whether the template looks at a variable.
func (t *Template) Reads(variable string) bool { return t.vars[variable] }

// variables are the names that a template looks at, in any scope: what it only assigns it does not read.
func variables(body []parse.Stmt) map[string]bool {
	read := map[string]bool{}
	targets := map[parse.Node]bool{} // Walk comes to assignments before their parts
	parse.Walk(body, func(n parse.Node) {
		switch n := n.(type) {
		case *parse.Set:
			targets[n.Target] = true
		case *parse.SetBlock:
			targets[n.Target] = true
		case *parse.For:
			targets[n.Target] = true
		case *parse.With:
			for _, target := range n.Targets {
				targets[target] = true
			}
		case *parse.Tuple:
			for _, item := range n.Items {
				targets[item] = targets[n]
			}
		case *parse.Name:
			if !targets[n] {
				read[n.Name] = true
			}
		}
	})
	return read
}
