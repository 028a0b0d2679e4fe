package jinja

import "github.com/foretoken/foretoken/internal/chat/value"

// scope holds the variables of a template, a loop's iteration, a macro's call or a block. Assignments stay
// in their scope; an if has none of its own. A macro sees the scope it was defined in, not its caller's.
type scope struct {
	outer *scope
	names []string
	vals  []value.Value
}

func (s *scope) set(name string, v value.Value) {
	for i, n := range s.names {
		if n == name {
			s.vals[i] = v
			return
		}
	}
	s.names = append(s.names, name)
	s.vals = append(s.vals, v)
}

func (s *scope) clear() {
	s.names = s.names[:0]
	s.vals = s.vals[:0]
}

// lookup finds a variable: from the inside out, then what the rendering was given, then the globals.
func (m *machine) lookup(s *scope, name string) value.Value {
	for ; s != nil; s = s.outer {
		for i, n := range s.names {
			if n == name {
				return s.vals[i]
			}
		}
	}
	if v, ok := m.vars.Get(name); ok {
		return v
	}
	if v, ok := globals[name]; ok {
		return v
	}
	return &undefined{name: name}
}
