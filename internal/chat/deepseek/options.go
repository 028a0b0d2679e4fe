package deepseek

import (
	"fmt"
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/chat"
)

// options are the Kwargs of a conversation.
type options struct {
	thinking  bool
	maxEffort bool
	keep      bool // reasoning and developer messages of earlier turns
	noBOS     bool
}

// variables are the names of options.
var variables = []string{"thinking", "enable_thinking", "reasoning_effort", "drop_thinking", "add_default_bos_token"}

// Reads reports whether a conversation's Kwargs may have the variable.
func (*Encoding) Reads(variable string) bool { return slices.Contains(variables, variable) }

func readOptions(kwargs *chat.Object) (options, error) {
	var o options
	var mode *bool // as asked for by name
	effort := "none"
	for k, v := range kwargs.All() {
		if v == nil {
			continue
		}
		switch k {
		case "thinking", "enable_thinking":
			b, err := boolean(k, v)
			if err != nil {
				return o, err
			}
			if mode != nil && *mode != b {
				return o, &chat.VariableError{Name: "enable_thinking", Reason: "it contradicts thinking"}
			}
			mode = &b
		case "reasoning_effort":
			switch v {
			case "none", "minimal", "low", "medium", "high", "xhigh", "max":
				effort = v.(string)
			default:
				return o, &chat.VariableError{Name: "reasoning_effort", Reason: "expected none, minimal, low, medium, high, xhigh or max"}
			}
		case "drop_thinking":
			drop, err := boolean(k, v)
			if err != nil {
				return o, err
			}
			o.keep = !drop
		case "add_default_bos_token":
			add, err := boolean(k, v)
			if err != nil {
				return o, err
			}
			o.noBOS = !add
		default:
			return o, &chat.VariableError{Name: fmt.Sprint(k), Reason: "this model has no chat template; it knows " + strings.Join(variables, ", ")}
		}
	}
	o.thinking = effort != "none"
	if mode != nil {
		o.thinking = *mode
	}
	o.maxEffort = effort == "max"
	return o, nil
}

func boolean(name, v chat.Value) (bool, error) {
	b, ok := v.(bool)
	if !ok {
		return false, &chat.VariableError{Name: fmt.Sprint(name), Reason: "expected true or false"}
	}
	return b, nil
}
