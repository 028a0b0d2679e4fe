package tools

import "strings"

const (
	mistralCalls     = "[TOOL_CALLS]"
	mistralID        = "[CALL_ID]"
	mistralArguments = "[ARGS]"
)

var (
	mistralNameEnds = newMarks([]string{mistralID, mistralArguments, "{"})
	mistralIDEnds   = newMarks([]string{mistralArguments, "{"})
)

// mistral is what Mistral's models write: first [TOOL_CALLS] and a list of objects; since their tokenizer
// v11 f[CALL_ID]id[ARGS]{…}, and since v13 f[ARGS]{…}, each behind a [TOOL_CALLS] of its own. Sometimes
// they forget the [ARGS].
func mistral() syntax {
	list := readJSON(false)
	return syntax{
		starts: []string{mistralCalls},
		again:  []string{"{"},
		junk:   ",]",
		read: func(p *parser, mark string) {
			if mark == "{" {
				list(p, mark)
				return
			}
			p.state = func() bool {
				p.skip(whitespace)
				switch {
				case p.pending == "":
					return p.more()
				case strings.Contains("[{", p.pending[:1]):
					list(p, mark)
				default:
					p.begin()
					p.state = newMarkedCall(p).mistralName
				}
				return true
			}
		},
	}
}

func (c *markedCall) mistralName() bool {
	name, ok := c.upTo(mistralNameEnds)
	if !ok {
		return c.moreOf(maxHead)
	}
	if strings.HasPrefix(c.pending, mistralID) {
		c.take(len(mistralID))
		c.head, c.state = name, c.mistralID
		return true
	}
	return c.mistralCall(name, "")
}

func (c *markedCall) mistralID() bool {
	id, ok := c.upTo(mistralIDEnds)
	if !ok {
		return c.moreOf(maxHead)
	}
	return c.mistralCall(c.head, id)
}

func (c *markedCall) mistralCall(name, id string) bool {
	if c.pending[0] == '[' {
		c.take(len(mistralArguments))
	}
	return c.called(name, id, c.json)
}
