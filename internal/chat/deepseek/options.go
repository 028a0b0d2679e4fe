package deepseek

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/chat"
)

// options are the Kwargs of a conversation.
type options struct {
	thinking  bool
	maxEffort bool
	keep      bool // reasoning and developer messages of earlier turns
	noBOS     bool
}

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
				return o, fmt.Errorf("template variables thinking and enable_thinking contradict each other")
			}
			mode = &b
		case "reasoning_effort":
			switch v {
			case "none", "minimal", "low", "medium", "high", "xhigh", "max":
				effort = v.(string)
			default:
				return o, fmt.Errorf("template variable reasoning_effort: expected none, minimal, low, medium, high, xhigh or max")
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
			return o, fmt.Errorf("template variable %.80v: this model has no chat template; it knows thinking, enable_thinking, reasoning_effort, drop_thinking and add_default_bos_token", k)
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
		return false, fmt.Errorf("template variable %v: expected true or false", name)
	}
	return b, nil
}
