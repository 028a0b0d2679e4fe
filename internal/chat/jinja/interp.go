package jinja

import (
	"fmt"
	"strings"
	"time"

	"github.com/foretoken/foretoken/internal/chat/jinja/parse"
	"github.com/foretoken/foretoken/internal/chat/value"
)

// machine is one rendering.
type machine struct {
	budget
	vars *value.Object
	now  time.Time
	out  *buffer // where text goes: the result, or what a block or macro captures
}

// buffer collects what statements print.
type buffer struct {
	strings.Builder
	captured bool // the text becomes a value
}

func (m *machine) write(s string) error {
	if m.out.Len()+len(s) > m.limits.Text {
		return m.allocText(-1)
	}
	count := m.touch
	if m.out.captured {
		count = m.alloc
	}
	if err := count(len(s)); err != nil {
		return err
	}
	m.out.WriteString(s)
	return nil
}

// capture runs f and returns the text it wrote.
func (m *machine) capture(f func() error) (string, error) {
	outer := m.out
	m.out = &buffer{captured: true}
	err := f()
	s := m.out.String()
	m.out = outer
	return s, err
}

// signal says how a statement ended: running on, or on its way out of a loop.
type signal int

const (
	goOn signal = iota
	breakLoop
	continueLoop
)

func (m *machine) execAll(body []parse.Stmt, s *scope) (signal, error) {
	for _, n := range body {
		sig, err := m.exec(n, s)
		if err != nil {
			return 0, atLine(n, err)
		}
		if sig != goOn {
			return sig, nil
		}
	}
	return goOn, nil
}

func (m *machine) exec(n parse.Stmt, s *scope) (signal, error) {
	if err := m.step(1); err != nil {
		return 0, err
	}
	switch n := n.(type) {
	case *parse.Text:
		return goOn, m.write(n.Text)
	case *parse.Print:
		v, err := m.eval(n.X, s)
		if err != nil {
			return 0, err
		}
		text, err := m.text(v)
		if err != nil {
			return 0, err
		}
		return goOn, m.write(text)
	case *parse.If:
		return m.execIf(n, s)
	case *parse.For:
		return m.execFor(n, s)
	case *parse.Set:
		v, err := m.eval(n.X, s)
		if err != nil {
			return 0, err
		}
		return goOn, m.assign(n.Target, v, s)
	case *parse.SetBlock:
		return m.execSetBlock(n, s)
	case *parse.Macro:
		s.set(n.Name, &macro{decl: n, scope: s})
		return goOn, nil
	case *parse.CallBlock:
		return goOn, m.execCallBlock(n, s)
	case *parse.FilterBlock:
		return m.execFilterBlock(n, s)
	case *parse.With:
		return m.execWith(n, s)
	case *parse.Scope:
		return m.execAll(n.Body, &scope{outer: s})
	case *parse.LoopControl:
		if n.Break {
			return breakLoop, nil
		}
		return continueLoop, nil
	}
	panic(fmt.Sprintf("jinja: unknown statement %T", n))
}

func (m *machine) execIf(n *parse.If, s *scope) (signal, error) {
	for i, body := range n.Bodies {
		if i < len(n.Tests) {
			ok, err := m.evalTruth(n.Tests[i], s)
			if err != nil {
				return 0, err
			}
			if !ok {
				continue
			}
		}
		return m.execAll(body, s)
	}
	return goOn, nil
}

// captureBlock runs a block's body in its own scope and returns its text, through the filter if there is
// one.
func (m *machine) captureBlock(body []parse.Stmt, filter *parse.Filter, s *scope) (v value.Value, sig signal, err error) {
	inner := &scope{outer: s}
	text, err := m.capture(func() (err error) {
		sig, err = m.execAll(body, inner)
		return err
	})
	if err != nil || sig != goOn || filter == nil {
		return text, sig, err
	}
	v, err = m.evalBlockFilter(filter, inner, text)
	return v, goOn, err
}

func (m *machine) execSetBlock(n *parse.SetBlock, s *scope) (signal, error) {
	v, sig, err := m.captureBlock(n.Body, n.Filter, s)
	if err != nil || sig != goOn {
		return sig, err
	}
	return goOn, m.assign(n.Target, v, s)
}

func (m *machine) execFilterBlock(n *parse.FilterBlock, s *scope) (signal, error) {
	v, sig, err := m.captureBlock(n.Body, n.Filter, s)
	if err != nil || sig != goOn {
		return sig, err
	}
	text, err := m.text(v)
	if err != nil {
		return 0, err
	}
	return goOn, m.write(text)
}

func (m *machine) execWith(n *parse.With, s *scope) (signal, error) {
	inner := &scope{outer: s}
	for i, target := range n.Targets {
		v, err := m.eval(n.Values[i], s)
		if err != nil {
			return 0, err
		}
		if err := m.assign(target, v, inner); err != nil {
			return 0, err
		}
	}
	return m.execAll(n.Body, inner)
}

// assign binds a target to a value; a tuple takes the value apart.
func (m *machine) assign(target parse.Expr, v value.Value, s *scope) error {
	switch t := target.(type) {
	case *parse.Name:
		s.set(t.Name, v)
	case *parse.NSRef:
		ns, ok := m.lookup(s, t.Namespace).(*namespace)
		if !ok {
			return errorf("TemplateRuntimeError", "cannot assign attribute on non-namespace object")
		}
		ns.attrs.Set(t.Name, v)
	case *parse.Tuple:
		items, err := m.unpack(v, len(t.Items))
		if err != nil {
			return err
		}
		for i, item := range t.Items {
			if err := m.assign(item, items[i], s); err != nil {
				return err
			}
		}
	default:
		panic(fmt.Sprintf("jinja: unknown target %T", target))
	}
	return nil
}

// unpack takes exactly n items out of v.
func (m *machine) unpack(v value.Value, n int) ([]value.Value, error) {
	it, err := m.iterate(v)
	if err != nil {
		return nil, typeErrorf("cannot unpack non-iterable %s object", typeName(v))
	}
	items := make([]value.Value, 0, n)
	for {
		item, ok, err := it()
		switch {
		case err != nil:
			return nil, err
		case !ok && len(items) < n:
			return nil, valueErrorf("not enough values to unpack (expected %d, got %d)", n, len(items))
		case !ok:
			return items, nil
		case len(items) == n:
			return nil, valueErrorf("too many values to unpack (expected %d)", n)
		}
		items = append(items, item)
	}
}
