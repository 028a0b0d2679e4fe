package tools

import "strings"

// Marks of Llama 3, of Llama 4, and of LFM2.
const (
	pythonTag   = "<|python_tag|>"
	pythonStart = "<|python_start|>"
	pythonEnd   = "<|python_end|>"
	lfmStart    = "<|tool_call_start|>"
	lfmEnd      = "<|tool_call_end|>"
)

// llama is what Llama 3 and 4 write where an answer begins: {"name": "f", "parameters": {…}}, several with
// semicolons between them; or [f(a=1), g()], with values as in Python; or, behind <|python_tag|>, a call of
// a built-in tool, f.call(a="x"). Which of them a model takes is not certain, so all are read. LFM2 writes
// the second between marks.
func llama() syntax {
	object := readJSON(true)
	return syntax{
		opening: []string{"{", "[", pythonTag, pythonStart},
		starts:  []string{lfmStart},
		again:   []string{"{", pythonTag},
		ends:    []string{pythonEnd, lfmEnd},
		junk:    ";,]",
		read: func(p *parser, mark string) {
			if mark == "{" {
				object(p, mark)
				return
			}
			c := &pythonCall{parser: p, list: mark == "["}
			p.state = func() bool {
				p.skip(whitespace)
				switch {
				case p.pending == "":
					return p.more()
				case p.pending[0] == '{':
					object(p, mark)
				case p.pending[0] == '[' && !c.list:
					p.take(1)
					c.list = true
				default:
					p.begin()
					p.state = c.functionName
				}
				return true
			}
		},
	}
}

// A pythonCall reads calls as Python has them. A call is sent when it is whole.
type pythonCall struct {
	*parser
	list     bool // in a list; else it is a method call of a tool
	function string
	from     int // where the arguments begin in raw
	value    pythonScan
}

func (c *pythonCall) functionName() bool {
	head := c.pending[:min(len(c.pending), maxName)]
	end := strings.IndexFunc(head, func(r rune) bool { return !isIdentifier(r) })
	if end < 0 {
		return c.moreOf(maxName)
	}
	name, ok := head[:end], true
	if !c.list {
		name, ok = strings.CutSuffix(name, ".call")
	}
	if !ok || c.functions[name] == nil || head[end] != '(' {
		return c.failOrEnd()
	}
	c.take(end + 1)
	c.function, c.from, c.value = name, c.raw.Len(), pythonScan{}
	c.state = c.pythonArguments
	return true
}

func isIdentifier(r rune) bool {
	return r == '_' || r == '.' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r >= 0x80
}

func (c *pythonCall) pythonArguments() bool {
	n, end := c.value.scan(c.pending, !c.closed)
	c.take(n)
	if !end {
		return c.more()
	}
	text := c.raw.String()[c.from:]
	arguments, ok := pythonToJSON(text[:len(text)-1])
	if !ok {
		return c.failOrEnd()
	}
	c.name(c.function, "")
	c.arguments(arguments)
	c.end()
	if c.list {
		c.state = c.next
	}
	return true
}

// next reads on in the list.
func (c *pythonCall) next() bool {
	c.skip(whitespace)
	switch {
	case c.pending == "":
		return false
	case c.pending[0] != ',':
		c.state = c.after
		return true
	}
	c.take(1)
	c.skip(whitespace)
	c.state = c.another
	return true
}

func (c *pythonCall) another() bool {
	c.skip(whitespace)
	if c.pending == "" {
		return false
	}
	c.record()
	c.state = c.functionName
	return true
}
