package tools

import "slices"

// A jsonCall reads calls that are objects, {"name": "f", "arguments": {…}}, alone or in a list. Fields come
// in any order, and others are ignored.
type jsonCall struct {
	*parser
	strict    bool // an object without arguments is no call
	key       string
	function  string // "" until its name is known
	id        string
	value     jsonValue
	arguments jsonArguments
}

// jsonArguments says how far the arguments of a jsonCall are.
type jsonArguments struct {
	begun, ended bool
	held         []byte // while the name is not known
}

var (
	nameKeys     = []string{"name", "tool_name"}
	argumentKeys = []string{"arguments", "parameters"}
	idKeys       = []string{"id", "tool_call_id"}
)

// readJSON reads a call behind a mark, or one that the mark is the opening brace of.
func readJSON(strict bool) func(p *parser, mark string) {
	return func(p *parser, mark string) {
		c := &jsonCall{parser: p, strict: strict}
		c.value.stops = newMarks(p.syntax.ends, p.syntax.starts)
		p.state = c.first
		if mark == "{" {
			p.start = p.raw.Len() - 1
			p.state = c.field
		}
	}
}

// first reads the opening brace. One of a list may come before it.
func (c *jsonCall) first() bool {
	c.skip(whitespace + "[")
	switch {
	case c.pending == "":
		return c.more()
	case c.pending[0] != '{':
		return c.failOrEnd()
	}
	c.begin()
	c.take(1)
	c.state = c.field
	return true
}

// field reads the key of the next field, or the closing brace.
func (c *jsonCall) field() bool {
	c.skip(whitespace + ",")
	switch {
	case c.pending == "":
		return c.more()
	case c.pending[0] == '"':
		return c.string(func(key string) { c.key, c.state = key, c.colon })
	case c.pending[0] == '}':
		c.take(1)
	}
	return c.failOrEnd()
}

func (c *jsonCall) colon() bool {
	c.skip(whitespace)
	switch {
	case c.pending == "":
		return c.more()
	case c.pending[0] != ':':
		return c.failOrEnd()
	}
	c.take(1)
	c.state = c.fieldValue
	return true
}

func (c *jsonCall) fieldValue() bool {
	c.skip(whitespace)
	if c.pending == "" {
		return c.more()
	}
	isString := c.pending[0] == '"'
	c.value = jsonValue{stops: c.value.stops}
	switch {
	case slices.Contains(argumentKeys, c.key) && !c.arguments.begun:
		c.arguments.begun = true
		c.offer()
		c.state = c.argumentsValue
	case slices.Contains(nameKeys, c.key) && c.function == "":
		if !isString {
			return c.failOrEnd()
		}
		return c.string(func(name string) {
			if c.functions[name] == nil {
				c.fail()
				return
			}
			c.function = name
			c.offer()
			c.state = c.field
		})
	case slices.Contains(idKeys, c.key) && isString:
		return c.string(func(id string) { c.id, c.state = id, c.field })
	default:
		c.state = c.otherValue
	}
	return true
}

// string reads a string as long as a name, and goes on with next.
func (c *jsonCall) string(next func(string)) bool {
	const limit = maxName + len(`""`)
	n, s := jsonString(c.pending[:min(len(c.pending), limit)])
	if n == 0 {
		return c.moreOf(limit)
	}
	c.take(n)
	next(s)
	return true
}

// offer begins the call once it is one, with what there is of its arguments.
func (c *jsonCall) offer() {
	if c.open || c.function == "" || c.strict && !c.arguments.begun {
		return
	}
	c.name(c.function, c.id)
	c.parser.arguments(string(c.arguments.held))
	c.whole = c.arguments.ended
}

// argumentsValue passes the value on as it comes.
func (c *jsonCall) argumentsValue() bool {
	n, end := c.value.scan(c.pending, !c.closed)
	if text := c.take(n); c.open {
		c.parser.arguments(text)
	} else {
		c.arguments.held = append(c.arguments.held, text...)
	}
	if !end {
		return c.more()
	}
	c.arguments.ended, c.whole, c.state = true, true, c.field
	return true
}

// otherValue skips the value of a field that says nothing of the call.
func (c *jsonCall) otherValue() bool {
	n, end := c.value.scan(c.pending, !c.closed)
	c.take(n)
	if !end {
		return c.more()
	}
	c.state = c.field
	return true
}
