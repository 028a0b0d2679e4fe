package parse

import (
	"fmt"
	"slices"
)

// Error is a syntax error.
type Error struct {
	Line    int
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("template line %d: %s", e.Line, e.Message) }

// Known says which filters and tests there are.
type Known struct{ Filter, Test func(name string) bool }

// Template parses a source. The error is an *Error.
func Template(src string, known Known) ([]Stmt, error) {
	if len(src) > MaxSource {
		return nil, &Error{1, fmt.Sprintf("source of %d bytes, the most is %d", len(src), MaxSource)}
	}
	p := &parser{lex: newLexer(src), known: known}
	p.tok, p.ahead = p.lex.next(), p.lex.next()
	body := p.scope(func() []Stmt { return p.statements("template") })
	if p.lex.err != nil && p.err == nil {
		p.err = p.lex.err
	}
	if p.err != nil {
		return nil, p.err
	}
	return body, nil
}

// parser is a recursive-descent parser. After the first error it sees only the end of the template, so
// that every loop ends and the rules need not look at errors.
type parser struct {
	lex        *lexer
	tok, ahead token
	known      Known
	err        error

	nesting int      // of statements
	height  int      // of expressions being parsed
	loops   int      // loops around that break could leave
	special specials // special macro variables mentioned
	// unknown holds unknown filters and tests of the current scope. They are errors unless they stand in
	// an if or a conditional expression, where they fail only when they are reached.
	unknown []*Error
}

type specials struct{ caller, varargs, kwargs bool }

func (p *parser) fail(line int, format string, args ...any) {
	if p.err == nil {
		p.err = p.lex.err // the cause of a sudden end
	}
	if p.err == nil {
		p.err = &Error{line, fmt.Sprintf(format, args...)}
	}
	p.stop()
}

// stop lets the rules see the end of the template.
func (p *parser) stop() {
	p.tok = token{kind: eof, line: p.tok.line}
	p.ahead = p.tok
}

func (p *parser) next() token {
	t := p.tok
	if p.err == nil {
		p.tok, p.ahead = p.ahead, p.lex.next()
	}
	return t
}

func (p *parser) skipOp(text string) bool {
	if p.tok.isOp(text) {
		p.next()
		return true
	}
	return false
}

func (p *parser) skipName(text string) bool {
	if p.tok.isName(text) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expectOp(text string) {
	if !p.skipOp(text) {
		p.fail(p.tok.line, "expected '%s', got %s", text, p.tok)
	}
}

func (p *parser) expectName() string {
	if p.tok.kind != name {
		p.fail(p.tok.line, "expected a name, got %s", p.tok)
		return ""
	}
	return p.next().text
}

func (p *parser) expect(k kind) {
	if p.tok.kind != k {
		p.fail(p.tok.line, "expected %s, got %s", token{kind: k}, p.tok)
		return
	}
	p.next()
}

// scope parses a body that has its own scope.
func (p *parser) scope(body func() []Stmt) []Stmt {
	outer := p.unknown
	p.unknown = nil
	stmts := body()
	if len(p.unknown) > 0 && p.err == nil {
		p.err = p.unknown[0]
		p.stop()
	}
	p.unknown = outer
	return stmts
}

// function parses a body that is compiled as a function: break cannot leave it.
func (p *parser) function(body func() []Stmt) []Stmt {
	loops := p.loops
	p.loops = 0
	stmts := p.scope(body)
	p.loops = loops
	return stmts
}

// body parses the statements after a block tag up to one of the end tags, whose name is left as the
// current token.
func (p *parser) body(tag string, ends ...string) []Stmt {
	p.skipOp(":")
	p.expect(blockEnd)
	return p.statements(tag, ends...)
}

// bodyToEnd is body with one end tag, which is skipped.
func (p *parser) bodyToEnd(tag, end string) []Stmt {
	stmts := p.body(tag, end)
	p.next()
	return stmts
}

// statements parses until one of the end tags, or without ends to the end of the template.
func (p *parser) statements(tag string, ends ...string) []Stmt {
	if p.nesting++; p.nesting > MaxNesting {
		p.fail(p.tok.line, "statements nest deeper than %d", MaxNesting)
	}
	defer func() { p.nesting-- }()
	var stmts []Stmt
	for {
		t := p.tok
		switch t.kind {
		case text:
			p.next()
			stmts = append(stmts, &Text{p.at(t.line), t.text})
		case printBegin:
			p.next()
			stmts = append(stmts, &Print{p.at(t.line), p.tuple(tupleRule{})})
			p.expect(printEnd)
		case blockBegin:
			p.next()
			if p.tok.kind == name && slices.Contains(ends, p.tok.text) {
				return stmts
			}
			stmts = append(stmts, p.statement()...)
			p.expect(blockEnd)
		default:
			if p.err == nil && len(ends) > 0 {
				p.fail(t.line, "unexpected end of template: %s needs %s", tag, ends[len(ends)-1])
			}
			return stmts
		}
	}
}
