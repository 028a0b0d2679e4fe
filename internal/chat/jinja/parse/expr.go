package parse

import "strings"

// at builds what a node at a line has, given its parts.
func (p *parser) at(line int, parts ...Expr) at {
	h := 0
	for _, x := range parts {
		if x != nil {
			h = max(h, x.h())
		}
	}
	if h++; h > MaxHeight {
		p.fail(line, "expression nests deeper than %d", MaxHeight)
	}
	return at{int32(line), int32(h)}
}

// enter counts the recursion of the parser itself.
func (p *parser) enter() {
	if p.height++; p.height > MaxHeight {
		p.fail(p.tok.line, "expression nests deeper than %d", MaxHeight)
	}
}

func (p *parser) leave() { p.height-- }

// tupleRule says what a list of expressions may hold.
type tupleRule struct {
	primary   bool // names and literals only
	noCond    bool // no conditional expressions
	parens    bool // in parentheses, so it may be empty
	namespace bool // ns.name is allowed
}

// tuple parses one expression, or several with commas as a tuple.
func (p *parser) tuple(rule tupleRule) Expr {
	line := p.tok.line
	var items []Expr
	isTuple := false
	for p.err == nil {
		if len(items) > 0 {
			p.expectOp(",")
		}
		t := p.tok
		if t.kind == printEnd || t.kind == blockEnd || t.isOp(")") {
			break
		}
		switch {
		case rule.primary:
			p.enter()
			items = append(items, p.primary(rule.namespace))
			p.leave()
		case rule.noCond:
			items = append(items, p.or())
		default:
			items = append(items, p.expression())
		}
		if !p.tok.isOp(",") {
			break
		}
		isTuple = true
	}
	if !isTuple {
		if len(items) > 0 {
			return items[0]
		}
		if !rule.parens {
			p.fail(line, "expected an expression, got %s", p.tok)
		}
	}
	return &Tuple{p.at(line, items...), items}
}

// expression parses a conditional expression.
func (p *parser) expression() Expr {
	p.enter()
	defer p.leave()
	line, unknown := p.tok.line, len(p.unknown)
	x := p.or()
	for p.skipName("if") {
		test := p.or()
		var other Expr
		if p.skipName("else") {
			other = p.expression()
		}
		x = &Cond{p.at(line, x, test, other), test, x, other}
		p.unknown = p.unknown[:min(unknown, len(p.unknown))]
	}
	return x
}

func (p *parser) or() Expr {
	line := p.tok.line
	x := p.and()
	for p.skipName("or") {
		y := p.and()
		x = &Logic{p.at(line, x, y), true, x, y}
	}
	return x
}

func (p *parser) and() Expr {
	line := p.tok.line
	x := p.not()
	for p.skipName("and") {
		y := p.not()
		x = &Logic{p.at(line, x, y), false, x, y}
	}
	return x
}

func (p *parser) not() Expr {
	if line := p.tok.line; p.skipName("not") {
		p.enter()
		defer p.leave()
		x := p.not()
		return &Not{p.at(line, x), x}
	}
	return p.compare()
}

func (p *parser) compare() Expr {
	line := p.tok.line
	x := p.sum()
	n := &Compare{X: x}
	for p.err == nil {
		t := p.tok
		switch {
		case t.kind == op && strings.Contains(" == != < <= > >= ", " "+t.text+" "), t.isName("in"):
			p.next()
		case t.isName("not") && p.ahead.isName("in"):
			p.next()
			p.next()
			t.text = "not in"
		default:
			if n.Ops == nil {
				return x
			}
			n.at = p.at(line, append([]Expr{x}, n.Rest...)...)
			return n
		}
		n.Ops = append(n.Ops, t.text)
		n.Rest = append(n.Rest, p.sum())
	}
	return n
}

func (p *parser) binary(ops string, operand func() Expr) Expr {
	line := p.tok.line
	x := operand()
	for p.tok.kind == op && strings.Contains(ops, " "+p.tok.text+" ") {
		o := p.next().text
		y := operand()
		x = &Binary{p.at(line, x, y), o, x, y}
	}
	return x
}

func (p *parser) sum() Expr { return p.binary(" + - ", p.concat) }

func (p *parser) concat() Expr {
	line := p.tok.line
	parts := []Expr{p.product()}
	for p.skipOp("~") {
		parts = append(parts, p.product())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return &Concat{p.at(line, parts...), parts}
}

func (p *parser) product() Expr { return p.binary(" * / // % ", p.power) }

// power is left-associative in Jinja, unlike in Python.
func (p *parser) power() Expr {
	return p.binary(" ** ", func() Expr { return p.unary(true) })
}

func (p *parser) unary(withFilter bool) Expr {
	t := p.tok
	var x Expr
	if t.isOp("-") || t.isOp("+") {
		p.enter()
		p.next()
		y := p.unary(false)
		x = &Unary{p.at(t.line, y), t.text, y}
		p.leave()
	} else {
		x = p.primary(false)
	}
	x = p.postfix(x)
	if withFilter {
		x = p.filterOrTest(x)
	}
	return x
}

func (p *parser) primary(namespace bool) Expr {
	t := p.tok
	switch t.kind {
	case name:
		p.next()
		switch t.text {
		case "true", "True":
			return &Const{p.at(t.line), true}
		case "false", "False":
			return &Const{p.at(t.line), false}
		case "none", "None":
			return &Const{p.at(t.line), nil}
		case "caller":
			p.special.caller = true
		case "varargs":
			p.special.varargs = true
		case "kwargs":
			p.special.kwargs = true
		}
		if namespace && p.skipOp(".") {
			return &NSRef{p.at(t.line), t.text, p.expectName()}
		}
		return &Name{p.at(t.line), t.text}
	case str:
		var b strings.Builder
		for p.tok.kind == str { // strings side by side are one
			b.WriteString(p.next().text)
		}
		return &Const{p.at(t.line), b.String()}
	case integer, float:
		p.next()
		v, problem := constant(t)
		if problem != "" {
			p.fail(t.line, "%s", problem)
		}
		return &Const{p.at(t.line), v}
	case op:
		switch t.text {
		case "(":
			p.next()
			x := p.tuple(tupleRule{parens: true})
			p.expectOp(")")
			return x
		case "[":
			return p.list()
		case "{":
			return p.dict()
		}
	}
	p.fail(t.line, "unexpected %s", t)
	return &Const{}
}

func (p *parser) list() Expr {
	line := p.next().line
	var items []Expr
	for !p.tok.isOp("]") && p.err == nil {
		if len(items) > 0 {
			p.expectOp(",")
			if p.tok.isOp("]") {
				break
			}
		}
		items = append(items, p.expression())
	}
	p.expectOp("]")
	return &List{p.at(line, items...), items}
}

func (p *parser) dict() Expr {
	line := p.next().line
	var keys, values []Expr
	for !p.tok.isOp("}") && p.err == nil {
		if len(keys) > 0 {
			p.expectOp(",")
			if p.tok.isOp("}") {
				break
			}
		}
		keys = append(keys, p.expression())
		p.expectOp(":")
		values = append(values, p.expression())
	}
	p.expectOp("}")
	return &Dict{p.at(line, append(keys, values...)...), keys, values}
}
