package parse

import "strings"

// postfix parses subscripts and calls after x.
func (p *parser) postfix(x Expr) Expr {
	for p.err == nil {
		switch line := p.tok.line; {
		case p.skipOp("."):
			t := p.tok
			switch t.kind {
			case name:
				x = &Attr{p.at(line, x), x, p.next().text}
			case integer: // x.0 is x[0]
				p.next()
				v, _ := constant(t)
				x = &Index{p.at(line, x), x, &Const{p.at(t.line), v}}
			default:
				p.fail(t.line, "expected name or number, got %s", t)
			}
		case p.skipOp("["):
			x = p.subscript(x, line)
		case p.tok.isOp("("):
			x = p.call(x)
		default:
			return x
		}
	}
	return x
}

// subscript parses what stands between brackets after x.
func (p *parser) subscript(x Expr, line int) Expr {
	var parts [3]Expr
	if !p.tok.isOp(":") {
		index := p.tuple(tupleRule{})
		if p.skipOp("]") {
			return &Index{p.at(line, x, index), x, index}
		}
		parts[0] = index
	}
	for i := 1; i < 3 && p.skipOp(":"); i++ {
		if !p.tok.isOp(":") && !p.tok.isOp("]") {
			parts[i] = p.expression()
		}
	}
	p.expectOp("]")
	return &Slice{p.at(line, x, parts[0], parts[1], parts[2]), x, parts[0], parts[1], parts[2]}
}

// filterOrTest parses filters, tests and calls after x.
func (p *parser) filterOrTest(x Expr) Expr {
	for p.err == nil {
		switch {
		case p.skipOp("|"):
			x = p.filters(x)
		case p.tok.isName("is"):
			x = p.test(x)
		case p.tok.isOp("("):
			x = p.call(x)
		default:
			return x
		}
	}
	return x
}

func (p *parser) dottedName() string {
	var b strings.Builder
	b.WriteString(p.expectName())
	for p.skipOp(".") {
		b.WriteString("." + p.expectName())
	}
	return b.String()
}

// filters parses one or more filters, the first from its name on.
func (p *parser) filters(x Expr) Expr {
	for {
		n := &Filter{X: x}
		line := p.tok.line
		n.Name = p.dottedName()
		if p.tok.isOp("(") {
			n.Args = p.args()
		}
		n.at = p.atCall(line, x, n.Args)
		if !p.known.Filter(n.Name) {
			p.unknown = append(p.unknown, &Error{line, "no filter named '" + n.Name + "'"})
		}
		x = n
		if !p.skipOp("|") {
			return x
		}
	}
}

func (p *parser) test(x Expr) Expr {
	line := p.next().line
	negated := p.skipName("not")
	n := &Test{X: x, Name: p.dottedName()}
	switch t := p.tok; {
	case t.isOp("("):
		n.Args = p.args()
	case t.isName("else"), t.isName("or"), t.isName("and"):
	case t.isName("is"):
		p.fail(t.line, "tests cannot be chained with is")
	case t.kind == name, t.kind == str, t.kind == integer, t.kind == float, t.isOp("["), t.isOp("{"):
		p.enter()
		n.Args.Pos = []Expr{p.postfix(p.primary(false))}
		p.leave()
	}
	n.at = p.atCall(line, x, n.Args)
	if !p.known.Test(n.Name) {
		p.unknown = append(p.unknown, &Error{line, "no test named '" + n.Name + "'"})
	}
	if negated {
		return &Not{p.at(line, n), n}
	}
	return n
}

func (p *parser) call(x Expr) Expr {
	line := p.tok.line
	args := p.args()
	return &Call{p.atCall(line, x, args), x, args}
}

func (p *parser) atCall(line int, x Expr, args Args) at {
	parts := append([]Expr{x, args.Star, args.DblStar}, args.Pos...)
	return p.at(line, append(parts, args.Named...)...)
}

func (p *parser) args() Args {
	var a Args
	line := p.tok.line
	p.expectOp("(")
	for first := true; !p.tok.isOp(")") && p.err == nil; first = false {
		if !first {
			p.expectOp(",")
			if p.tok.isOp(")") {
				break
			}
		}
		legal := a.DblStar == nil
		switch {
		case p.skipOp("*"):
			legal = legal && a.Star == nil
			a.Star = p.expression()
		case p.skipOp("**"):
			a.DblStar = p.expression()
		case p.tok.kind == name && p.ahead.isOp("="):
			a.Names = append(a.Names, p.next().text)
			p.next()
			a.Named = append(a.Named, p.expression())
		default:
			legal = legal && a.Star == nil && a.Named == nil
			a.Pos = append(a.Pos, p.expression())
		}
		if !legal {
			p.fail(line, "invalid syntax for function call expression")
		}
	}
	p.expectOp(")")
	return a
}
