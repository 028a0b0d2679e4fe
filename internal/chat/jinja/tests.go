package jinja

import (
	"github.com/foretoken/foretoken/internal/chat/value"
)

type testFunc func(m *machine, v value.Value, a args) (bool, error)

// tests are what may stand after is. All but those with an operand take no arguments.
var tests map[string]testFunc

func init() { // in init because the test of that name looks into it
	tests = map[string]testFunc{
		"filter":      named(func(name string) bool { return filters[name] != nil }),
		"test":        named(func(name string) bool { return tests[name] != nil }),
		"odd":         remainder("odd", 2, 1),
		"even":        remainder("even", 2, 0),
		"divisibleby": divisibleBy,
		"in":          comparison("in"),
		"sameas":      operandTest("sameas", func(m *machine, v, w value.Value) (bool, error) { return v == w, nil }),
		"sequence": simple(func(m *machine, v value.Value) bool {
			switch v.(type) {
			case string, markup, *value.List, *value.Tuple, *value.Object, *span, *undefined:
				return true
			}
			return false
		}),
		"iterable": simple(func(m *machine, v value.Value) bool {
			_, err := m.iterate(v)
			return err == nil
		}),
		"lower": caseTest("islower"),
		"upper": caseTest("isupper"),
	}
	for op, names := range map[string][]string{
		"==": {"==", "eq", "equalto"}, "!=": {"!=", "ne"},
		">": {">", "gt", "greaterthan"}, ">=": {">=", "ge"},
		"<": {"<", "lt", "lessthan"}, "<=": {"<=", "le"},
	} {
		for _, name := range names {
			tests[name] = comparison(op)
		}
	}
	for name, is := range map[string]func(value.Value) bool{
		"defined":   func(v value.Value) bool { _, ok := v.(*undefined); return !ok },
		"undefined": func(v value.Value) bool { _, ok := v.(*undefined); return ok },
		"none":      func(v value.Value) bool { return v == nil },
		"boolean":   isBool,
		"true":      func(v value.Value) bool { return v == true },
		"false":     func(v value.Value) bool { return v == false },
		"integer":   func(v value.Value) bool { n, ok := number(v); return ok && !isFloat(n) && !isBool(v) },
		"float":     isFloat,
		"number":    func(v value.Value) bool { _, ok := number(v); return ok },
		"string":    func(v value.Value) bool { _, ok := str(v); return ok },
		"mapping":   func(v value.Value) bool { _, ok := v.(*value.Object); return ok },
		"escaped":   func(v value.Value) bool { _, ok := v.(markup); return ok },
		"callable": func(v value.Value) bool {
			switch v.(type) {
			case *function, *macro, *loop, *undefined:
				return true
			}
			return false
		},
	} {
		tests[name] = simple(func(m *machine, v value.Value) bool { return is(v) })
	}
}

// test applies the test of a name.
func (m *machine) test(name string, v value.Value, a args) (bool, error) {
	f := tests[name]
	if f == nil {
		return false, errorf("TemplateRuntimeError", "No test named '%s'.", name)
	}
	if err := m.step(1); err != nil {
		return false, err
	}
	return f(m, v, a)
}

func simple(is func(m *machine, v value.Value) bool) testFunc {
	return func(m *machine, v value.Value, a args) (bool, error) {
		if _, err := a.bind("test", ""); err != nil {
			return false, err
		}
		return is(m, v), nil
	}
}

func operandTest(name string, is func(m *machine, v, w value.Value) (bool, error)) testFunc {
	return func(m *machine, v value.Value, a args) (bool, error) {
		p, err := a.bind(name, "other")
		if err != nil {
			return false, err
		}
		return is(m, v, p[0])
	}
}

func comparison(op string) testFunc {
	return operandTest(op, func(m *machine, v, w value.Value) (bool, error) { return m.compare(op, v, w) })
}

func named(known func(name string) bool) testFunc {
	return func(m *machine, v value.Value, a args) (bool, error) {
		if _, ok := value.Hash(v); !ok {
			return false, typeErrorf("unhashable type: '%s'", typeName(v))
		}
		name, ok := str(v)
		return ok && known(name), nil
	}
}

func caseTest(method string) testFunc {
	return func(m *machine, v value.Value, a args) (bool, error) {
		s, err := m.text(v)
		if err != nil {
			return false, err
		}
		return strTests[method](s), m.touch(len(s))
	}
}

func remainder(name string, divisor, want int64) testFunc {
	return func(m *machine, v value.Value, a args) (bool, error) {
		if _, err := a.bind(name, ""); err != nil {
			return false, err
		}
		r, err := m.binary("%", v, divisor)
		if err != nil {
			return false, err
		}
		return m.equal(r, want)
	}
}

func divisibleBy(m *machine, v value.Value, a args) (bool, error) {
	p, err := a.bind("divisibleby", "num")
	if err != nil {
		return false, err
	}
	r, err := m.binary("%", v, p[0])
	if err != nil {
		return false, err
	}
	return m.equal(r, int64(0))
}
