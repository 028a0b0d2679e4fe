package jinja

import (
	"math"
	"math/big"
	"strings"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// maxBits bounds integers: beyond it Python itself refuses to print them.
const maxBits = 1 << 17

// number returns v as int64, *big.Int or float64; True and False count as 1 and 0.
func number(v value.Value) (value.Value, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return int64(1), true
		}
		return int64(0), true
	case int64, *big.Int, float64:
		return v, true
	}
	return nil, false
}

func isFloat(v value.Value) bool { _, ok := v.(float64); return ok }

// bigInt returns an integer, or nil for anything else.
func bigInt(v value.Value) *big.Int {
	switch v := v.(type) {
	case int64:
		return big.NewInt(v)
	case *big.Int:
		return v
	}
	return nil
}

// toFloat returns a number as a float; integers beyond its range become infinite.
func toFloat(v value.Value) float64 {
	switch v := v.(type) {
	case bool:
		if v {
			return 1
		}
	case int64:
		return float64(v)
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		return f
	case float64:
		return v
	}
	return 0
}

// index returns v as an int that can count or index; integers out of range come out at its ends.
func index(v value.Value) (int, bool) {
	n, _ := number(v)
	switch n := n.(type) {
	case int64:
		return int(n), true
	case *big.Int:
		if n.Sign() < 0 {
			return math.MinInt, true
		}
		return math.MaxInt, true
	}
	return 0, false
}

// truncate returns Python's int(f).
func truncate(f float64) (value.Value, error) {
	if math.IsNaN(f) {
		return nil, valueErrorf("cannot convert float NaN to integer")
	}
	if math.IsInf(f, 0) {
		return nil, errorf("OverflowError", "cannot convert float infinity to integer")
	}
	i, _ := big.NewFloat(f).Int(nil)
	return value.Int(i), nil
}

// arithmetic returns `a op b` of two numbers.
func arithmetic(op string, a, b value.Value) (value.Value, error) {
	if isFloat(a) || isFloat(b) {
		return floatArithmetic(op, toFloat(a), toFloat(b))
	}
	if op == "/" {
		return divide(a, b)
	}
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			if v, ok := smallArithmetic(op, x, y); ok {
				return v, nil
			}
		}
	}
	x, y := bigInt(a), bigInt(b)
	z := new(big.Int)
	switch op {
	case "+":
		z.Add(x, y)
	case "-":
		z.Sub(x, y)
	case "*":
		if x.BitLen()+y.BitLen() > maxBits {
			return nil, &LimitError{"integer too large", nil}
		}
		z.Mul(x, y)
	case "//", "%":
		if y.Sign() == 0 {
			return nil, errorf("ZeroDivisionError", "integer division or modulo by zero")
		}
		q, r := new(big.Int).QuoRem(x, y, new(big.Int))
		if r.Sign() != 0 && r.Sign() != y.Sign() { // Python rounds down, the remainder has y's sign
			q.Sub(q, big.NewInt(1))
			r.Add(r, y)
		}
		z = q
		if op == "%" {
			z = r
		}
	case "**":
		return power(x, y)
	}
	if z.BitLen() > maxBits {
		return nil, &LimitError{"integer too large", nil}
	}
	return value.Int(z), nil
}

// divide returns the float nearest to the quotient of two integers.
func divide(a, b value.Value) (value.Value, error) {
	y := exact(b)
	if y.Sign() == 0 {
		return nil, errorf("ZeroDivisionError", "division by zero")
	}
	if x := exact(a); x.Sign() == 0 {
		return 0 / toFloat(b), nil // -0.0 over a negative b
	}
	f, _ := y.Quo(exact(a), y).Float64()
	if math.IsInf(f, 0) {
		return nil, errorf("OverflowError", "integer division result too large for a float")
	}
	return f, nil
}

// smallArithmetic does what does not overflow.
func smallArithmetic(op string, x, y int64) (value.Value, bool) {
	const half = 1 << 62
	switch op {
	case "+":
		if -half < x && x < half && -half < y && y < half {
			return x + y, true
		}
	case "-":
		if -half < x && x < half && -half < y && y < half {
			return x - y, true
		}
	case "*":
		if -1<<31 < x && x < 1<<31 && -1<<31 < y && y < 1<<31 {
			return x * y, true
		}
	case "//":
		if y > 0 {
			q := x / y
			if x%y < 0 {
				q--
			}
			return q, true
		}
	case "%":
		if y > 0 {
			r := x % y
			if r < 0 {
				r += y
			}
			return r, true
		}
	}
	return nil, false
}

