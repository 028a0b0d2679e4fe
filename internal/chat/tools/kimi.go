package tools

import "strings"

const (
	kimiCalls     = "<|tool_calls_section_begin|>"
	kimiCallsEnd  = "<|tool_calls_section_end|>"
	kimiCall      = "<|tool_call_begin|>"
	kimiCallEnd   = "<|tool_call_end|>"
	kimiArguments = "<|tool_call_argument_begin|>"
)

var (
	kimiCallMark = newMarks([]string{kimiCall})
	kimiIDEnd    = newMarks([]string{kimiArguments})
)

// kimi is what Kimi K2 writes. A call's id holds its function's name and counts the calls of the
// conversation; the model has to get it back as it is.
//
//	<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{…}<|tool_call_end|><|tool_calls_section_end|>
func kimi() syntax {
	call := func(p *parser) {
		p.begin()
		p.state = newMarkedCall(p).kimiID
	}
	return syntax{
		starts:      []string{kimiCalls, kimiCall},
		ends:        []string{kimiCallEnd, kimiCallsEnd},
		inReasoning: true,
		read: func(p *parser, mark string) {
			if mark == kimiCall {
				call(p)
				return
			}
			p.state = p.expect(kimiCallMark, func(string) { call(p) })
		},
	}
}

func (c *markedCall) kimiID() bool {
	id, ok := c.upTo(kimiIDEnd)
	if !ok {
		return c.moreOf(maxHead)
	}
	c.take(len(kimiArguments))
	name := strings.TrimPrefix(id, "functions.")
	if colon := strings.LastIndexByte(name, ':'); colon >= 0 {
		name = name[:colon]
	}
	return c.called(name, id, c.json)
}
