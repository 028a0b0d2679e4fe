package deepseek

import "fmt"

// v32 writes messages as V3.2 has them. Turns are open at their start: the mark that opens the assistant's
// reasoning, or says that there is none, stands behind the message that it answers.
func (w *writer) v32(messages []message) error {
	if w.thinking && !w.keep {
		messages = dropDevelopers(messages)
	}
	last := lastUser(messages)
	calls, results := 0, 0 // of the assistant's message right before
	for i, m := range messages {
		w.ready = false
		switch m.role {
		case "system":
			w.write(m.text)
			w.instructions(m)
		case "user", "developer":
			w.write(userMark)
			if m.role == "developer" {
				w.instructions(m)
				w.write("\n\n# The user's message is: ")
			}
			w.write(m.text, assistantMark)
			w.think(w.thinking && i == last)
		case "assistant":
			if w.thinking && i > last {
				if m.reasoning == "" && m.calls == "" {
					return fmt.Errorf("message %d (assistant): expected reasoning_content or tool_calls: in thinking mode every answer since the last message of the user has them", m.number)
				}
				w.write(m.reasoning, thinkEnd)
			}
			w.answer(m)
		case "tool":
			if results++; results > calls {
				return fmt.Errorf("message %d (tool): it answers none of the %d calls before it", m.number, calls)
			}
			if results == 1 {
				w.write("\n\n<function_results>")
			}
			w.write("\n<result>", m.text, "</result>")
			if results == calls {
				w.write("\n</function_results>\n\n")
				w.think(w.thinking && i >= last)
			}
			continue
		}
		calls, results = len(m.ids), 0
	}
	return nil
}