func power(x, y *big.Int) (value.Value, error) {
	if y.Sign() < 0 {
		if x.Sign() == 0 {
			return nil, errorf("ZeroDivisionError", "0.0 cannot be raised to a negative power")
		}
		return pow(toFloat(value.Int(x)), toFloat(value.Int(y))), nil
	}
	if x.BitLen() > 1 && (!y.IsInt64() || y.Int64() > maxBits/int64(x.BitLen()-1)) {
		return nil, &LimitError{"integer too large", nil}
	}
	if x.BitLen() <= 1 { // -1, 0, 1: only the exponent's parity matters
		y = new(big.Int).SetInt64(int64(y.Bit(0)) + 2*int64(min(y.BitLen(), 1)))
	}
	return value.Int(new(big.Int).Exp(x, y, nil)), nil
}

func floatArithmetic(op string, x, y float64) (value.Value, error) {
	switch op {
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "*":
		return x * y, nil
	case "/":
		if y == 0 {
			return nil, errorf("ZeroDivisionError", "division by zero")
		}
		return x / y, nil
	case "//", "%":
		if y == 0 {
			return nil, errorf("ZeroDivisionError", "float floor division by zero")
		}
		r := math.Mod(x, y)
		q := (x - r) / y
		if r != 0 && (r < 0) != (y < 0) {
			r += y
			q--
		}
		if op == "%" {
			if r == 0 {
				r = math.Copysign(0, y)
			}
			return r, nil
		}
		if q == 0 {
			return math.Copysign(0, x/y), nil
		}
		if f := math.Floor(q); q-f > 0.5 {
			q = f + 1
		} else {
			q = f
		}
		return q, nil
	}
	if x == 0 && y < 0 {
		return nil, errorf("ZeroDivisionError", "0.0 cannot be raised to a negative power")
	}
	if x < 0 && y != math.Trunc(y) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return nil, valueErrorf("complex numbers are not supported")
	}
	r := pow(x, y)
	if math.IsInf(r, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return nil, errorf("OverflowError", "(34, 'Numerical result out of range')")
	}
	return r, nil
}

// pow returns x to the power of y. Go's math.Pow is off in the last digit more often than the C library's
// that Python prints, so whole and half powers are computed with digits to spare.
func pow(x, y float64) float64 {
	n := math.Trunc(math.Abs(y))
	half := math.Abs(y) - n
	if n > 1024 || half != 0 && half != 0.5 || half != 0 && x < 0 || x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return math.Pow(x, y)
	}
	const digits = 256
	r := new(big.Float).SetPrec(digits).SetInt64(1)
	base := new(big.Float).SetPrec(digits).SetFloat64(x)
	if half != 0 {
		r.Sqrt(base)
	}
	for i := int(n); i > 0; i >>= 1 {
		if i&1 == 1 {
			r.Mul(r, base)
		}
		base.Mul(base, base)
	}
	if y < 0 {
		r.Quo(new(big.Float).SetPrec(digits).SetInt64(1), r)
	}
	f, _ := r.Float64()
	return f
}

// parseInt returns Python's int(s, base), or nil.
func parseInt(s string, base int) value.Value {
	s = strings.TrimFunc(s, isSpace)
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	if len(s) > 1 && s[0] == '0' {
		prefix := map[byte]int{'b': 2, 'o': 8, 'x': 16}[s[1]|0x20]
		switch {
		case prefix != 0 && (base == 0 || base == prefix):
			base, s = prefix, strings.TrimPrefix(s[2:], "_")
		case base == 0 && strings.Trim(s, "0_") != "":
			return nil // 010 has no base
		}
	}
	if base == 0 {
		base = 10
	}
	if s == "" || s[0] == '_' || s[len(s)-1] == '_' || strings.Contains(s, "__") || s[0] == '-' || s[0] == '+' ||
		len(s) > value.MaxDigits || base < 2 || base > 36 {
		return nil
	}
	i, ok := new(big.Int).SetString(sign+strings.ReplaceAll(s, "_", ""), base)
	if !ok {
		return nil
	}
	return value.Int(i)
}
