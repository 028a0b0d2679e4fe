package tools

// A markedCall reads calls whose name stands between marks, in front of arguments in JSON.
type markedCall struct {
	*parser
	head  string // what stands where there may be the name
	value jsonValue
}

func newMarkedCall(p *parser) *markedCall {
	return &markedCall{parser: p, value: jsonValue{stops: newMarks(p.syntax.starts, p.syntax.ends)}}
}

// called begins the call if there is such a function, and goes on with next.
func (c *markedCall) called(name, id string, next func() bool) bool {
	if c.functions[name] == nil {
		return c.failOrEnd()
	}
	c.name(name, id)
	c.state = next
	return true
}

// json passes the arguments on as they come.
func (c *markedCall) json() bool {
	if !c.value.begun {
		c.skip(whitespace)
	}
	n, end := c.value.scan(c.pending, !c.closed)
	c.arguments(c.take(n))
	if !end {
		return c.more()
	}
	c.end()
	return true
}
