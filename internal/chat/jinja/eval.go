package jinja

import (
	"fmt"
	"slices"

	"github.com/foretoken/foretoken/internal/chat/jinja/parse"
	"github.com/foretoken/foretoken/internal/chat/value"
)

// eval returns the value of an expression. It recurses as high as the tree is, which the parser bounds.
func (m *machine) eval(x parse.Expr, s *scope) (value.Value, error) {
	if err := m.step(1); err != nil {
		return nil, err
	}
	switch x := x.(type) {
	case *parse.Const:
		return x.Value, nil
	case *parse.Name:
		return m.lookup(s, x.Name), nil
	case *parse.Attr:
		v, err := m.eval(x.X, s)
		if err != nil {
			return nil, err
		}
		v, err = m.attr(v, x.Name)
		return v, atLine(x, err)
	case *parse.Index:
		v, i, err := m.eval2(x.X, x.Index, s)
		if err != nil {
			return nil, err
		}
		return m.item(v, i)
	case *parse.Slice:
		return m.evalSlice(x, s)
	case *parse.Call:
		v, err := m.evalCall(x, s, nil)
		return v, atLine(x, err)
	case *parse.Filter:
		v, err := m.eval(x.X, s)
		if err != nil {
			return nil, err
		}
		v, err = m.evalFilter(x, s, v)
		return v, atLine(x, err)
	case *parse.Test:
		return m.evalTest(x, s)
	case *parse.Not:
		ok, err := m.evalTruth(x.X, s)
		return !ok, err
	case *parse.Unary:
		v, err := m.eval(x.X, s)
		if err != nil {
			return nil, err
		}
		return m.unary(x.Op, v)
	case *parse.Binary:
		return m.evalBinary(x, s)
	case *parse.Logic:
		v, err := m.eval(x.X, s)
		if err != nil || truth(v) == x.Or {
			return v, err
		}
		return m.eval(x.Y, s)
	case *parse.Compare:
		return m.evalCompare(x, s)
	case *parse.Concat:
		return m.evalConcat(x, s)
	case *parse.Cond:
		return m.evalCond(x, s)
	case *parse.List:
		items, err := m.evalAll(x.Items, s)
		return &value.List{Items: items}, err
	case *parse.Tuple:
		items, err := m.evalAll(x.Items, s)
		return &value.Tuple{Items: items}, err
	case *parse.Dict:
		return m.evalDict(x, s)
	}
	panic(fmt.Sprintf("jinja: unknown expression %T", x))
}

func (m *machine) eval2(x, y parse.Expr, s *scope) (a, b value.Value, err error) {
	if a, err = m.eval(x, s); err != nil {
		return nil, nil, err
	}
	b, err = m.eval(y, s)
	return a, b, err
}

func (m *machine) evalAll(xs []parse.Expr, s *scope) ([]value.Value, error) {
	vs := make([]value.Value, len(xs))
	for i, x := range xs {
		v, err := m.eval(x, s)
		if err != nil {
			return nil, err
		}
		vs[i] = v
	}
	return vs, m.items(len(vs))
}

func (m *machine) evalTruth(x parse.Expr, s *scope) (bool, error) {
	v, err := m.eval(x, s)
	return truth(v), err
}

// evalBinary takes a sum's operands from the left one by one: a + b + c + d of strings, the body of most
// templates, is joined once instead of three times.
func (m *machine) evalBinary(x *parse.Binary, s *scope) (value.Value, error) {
	if x.Op != "+" {
		a, b, err := m.eval2(x.X, x.Y, s)
		if err != nil {
			return nil, err
		}
		v, err := m.binary(x.Op, a, b)
		return v, atLine(x, err)
	}
	operands := []parse.Expr{x.Y}
	first := x.X
	for {
		b, ok := first.(*parse.Binary)
		if !ok || b.Op != "+" {
			break
		}
		operands = append(operands, b.Y)
		first = b.X
	}
	acc, err := m.eval(first, s)
	if err != nil {
		return nil, err
	}
	joined := text{budget: &m.budget} // acc, while it is a plain string
	joining := false
	for _, operand := range slices.Backward(operands) {
		v, err := m.eval(operand, s)
		if err != nil {
			return nil, err
		}
		a, ok1 := acc.(string)
		b, ok2 := v.(string)
		if ok1 && ok2 {
			if !joining {
				joining = true
				if err := joined.write(a); err != nil {
					return nil, err
				}
			}
			if err := joined.write(b); err != nil {
				return nil, err
			}
			continue
		}
		if joining {
			acc, joining = joined.String(), false
			joined = text{budget: &m.budget}
		}
		if acc, err = m.binary("+", acc, v); err != nil {
			return nil, atLine(x, err)
		}
	}
	if joining {
		acc = joined.String()
	}
	return acc, nil
}

