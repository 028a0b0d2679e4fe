package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/foretoken/foretoken/internal/chat/value"
)

func intFilter(m *machine, v value.Value, p params) (value.Value, error) {
	base, err := p.int(1, 10)
	if err != nil {
		return nil, err
	}
	if s, ok := str(v); ok {
		if err := m.alloc(len(s)); err != nil {
			return nil, err
		}
		if n := parseInt(s, base); n != nil {
			return n, nil
		}
		if f, ok := parseFloat(s); ok { // "42.23" is 42
			if n, err := truncate(f); err == nil {
				return n, nil
			}
		}
		return p.or(0, int64(0)), nil
	}
	switch n, _ := number(v); n := n.(type) {
	case float64:
		if math.IsInf(n, 0) {
			return truncate(n) // an error of its own kind, which Jinja lets pass
		}
		if i, err := truncate(n); err == nil {
			return i, nil
		}
	case int64, *big.Int:
		return n, nil
	}
	if u, ok := v.(*undefined); ok {
		return nil, u.fail()
	}
	return p.or(0, int64(0)), nil
}

// parseFloat is Python's float(s).
func parseFloat(s string) (float64, bool) {
	s = strings.TrimFunc(s, isSpace)
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case "inf", "infinity", "nan":
	default:
		if strings.ContainsAny(s, "xXpPiInN") || strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") {
			return 0, false
		}
		s = strings.ReplaceAll(s, "_", "")
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

func floatFilter(m *machine, v value.Value, p params) (value.Value, error) {
	if n, ok := number(v); ok {
		return toFloat(n), nil
	}
	if s, ok := str(v); ok {
		if f, ok := parseFloat(s); ok {
			return f, m.touch(len(s))
		}
	}
	if u, ok := v.(*undefined); ok {
		return nil, u.fail()
	}
	return p.or(0, 0.0), nil
}

func absFilter(m *machine, v value.Value, p params) (value.Value, error) {
	switch n, _ := number(v); n := n.(type) {
	case float64:
		return math.Abs(n), nil
	case int64, *big.Int:
		return value.Int(new(big.Int).Abs(bigInt(n))), nil
	}
	return nil, typeErrorf("bad operand type for abs(): '%s'", typeName(v))
}

func roundFilter(m *machine, v value.Value, p params) (value.Value, error) {
	precision, err := p.int(0, 0)
	if err != nil {
		return nil, err
	}
	method, err := p.str(1, "common")
	if err != nil {
		return nil, err
	}
	n, ok := number(v)
	if !ok {
		if u, ok := v.(*undefined); ok {
			return nil, u.fail()
		}
		return nil, typeErrorf("type %s doesn't define __round__ method", typeName(v))
	}
	switch method {
	case "common":
		if isFloat(n) {
			return roundFloat(n.(float64), precision), nil
		}
		return roundInt(n, precision)
	case "ceil", "floor":
		f := math.Ceil
		if method == "floor" {
			f = math.Floor
		}
		scale := math.Pow(10, float64(precision))
		return (f(toFloat(n)*scale) + 0) / scale, nil // + 0: Python's ceil and floor are ints, without -0
	}
	return nil, errorf("FilterArgumentError", "method must be common, ceil or floor")
}

// roundFloat rounds the exact decimal value of x, halves to even.
func roundFloat(x float64, precision int) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0) || precision > 323:
		return x
	case precision < -308:
		return math.Copysign(0, x)
	case precision >= 0:
		f, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'f', precision, 64), 64)
		return f
	}
	scale := math.Pow(10, float64(-precision))
	return math.RoundToEven(x/scale) * scale
}

func roundInt(n value.Value, precision int) (value.Value, error) {
	if precision >= 0 {
		return n, nil
	}
	if precision < -value.MaxDigits {
		return int64(0), nil
	}
	i := bigInt(n)
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-precision)), nil)
	q, r := new(big.Int).DivMod(i, scale, new(big.Int)) // 0 <= r < scale
	switch c := r.Lsh(r, 1).Cmp(scale); {
	case c > 0, c == 0 && q.Bit(0) == 1:
		q.Add(q, big.NewInt(1))
	}
	return value.Int(q.Mul(q, scale)), nil
}

func sumFilter(m *machine, v value.Value, p params) (value.Value, error) {
	along := path(p.or(0, nil))
	total := p.or(1, int64(0))
	if _, ok := str(total); ok {
		return nil, typeErrorf("sum() can't sum strings [use ''.join(seq) instead]")
	}
	err := m.each(v, func(item value.Value) error {
		item, err := m.follow(item, along, nil)
		if err != nil {
			return err
		}
		total, err = m.binary("+", total, item)
		return err
	})
	return total, err
}
