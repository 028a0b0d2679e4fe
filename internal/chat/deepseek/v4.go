package deepseek

import "slices"

// effortMax is the text of V4's checkpoints for reasoning_effort max (copyright DeepSeek, MIT license). It
// stands before all messages.
const effortMax = `Reasoning Effort: Absolute maximum with no shortcuts permitted.
You MUST be very thorough in your thinking and comprehensively decompose the problem to resolve the root cause, rigorously stress-testing your logic against all potential paths, edge cases, and adversarial scenarios.
Explicitly write out your entire deliberation process, documenting every intermediate step, considered alternative, and rejected hypothesis to ensure absolutely no assumption is left unchecked.

`

// A block is a part of a user's message: text, or the result of a tool.
type block struct {
	text string
	tool bool
	id   string // of the call
}

// v4 writes messages as V4 has them. Results of tools are in the user's turn, and the assistant's mark is
// written where an answer follows.
func (w *writer) v4(messages []message) {
	messages = merge(messages)
	sortResults(messages)
	keep := w.keep || slices.ContainsFunc(messages, func(m message) bool { return m.tools != "" })
	if w.thinking && !keep {
		messages = dropDevelopers(messages)
	}
	last := lastUser(messages)
	if w.thinking && w.maxEffort {
		w.write(effortMax)
	}
	for i, m := range messages {
		w.ready = false
		switch m.role {
		case "system":
			w.write(m.text)
			w.instructions(m)
		case "developer":
			w.write(userMark, m.text)
			w.instructions(m)
		case "latest_reminder":
			w.write(reminderMark, m.text)
		case "user":
			w.write(userMark)
			w.blocks(m.blocks)
		case "assistant":
			answersTask := i > 0 && messages[i-1].task != ""
			if w.thinking && !answersTask && (keep || i > last) {
				w.write(m.reasoning, thinkEnd)
			}
			w.answer(m)
		}
		if i+1 == len(messages) || messages[i+1].role == "assistant" || messages[i+1].role == "latest_reminder" {
			w.turn(m, w.thinking && (keep || i >= last))
		}
	}
}

func (w *writer) blocks(blocks []block) {
	for i, b := range blocks {
		if i > 0 {
			w.write("\n\n")
		}
		if b.tool {
			w.write("<tool_result>", b.text, "</tool_result>")
		} else {
			w.write(b.text)
		}
	}
}

// turn hands over to the model after a message.
func (w *writer) turn(m message, think bool) {
	switch {
	case m.task == "action":
		w.write(assistantMark)
		w.think(w.thinking)
		w.write(tasks[m.task])
	case m.task != "":
		w.write(tasks[m.task])
		w.ready = true
	case m.role == "user" || m.role == "developer":
		w.write(assistantMark)
		w.think(think)
	}
}

// merge makes one message of the results of tools and the messages of the user that follow each other. A
// message that sets a task is the last one before the answer.
func merge(messages []message) []message {
	merged := make([]message, 0, len(messages))
	for _, m := range messages {
		if m.role != "user" && m.role != "tool" {
			merged = append(merged, m)
			continue
		}
		b := block{text: m.text, tool: m.role == "tool", id: m.result}
		if n := len(merged); n > 0 && merged[n-1].role == "user" && (merged[n-1].task == "" || b.tool) {
			before := &merged[n-1]
			before.blocks = append(before.blocks, b)
			if m.task != "" {
				before.task = m.task
			}
			continue
		}
		m.role = "user"
		m.blocks = []block{b}
		merged = append(merged, m)
	}
	return merged
}

// sortResults puts the results within a message into the order of the calls before it, whatever the order
// in which the tools were done. Texts between them keep their places.
func sortResults(messages []message) {
	order := map[string]int{}
	for _, m := range messages {
		if len(m.ids) > 0 {
			clear(order)
			for i, id := range m.ids {
				if id != "" {
					order[id] = i
				}
			}
		}
		var results []block
		for _, b := range m.blocks {
			if b.tool {
				results = append(results, b)
			}
		}
		slices.SortStableFunc(results, func(a, b block) int { return order[a.id] - order[b.id] })
		for i := range m.blocks {
			if m.blocks[i].tool {
				m.blocks[i], results = results[0], results[1:]
			}
		}
	}
}
