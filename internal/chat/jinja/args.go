package jinja

import (
	"slices"
	"strings"

	"github.com/foretoken/foretoken/internal/chat/jinja/parse"
	"github.com/foretoken/foretoken/internal/chat/value"
)

// args are the evaluated arguments of a call.
type args struct {
	pos   []value.Value
	names []string
	named []value.Value
}

func (m *machine) evalArgs(x parse.Args, s *scope) (args, error) {
	var a args
	var err error
	if len(x.Pos) > 0 {
		if a.pos, err = m.evalAll(x.Pos, s); err != nil {
			return a, err
		}
	}
	if len(x.Named) > 0 {
		a.names = slices.Clone(x.Names)
		if a.named, err = m.evalAll(x.Named, s); err != nil {
			return a, err
		}
	}
	if x.Star != nil {
		v, err := m.eval(x.Star, s)
		if err != nil {
			return a, err
		}
		more, err := m.list(v)
		if err != nil {
			return a, err
		}
		if err := m.items(len(a.pos) + len(more)); err != nil {
			return a, err
		}
		a.pos = slices.Concat(a.pos, more)
	}
	if x.DblStar != nil {
		v, err := m.eval(x.DblStar, s)
		if err != nil {
			return a, err
		}
		o, ok := v.(*value.Object)
		if !ok {
			return a, typeErrorf("argument after ** must be a mapping, not %s", typeName(v))
		}
		if err := m.items(2 * o.Len()); err != nil {
			return a, err
		}
		for k, v := range o.All() {
			name, ok := str(k)
			if !ok {
				return a, typeErrorf("keywords must be strings")
			}
			a.names = append(a.names, name)
			a.named = append(a.named, v)
		}
	}
	if err := m.step(len(a.names) * len(a.names) / 16); err != nil {
		return a, err
	}
	for i, name := range a.names {
		if slices.Contains(a.names[:i], name) {
			return a, typeErrorf("got multiple values for keyword argument '%s'", name)
		}
	}
	return a, nil
}

// take removes a keyword argument and returns it.
func (a *args) take(name string) (value.Value, bool) {
	i := slices.Index(a.names, name)
	if i < 0 {
		return nil, false
	}
	v := a.named[i]
	a.names = slices.Delete(slices.Clone(a.names), i, i+1)
	a.named = slices.Delete(slices.Clone(a.named), i, i+1)
	return v, true
}

// params are a builtin's arguments by position; those left out are absent.
type params []value.Value

type absent struct{}

// bind matches arguments to a signature like "old new count?", where ? marks what may be left out.
func (a args) bind(fn, signature string) (params, error) {
	names := strings.Fields(signature)
	if len(a.pos) > len(names) {
		return nil, typeErrorf("%s takes at most %d arguments (%d given)", fn, len(names), len(a.pos))
	}
	p := make(params, len(names))
	rest := a
	for i, name := range names {
		name, optional := strings.CutSuffix(name, "?")
		v, named := rest.take(name)
		switch {
		case i < len(a.pos) && named:
			return nil, typeErrorf("%s got multiple values for argument '%s'", fn, name)
		case i < len(a.pos):
			p[i] = a.pos[i]
		case named:
			p[i] = v
		case optional:
			p[i] = absent{}
		default:
			return nil, typeErrorf("%s missing required argument: '%s'", fn, name)
		}
	}
	if len(rest.names) > 0 {
		return nil, typeErrorf("%s got an unexpected keyword argument '%s'", fn, rest.names[0])
	}
	return p, nil
}

func (p params) has(i int) bool { _, gone := p[i].(absent); return !gone }

// or returns parameter i, or def if it was left out.
func (p params) or(i int, def value.Value) value.Value {
	if p.has(i) {
		return p[i]
	}
	return def
}

// int returns parameter i as an int, or def if it was left out.
func (p params) int(i int, def int) (int, error) {
	if !p.has(i) {
		return def, nil
	}
	n, ok := index(p[i])
	if !ok {
		return 0, typeErrorf("'%s' object cannot be interpreted as an integer", typeName(p[i]))
	}
	return n, nil
}

// str returns parameter i as a string, or def if it was left out.
func (p params) str(i int, def string) (string, error) {
	if !p.has(i) {
		return def, nil
	}
	s, ok := str(p[i])
	if !ok {
		return "", typeErrorf("expected str, got %s", typeName(p[i]))
	}
	return s, nil
}

func (p params) truth(i int) bool { return p.has(i) && truth(p[i]) }
