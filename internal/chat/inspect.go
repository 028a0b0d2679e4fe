package chat

import (
	"github.com/foretoken/foretoken/internal/chat/jinja/parse"
)

// reads says what a template's source looks at.
type reads struct {
	tools         bool // the variable of that name
	toolCalls     bool // message.tool_calls
	parts         bool // a loop goes over a message's content: it takes lists of parts
	string        bool // content is tested for being a string, so strings are fine all the same
	developer     bool // the role of that name
	thinking      bool // message.thinking
	reasoning     bool // message.reasoning
	thinkingParts bool // parts of type "thinking"
}

// inspect walks a template. Content is followed through assignments, macro parameters and filters, without
// regard to the order in which they run.
func inspect(body []parse.Stmt) reads {
	c := findContent(body)
	var r reads
	parse.Walk(body, func(n parse.Node) {
		switch n := n.(type) {
		case *parse.For:
			r.parts = r.parts || c.is(n.Iter)
		case *parse.Test:
			r.string = r.string || n.Name == "string" && c.is(n.X)
		case *parse.Name:
			r.tools = r.tools || n.Name == "tools"
		case *parse.Const:
			r.developer = r.developer || n.Value == "developer"
			r.toolCalls = r.toolCalls || n.Value == "tool_calls"
		case *parse.Attr:
			r.toolCalls = r.toolCalls || n.Name == "tool_calls"
			r.thinking = r.thinking || n.Name == "thinking"
			r.reasoning = r.reasoning || n.Name == "reasoning"
		case *parse.Index:
			r.thinking = r.thinking || isConst(n.Index, "thinking")
			r.reasoning = r.reasoning || isConst(n.Index, "reasoning")
		case *parse.Compare:
			for i, op := range n.Ops {
				if op == "==" && (field(n.X, "type") && isConst(n.Rest[i], "thinking") || field(n.Rest[i], "type") && isConst(n.X, "thinking")) {
					r.thinkingParts = true
				}
			}
		}
	})
	return r
}

// content is the set of variables that hold, or may hold, a message's content.
type content map[string]bool

func findContent(body []parse.Stmt) content {
	c := content{}
	macros := map[string]*parse.Macro{}
	parse.Walk(body, func(n parse.Node) {
		if m, ok := n.(*parse.Macro); ok && m.Name != "" {
			macros[m.Name] = m
		}
	})
	// A variable may be assigned from another one that is only found later: again until nothing is new.
	for before := -1; before < len(c) && len(c) < 100; {
		before = len(c)
		parse.Walk(body, func(n parse.Node) {
			switch n := n.(type) {
			case *parse.Set:
				c.assign(n.Target, n.X)
			case *parse.With:
				for i, target := range n.Targets {
					c.assign(target, n.Values[i])
				}
			case *parse.Call:
				fn, _ := n.Fn.(*parse.Name)
				if fn == nil || macros[fn.Name] == nil {
					break
				}
				for i, arg := range n.Args.Pos {
					if params := macros[fn.Name].Params; i < len(params) && c.is(arg) {
						c[params[i]] = true
					}
				}
				for i, arg := range n.Args.Named {
					if c.is(arg) {
						c[n.Args.Names[i]] = true
					}
				}
			}
		})
	}
	return c
}

func (c content) assign(target, x parse.Expr) {
	if name, ok := target.(*parse.Name); ok && c.is(x) {
		c[name.Name] = true
	}
}

// is reports whether an expression is a message's content, whole or in part.
func (c content) is(x parse.Expr) bool {
	switch x := x.(type) {
	case *parse.Name:
		return c[x.Name]
	case *parse.Attr, *parse.Index:
		return field(x, "content")
	case *parse.Slice:
		return c.is(x.X)
	case *parse.Filter:
		switch x.Name {
		case "list", "select", "selectattr", "reject", "rejectattr", "map", "default", "d", "reverse":
			return x.X != nil && c.is(x.X)
		}
	case *parse.Cond:
		return c.is(x.Then) || x.Else != nil && c.is(x.Else)
	case *parse.Logic:
		return c.is(x.X) || c.is(x.Y)
	case *parse.Call: // message.get('content')
		fn, ok := x.Fn.(*parse.Attr)
		return ok && fn.Name == "get" && len(x.Args.Pos) > 0 && isConst(x.Args.Pos[0], "content")
	}
	return false
}

// field reports whether an expression is x.name or x['name'].
func field(x parse.Expr, name string) bool {
	switch x := x.(type) {
	case *parse.Attr:
		return x.Name == name
	case *parse.Index:
		return isConst(x.Index, name)
	}
	return false
}

func isConst(x parse.Expr, s string) bool {
	c, ok := x.(*parse.Const)
	return ok && c.Value == s
}
