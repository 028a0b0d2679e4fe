package tools

import "strings"

// An xmlCall reads a call in tags. Within it, what is no parameter is ignored.
type xmlCall struct {
	*parser
	form     xmlForm
	tags     tags
	function *function
	key      string
	count    int             // of parameters
	types    types           // of the value
	begun    bool            // so has the value
	text     strings.Builder // the value, if it cannot be sent as it comes
}

func (c *xmlCall) functionName() bool {
	c.skip(whitespace)
	name, ok := c.upTo(c.tags.nameEnds)
	if !ok {
		return c.moreOf(maxHead)
	}
	name = strings.Trim(name, `"'`)
	if c.function = c.functions[name]; c.function == nil || !strings.HasPrefix(c.pending, c.form.nameEnd) {
		return c.failOrEnd()
	}
	c.take(len(c.form.nameEnd))
	c.name(name, "")
	c.state = c.between
	return true
}

// between reads what stands between the tags of a call. One whose own end is missing ends with its block,
// or where the next one begins.
func (c *xmlCall) between() bool {
	c.skip(whitespace)
	if c.pending == "" {
		return c.more()
	}
	tag, part := c.tags.between.begins(c.pending)
	switch {
	case part && !c.closed:
		return false
	case tag == "":
		next := strings.IndexByte(c.pending[1:], '<')
		if next < 0 {
			next = len(c.pending) - 1
		}
		c.take(1 + next)
	case tag == c.form.key:
		c.take(len(tag))
		c.state = c.parameterName
	case tag == c.form.valueEnd:
		c.take(len(tag))
	case tag == c.form.callEnd:
		c.take(len(tag))
		c.endCall()
	default:
		c.endCall()
	}
	return true
}

func (c *xmlCall) endCall() {
	if c.count > 0 {
		c.arguments("}")
	}
	c.end()
}

// parameterName reads a key. One that is malformed is ignored, with its value.
func (c *xmlCall) parameterName() bool {
	c.state = c.between
	key, ok := c.upTo(c.tags.keyEnds)
	switch {
	case !ok && len(c.pending) < maxHead:
		c.state = c.parameterName
		return c.more()
	case !ok || key == "" || !strings.HasPrefix(c.pending, c.form.keyEnd):
		return true
	}
	c.take(len(c.form.keyEnd))
	c.key = key
	c.state = c.beforeValue
	return true
}

// beforeValue reads the tag of a value, if it has one.
func (c *xmlCall) beforeValue() bool {
	if c.form.value != "" {
		c.skip(whitespace)
		tag, part := c.tags.value.begins(c.pending)
		switch {
		case part && !c.closed:
			return false
		case tag == "":
			c.state = c.between
			return true
		}
		c.take(len(tag))
	}
	start := ", "
	if c.count == 0 {
		start = "{"
	}
	start += quoted(c.key) + ": "
	c.types = c.function.types(c.key)
	if c.types == 0 && c.form.json {
		c.types = anyType
	}
	if c.isString() {
		start += `"`
	}
	c.arguments(start)
	c.count++
	c.begun = false
	c.text.Reset()
	c.state = c.value
	return true
}

// isString says that the value is a string whatever it will be, and can be sent as it comes.
func (c *xmlCall) isString() bool { return c.types&^stringType == 0 }

// value reads a value. A line break at its beginning and one at its end do not count.
func (c *xmlCall) value() bool {
	if !c.begun && c.pending != "" {
		c.begun = true
		if c.pending[0] == '\n' {
			c.take(1)
		}
	}
	at, tag := c.tags.valueEnds.find(c.pending, !c.closed)
	text := c.take(at)
	switch {
	case !c.isString():
		c.text.WriteString(text)
	case text != "":
		escaped := quoted(text)
		c.arguments(escaped[1 : len(escaped)-1])
	}
	if tag == "" {
		return c.more()
	}
	if c.isString() {
		c.arguments(`"`)
	} else {
		c.arguments(c.types.json(c.text.String()))
	}
	if tag[0] == '\n' {
		c.take(1)
	}
	c.state = c.between
	return true
}
