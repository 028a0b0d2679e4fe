package jinja

import (
	"slices"

	"github.com/foretoken/foretoken/internal/chat/jinja/parse"
	"github.com/foretoken/foretoken/internal/chat/value"
)

// macro is a macro with the scope it was defined in. The body of a call block is one without a name.
type macro struct {
	decl  *parse.Macro
	scope *scope
}

func (f *macro) TypeName() string { return "Macro" }

func (f *macro) attr(name string) (value.Value, bool) {
	switch name {
	case "name":
		return f.decl.Name, true
	case "arguments":
		t := new(value.Tuple)
		for _, p := range f.decl.Params {
			t.Items = append(t.Items, p)
		}
		return t, true
	case "caller":
		return f.decl.Caller, true
	case "catch_kwargs":
		return f.decl.Kwargs, true
	case "catch_varargs":
		return f.decl.Varargs, true
	}
	return nil, false
}

// evalCall calls a function; caller, if there is one, is the body of a call block.
func (m *machine) evalCall(x *parse.Call, s *scope, caller *macro) (value.Value, error) {
	fn, err := m.eval(x.Fn, s)
	if err != nil {
		return nil, err
	}
	a, err := m.evalArgs(x.Args, s)
	if err != nil {
		return nil, err
	}
	if caller != nil {
		a.names = append(a.names, "caller")
		a.named = append(a.named, caller)
	}
	return m.call(fn, a)
}

func (m *machine) call(fn value.Value, a args) (value.Value, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer m.leave()
	switch fn := fn.(type) {
	case *function:
		return fn.call(m, a)
	case *macro:
		return m.callMacro(fn, a)
	case *loop:
		return fn.recurse(m, a)
	case *undefined:
		return nil, fn.fail()
	}
	return nil, typeErrorf("'%s' object is not callable", typeName(fn))
}

func (m *machine) callMacro(f *macro, a args) (value.Value, error) {
	s, err := m.bindMacro(f, a)
	if err != nil {
		return nil, err
	}
	return m.capture(func() error {
		_, err := m.execAll(f.decl.Body, s)
		return err
	})
}

// bindMacro makes the scope of a call. Parameters without an argument get their default, which may refer
// to the parameters before it, or are undefined.
func (m *machine) bindMacro(f *macro, a args) (*scope, error) {
	d := f.decl
	if err := m.step((len(d.Params) + 1) * (len(d.Params) + len(a.names) + 1) / 4); err != nil {
		return nil, err
	}
	s := &scope{outer: f.scope}
	rest := a
	for i, name := range d.Params {
		var v value.Value = &undefined{hint: "parameter '" + name + "' was not provided"}
		if i < len(a.pos) {
			v = a.pos[i]
		} else if arg, ok := rest.take(name); ok {
			v = arg
		} else if def := i - len(d.Params) + len(d.Defaults); def >= 0 {
			var err error
			if v, err = m.eval(d.Defaults[def], s); err != nil {
				return nil, err
			}
		}
		s.set(name, v)
	}
	if d.Caller && !slices.Contains(d.Params, "caller") {
		v, ok := rest.take("caller")
		if !ok || v == nil {
			v = &undefined{hint: "No caller defined"}
		}
		s.set("caller", v)
	}
	if d.Kwargs && !slices.Contains(d.Params, "kwargs") {
		o := new(value.Object)
		for i, name := range rest.names {
			o.Set(name, rest.named[i])
		}
		rest.names = nil
		s.set("kwargs", o)
	}
	if len(rest.names) > 0 {
		return nil, typeErrorf("macro '%s' takes no keyword argument '%s'", d.Name, rest.names[0])
	}
	extra := a.pos[min(len(d.Params), len(a.pos)):]
	if d.Varargs && !slices.Contains(d.Params, "varargs") {
		s.set("varargs", &value.Tuple{Items: extra})
	} else if len(extra) > 0 {
		return nil, typeErrorf("macro '%s' takes not more than %d argument(s)", d.Name, len(d.Params))
	}
	return s, nil
}

func (m *machine) execCallBlock(n *parse.CallBlock, s *scope) error {
	v, err := m.evalCall(n.Call, s, &macro{n.Body, s})
	if err != nil {
		return err
	}
	text, err := m.text(v)
	if err != nil {
		return err
	}
	return m.write(text)
}
