package tools

import (
	"strings"

	"github.com/foretoken/foretoken/internal/chat/deepseek"
)

// Marks of DeepSeek V3 to V3.1. ｜ is U+FF5C and ▁ is U+2581.
const (
	deepseekCalls    = "<｜tool▁calls▁begin｜>"
	deepseekCallsEnd = "<｜tool▁calls▁end｜>"
	deepseekCall     = "<｜tool▁call▁begin｜>"
	deepseekCallEnd  = "<｜tool▁call▁end｜>"
	deepseekSep      = "<｜tool▁sep｜>"
)

var (
	deepseekCallMark = newMarks([]string{deepseekCall})
	deepseekHeadEnd  = newMarks([]string{deepseekSep})
	deepseekNameEnds = newMarks([]string{"\n", "```", "{", deepseekCallEnd, deepseekCallsEnd})
	fence            = newMarks([]string{"```"})
)

// deepseekV3 is what DeepSeek V3 and R1 write, with the function's name behind the separator and the
// arguments in a fence:
//
//	<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f
//	```json
//	{…}
//	```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
//
// And what V3.1 writes, with the name in front of the separator: …f<｜tool▁sep｜>{…}<｜tool▁call▁end｜>…
func deepseekV3() syntax {
	call := func(p *parser) {
		p.begin()
		p.state = newMarkedCall(p).deepseekHead
	}
	return syntax{
		starts:      []string{deepseekCalls, deepseekCall},
		ends:        []string{deepseekCallEnd, deepseekCallsEnd},
		junk:        "`",
		inReasoning: true,
		read: func(p *parser, mark string) {
			if mark == deepseekCall {
				call(p)
				return
			}
			p.state = p.expect(deepseekCallMark, func(string) { call(p) })
		},
	}
}

// deepseekHead reads what is in front of the separator: the name, or the word function.
func (c *markedCall) deepseekHead() bool {
	head, ok := c.upTo(deepseekHeadEnd)
	if !ok {
		return c.moreOf(maxHead)
	}
	c.take(len(deepseekSep))
	c.head, c.state = head, c.deepseekName
	return true
}

// deepseekName reads the name behind the separator, if it is there.
func (c *markedCall) deepseekName() bool {
	c.skip(whitespace)
	name, ok := c.upTo(deepseekNameEnds)
	if !ok {
		return c.moreOf(maxHead)
	}
	if name == "" {
		name = c.head
	}
	return c.called(name, "", c.deepseekFence)
}

// deepseekFence reads the beginning of a fence around the arguments, if there is one.
func (c *markedCall) deepseekFence() bool {
	c.skip(whitespace)
	mark, part := fence.begins(c.pending)
	switch {
	case part && !c.closed: // or there is nothing yet
		return false
	case mark == "":
		c.state = c.json
	default:
		c.take(len(mark))
		c.state = c.deepseekLanguage
	}
	return true
}

// deepseekLanguage reads the rest of the fence's line.
func (c *markedCall) deepseekLanguage() bool {
	end := strings.IndexAny(c.pending, "\n{<")
	if end < 0 {
		c.take(len(c.pending))
		return c.more()
	}
	c.take(end)
	c.state = c.json
	return true
}

// dsml is the parser of V3.2 and V4.
type dsml struct{ *deepseek.Parser }

func (d dsml) Write(text string) []Delta { return fromDeepseek(d.Parser.Write(text)) }
func (d dsml) Close() []Delta            { return fromDeepseek(d.Parser.Close()) }

func fromDeepseek(from []deepseek.Delta) []Delta {
	var deltas []Delta
	for _, d := range from {
		deltas = append(deltas, Delta{Kind: d.Kind, Call: d.Call, Text: d.Text})
	}
	return deltas
}
