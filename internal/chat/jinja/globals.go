package jinja

import (
	"slices"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// globals are the functions a template finds without being given them.
var globals map[string]*function

func init() {
	globals = map[string]*function{}
	for name, f := range map[string]func(m *machine, a args) (value.Value, error){
		"range":           rangeGlobal,
		"dict":            dictGlobal,
		"namespace":       namespaceGlobal,
		"cycler":          cyclerGlobal,
		"joiner":          joinerGlobal,
		"raise_exception": raiseException,
		"strftime_now":    strftimeNow,
	} {
		globals[name] = &function{name, f}
	}
}

// maxRange is what the sandbox allows.
const maxRange = 100_000

func rangeGlobal(m *machine, a args) (value.Value, error) {
	p, err := a.bind("range", "start stop? step?")
	if err != nil {
		return nil, err
	}
	var n [3]int64
	for i := range p {
		v, ok := number(p.or(i, int64(1)))
		x, fits := v.(int64)
		if !ok || isFloat(v) {
			return nil, typeErrorf("'%s' object cannot be interpreted as an integer", typeName(p[i]))
		}
		if !fits || x < -1<<40 || x > 1<<40 {
			return nil, errorf("OverflowError", "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
		}
		n[i] = x
	}
	r := &span{n[0], n[1], n[2]}
	if !p.has(1) {
		r.start, r.stop = 0, n[0]
	}
	if r.step == 0 {
		return nil, valueErrorf("range() arg 3 must not be zero")
	}
	if r.len() > maxRange {
		return nil, errorf("OverflowError", "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
	}
	return r, nil
}

func raiseException(m *machine, a args) (value.Value, error) {
	p, err := a.bind("raise_exception", "message")
	if err != nil {
		return nil, err
	}
	text, err := m.text(p[0])
	if err != nil {
		return nil, err
	}
	return nil, &RaisedError{Message: text}
}

func strftimeNow(m *machine, a args) (value.Value, error) {
	p, err := a.bind("strftime_now", "format")
	if err != nil {
		return nil, err
	}
	format, err := p.str(0, "")
	if err != nil {
		return nil, err
	}
	if err := m.alloc(24 * len(format)); err != nil { // %c, two bytes, makes 24
		return nil, err
	}
	return strftime(m.now, format), nil
}

// makeObject builds a dict from what dict() and namespace() take: a mapping or pairs, then keywords.
func (m *machine) makeObject(a args) (*value.Object, error) {
	o := new(value.Object)
	if len(a.pos) > 1 {
		return nil, typeErrorf("dict expected at most 1 argument, got %d", len(a.pos))
	}
	if len(a.pos) == 1 {
		if src, ok := a.pos[0].(*value.Object); ok {
			if err := m.items(4 * src.Len()); err != nil {
				return nil, err
			}
			o = src.Clone()
		} else if err := m.each(a.pos[0], func(item value.Value) error {
			pair, err := m.unpack(item, 2)
			if err != nil {
				return err
			}
			if err := o.SetKey(pair[0], pair[1]); err != nil {
				return typeErrorf("unhashable type: '%s'", typeName(pair[0]))
			}
			return m.items(4)
		}); err != nil {
			return nil, err
		}
	}
	for i, name := range a.names {
		o.Set(name, a.named[i])
	}
	return o, m.items(4 * len(a.names))
}

func dictGlobal(m *machine, a args) (value.Value, error) { return m.makeObject(a) }

func namespaceGlobal(m *machine, a args) (value.Value, error) {
	o, err := m.makeObject(a)
	return &namespace{o}, err
}

func cyclerGlobal(m *machine, a args) (value.Value, error) {
	if len(a.pos) == 0 {
		return nil, errorf("RuntimeError", "at least one item has to be provided")
	}
	return &cycler{items: slices.Clone(a.pos)}, nil
}

func (c *cycler) attr(name string) (value.Value, bool) {
	switch name {
	case "current":
		return c.items[c.pos], true
	case "next":
		return &function{name, func(m *machine, a args) (value.Value, error) {
			v := c.items[c.pos]
			c.pos = (c.pos + 1) % len(c.items)
			return v, nil
		}}, true
	case "reset":
		return &function{name, func(m *machine, a args) (value.Value, error) { c.pos = 0; return nil, nil }}, true
	}
	return nil, false
}

// joinerGlobal returns a function that returns its separator on every call but the first.
func joinerGlobal(m *machine, a args) (value.Value, error) {
	p, err := a.bind("joiner", "sep?")
	if err != nil {
		return nil, err
	}
	used := false
	return &function{"joiner", func(m *machine, a args) (value.Value, error) {
		if !used {
			used = true
			return "", nil
		}
		return p.or(0, ", "), nil
	}}, nil
}
