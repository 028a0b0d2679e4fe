package parse

import "slices"

// statement parses a block tag from its name on. It returns more than one statement only for print.
func (p *parser) statement() []Stmt {
	t := p.tok
	if t.kind != name {
		p.fail(t.line, "expected a tag name, got %s", t)
		return nil
	}
	p.next()
	switch t.text {
	case "if":
		return []Stmt{p.parseIf(t.line)}
	case "for":
		return []Stmt{p.parseFor(t.line)}
	case "set":
		return []Stmt{p.parseSet(t.line)}
	case "macro":
		return []Stmt{p.parseMacro(t.line)}
	case "call":
		return []Stmt{p.parseCallBlock(t.line)}
	case "filter":
		return []Stmt{p.parseFilterBlock(t.line)}
	case "with":
		return []Stmt{p.parseWith(t.line)}
	case "generation":
		return []Stmt{&Scope{p.at(t.line), p.function(func() []Stmt { return p.bodyToEnd("generation", "endgeneration") })}}
	case "print":
		return p.parsePrint()
	case "break", "continue":
		if p.loops == 0 {
			p.fail(t.line, "%s outside of a loop", t.text)
		}
		return []Stmt{&LoopControl{p.at(t.line), t.text == "break"}}
	case "extends", "include", "import", "from", "block":
		p.fail(t.line, "%s: a chat template is one file, there are no others to refer to", t.text)
	default:
		p.fail(t.line, "unknown tag '%s'", t.text)
	}
	return nil
}

func (p *parser) parseIf(line int) Stmt {
	unknown := len(p.unknown)
	n := &If{at: p.at(line)}
	for p.err == nil {
		n.Tests = append(n.Tests, p.tuple(tupleRule{noCond: true}))
		n.Bodies = append(n.Bodies, p.body("if", "elif", "else", "endif"))
		switch p.next().text {
		case "elif":
			continue
		case "else":
			n.Bodies = append(n.Bodies, p.bodyToEnd("else", "endif"))
		}
		break
	}
	p.unknown = p.unknown[:min(unknown, len(p.unknown))]
	return n
}

func (p *parser) parseFor(line int) Stmt {
	n := &For{at: p.at(line)}
	n.Target = p.target(tupleRule{})
	if names(n.Target, "loop") {
		p.fail(line, "cannot assign to the special variable loop")
	}
	if !p.skipName("in") {
		p.fail(p.tok.line, "expected 'in', got %s", p.tok)
	}
	n.Iter = p.tuple(tupleRule{noCond: true})
	if p.skipName("if") {
		n.Filter = p.expression()
	}
	n.Recursive = p.skipName("recursive")
	scope := p.scope
	if n.Recursive { // a function: an outer loop cannot be left from within
		scope = p.function
	}
	n.Body = scope(func() []Stmt {
		p.loops++
		defer func() { p.loops-- }()
		return p.body("for", "else", "endfor")
	})
	if p.next().text == "else" {
		n.Else = scope(func() []Stmt { return p.bodyToEnd("else", "endfor") })
	}
	return n
}

func (p *parser) parseSet(line int) Stmt {
	target := p.target(tupleRule{namespace: true})
	if p.skipOp("=") {
		return &Set{p.at(line), target, p.tuple(tupleRule{})}
	}
	n := &SetBlock{at: p.at(line), Target: target}
	if p.skipOp("|") {
		n.Filter, _ = p.filters(nil).(*Filter)
	}
	n.Body = p.scope(func() []Stmt { return p.bodyToEnd("set", "endset") })
	return n
}

// signature parses the parameters of a macro or call block.
func (p *parser) signature(n *Macro) {
	p.expectOp("(")
	for !p.tok.isOp(")") && p.err == nil {
		if len(n.Params) > 0 {
			p.expectOp(",")
		}
		line := p.tok.line
		n.Params = append(n.Params, p.expectName())
		if p.skipOp("=") {
			n.Defaults = append(n.Defaults, p.expression())
		} else if len(n.Defaults) > 0 {
			p.fail(line, "non-default argument follows default argument")
		}
	}
	p.expectOp(")")
}

// macroBody parses the body and notes which special variables it mentions.
func (p *parser) macroBody(n *Macro, tag, end string) {
	outer := p.special
	p.special = specials{}
	n.Body = p.function(func() []Stmt { return p.bodyToEnd(tag, end) })
	s := p.special
	n.Caller, n.Varargs, n.Kwargs = s.caller, s.varargs, s.kwargs
	p.special = specials{outer.caller || s.caller, outer.varargs || s.varargs, outer.kwargs || s.kwargs}
}

func (p *parser) parseMacro(line int) Stmt {
	n := &Macro{at: p.at(line), Name: p.expectName()}
	p.signature(n)
	p.macroBody(n, "macro", "endmacro")
	return n
}

func (p *parser) parseCallBlock(line int) Stmt {
	n := &CallBlock{at: p.at(line), Body: &Macro{at: p.at(line)}}
	if p.tok.isOp("(") {
		p.signature(n.Body)
	}
	call, ok := p.expression().(*Call)
	if !ok {
		p.fail(line, "expected a call")
	}
	n.Call = call
	p.macroBody(n.Body, "call", "endcall")
	return n
}

func (p *parser) parseFilterBlock(line int) Stmt {
	n := &FilterBlock{at: p.at(line)}
	n.Filter, _ = p.filters(nil).(*Filter)
	n.Body = p.scope(func() []Stmt { return p.bodyToEnd("filter", "endfilter") })
	return n
}

func (p *parser) parseWith(line int) Stmt {
	n := &With{at: p.at(line)}
	for p.tok.kind != blockEnd && p.err == nil {
		if len(n.Targets) > 0 {
			p.expectOp(",")
		}
		n.Targets = append(n.Targets, p.target(tupleRule{}))
		p.expectOp("=")
		n.Values = append(n.Values, p.expression())
	}
	n.Body = p.scope(func() []Stmt { return p.bodyToEnd("with", "endwith") })
	return n
}

func (p *parser) parsePrint() []Stmt {
	var stmts []Stmt
	for p.tok.kind != blockEnd && p.err == nil {
		if len(stmts) > 0 {
			p.expectOp(",")
		}
		line := p.tok.line
		stmts = append(stmts, &Print{p.at(line), p.expression()})
	}
	return stmts
}

// target parses what a for, set or with assigns to.
func (p *parser) target(rule tupleRule) Expr {
	rule.primary = true
	x := p.tuple(rule)
	if p.err == nil && !assignable(x) {
		p.fail(x.Line(), "cannot assign to this expression")
	}
	return x
}

func assignable(x Expr) bool {
	switch x := x.(type) {
	case *Name, *NSRef:
		return true
	case *Tuple:
		return !slices.ContainsFunc(x.Items, func(item Expr) bool { return !assignable(item) })
	}
	return false
}

// names reports whether the target assigns to the variable.
func names(target Expr, variable string) bool {
	switch x := target.(type) {
	case *Name:
		return x.Name == variable
	case *Tuple:
		return slices.ContainsFunc(x.Items, func(item Expr) bool { return names(item, variable) })
	}
	return false
}