// evalCompare evaluates a < b < c: each operand once, and none after the first comparison that fails.
func (m *machine) evalCompare(x *parse.Compare, s *scope) (value.Value, error) {
	a, err := m.eval(x.X, s)
	if err != nil {
		return nil, err
	}
	for i, op := range x.Ops {
		b, err := m.eval(x.Rest[i], s)
		if err != nil {
			return nil, err
		}
		if ok, err := m.compare(op, a, b); err != nil || !ok {
			return false, atLine(x, err)
		}
		a = b
	}
	return true, nil
}

func (m *machine) evalConcat(x *parse.Concat, s *scope) (value.Value, error) {
	b := text{budget: &m.budget}
	for _, part := range x.Parts {
		v, err := m.eval(part, s)
		if err != nil {
			return nil, err
		}
		str, err := m.text(v)
		if err != nil {
			return nil, err
		}
		if err := b.write(str); err != nil {
			return nil, err
		}
	}
	return b.String(), nil
}

func (m *machine) evalCond(x *parse.Cond, s *scope) (value.Value, error) {
	ok, err := m.evalTruth(x.Test, s)
	switch {
	case err != nil:
		return nil, err
	case ok:
		return m.eval(x.Then, s)
	case x.Else != nil:
		return m.eval(x.Else, s)
	}
	return &undefined{hint: fmt.Sprintf("the inline if-expression on line %d evaluated to false and no else section was defined.", x.Line())}, nil
}

func (m *machine) evalDict(x *parse.Dict, s *scope) (value.Value, error) {
	o := new(value.Object)
	for i := range x.Keys {
		k, v, err := m.eval2(x.Keys[i], x.Values[i], s)
		if err != nil {
			return nil, err
		}
		if err := o.SetKey(k, v); err != nil {
			return nil, typeErrorf("unhashable type: '%s'", typeName(k))
		}
	}
	return o, m.items(4 * o.Len())
}

func (m *machine) evalSlice(x *parse.Slice, s *scope) (value.Value, error) {
	v, err := m.eval(x.X, s)
	if err != nil {
		return nil, err
	}
	var bounds [3]value.Value
	for i, part := range []parse.Expr{x.Lo, x.Hi, x.Step} {
		if part == nil {
			continue
		}
		if bounds[i], err = m.eval(part, s); err != nil {
			return nil, err
		}
	}
	v, err = m.slice(v, bounds)
	return v, atLine(x, err)
}

// evalFilter applies a filter to v.
func (m *machine) evalFilter(x *parse.Filter, s *scope, v value.Value) (value.Value, error) {
	a, err := m.evalArgs(x.Args, s)
	if err != nil {
		return nil, err
	}
	return m.filter(x.Name, v, a)
}

// evalBlockFilter applies the filters of a block, of which the first has no operand, to the block's text.
func (m *machine) evalBlockFilter(x *parse.Filter, s *scope, text string) (value.Value, error) {
	var v value.Value = text
	if inner, ok := x.X.(*parse.Filter); ok {
		var err error
		if v, err = m.evalBlockFilter(inner, s, text); err != nil {
			return nil, err
		}
	}
	return m.evalFilter(x, s, v)
}

func (m *machine) evalTest(x *parse.Test, s *scope) (value.Value, error) {
	v, err := m.eval(x.X, s)
	if err != nil {
		return nil, err
	}
	a, err := m.evalArgs(x.Args, s)
	if err != nil {
		return nil, err
	}
	ok, err := m.test(x.Name, v, a)
	return ok, atLine(x, err)
}
