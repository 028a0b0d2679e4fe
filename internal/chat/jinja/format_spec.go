package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// spec is Python's format mini-language: [[fill]align][sign][#][0][width][grouping][.precision][type].
// The % operator's conversions are turned into it.
type spec struct {
	fill      string
	align     byte // < > ^ = or 0
	sign      byte // + - space or 0
	alt       bool // #
	width     int
	grouping  byte // , _ or 0
	precision int  // -1 if there is none
	verb      byte // or 0
}

func parseSpec(s string) (spec, error) {
	f := spec{fill: " ", precision: -1}
	_, n := utf8.DecodeRuneInString(s)
	switch {
	case len(s) > n && strings.IndexByte("<>^=", s[n]) >= 0:
		f.fill, f.align, s = s[:n], s[n], s[n+1:]
	case s != "" && strings.IndexByte("<>^=", s[0]) >= 0:
		f.align, s = s[0], s[1:]
	}
	take := func(set string) byte {
		if s != "" && strings.IndexByte(set, s[0]) >= 0 {
			c := s[0]
			s = s[1:]
			return c
		}
		return 0
	}
	f.sign = take("+- ")
	f.alt = take("#") != 0
	if take("0") != 0 {
		if f.align == 0 {
			f.align = '='
		}
		if f.fill == " " {
			f.fill = "0"
		}
	}
	var ok bool
	if f.width, s, ok = leadingInt(s); !ok {
		return f, valueErrorf("Too many decimal digits in format string")
	}
	f.grouping = take(",_")
	if take(".") != 0 {
		rest := s
		if f.precision, s, ok = leadingInt(s); !ok || rest == s {
			return f, valueErrorf("Format specifier missing precision")
		}
	}
	if s != "" {
		f.verb, s = s[0], s[1:]
	}
	if s != "" {
		return f, valueErrorf("Invalid format specifier")
	}
	if f.grouping == ',' && strings.IndexByte("bcnosxX", f.verb) >= 0 || f.grouping == '_' && strings.IndexByte("cns", f.verb) >= 0 {
		return f, valueErrorf("Cannot specify '%c' with '%c'.", f.grouping, f.verb)
	}
	return f, nil
}

// leadingInt reads the digits at the start of s; ok is false if the number is absurd.
func leadingInt(s string) (n int, rest string, ok bool) {
	for s != "" && '0' <= s[0] && s[0] <= '9' {
		if n = n*10 + int(s[0]-'0'); n > math.MaxInt32 {
			return 0, s, false
		}
		s = s[1:]
	}
	return n, s, true
}

// format applies a spec to a value.
func (m *machine) format(v value.Value, f spec) (string, error) {
	if f == (spec{fill: " ", precision: -1}) {
		return m.text(v)
	}
	if n, ok := number(v); ok {
		return m.formatNumber(n, f)
	}
	s, ok := str(v)
	if !ok {
		return "", typeErrorf("unsupported format string passed to %s.__format__", typeName(v))
	}
	if f.verb != 0 && f.verb != 's' {
		return "", valueErrorf("Unknown format code '%c' for object of type 'str'", f.verb)
	}
	if f.align == '=' && f.fill == "0" {
		f.align = '<' // '05' of a string pads at the end
	}
	if f.sign != 0 || f.alt || f.align == '=' || f.grouping != 0 {
		return "", valueErrorf("this format is not allowed in string format specifier")
	}
	return m.formatString(s, f)
}

func isBool(v value.Value) bool { _, ok := v.(bool); return ok }

func (m *machine) formatString(s string, f spec) (string, error) {
	if err := m.touch(len(s)); err != nil {
		return "", err
	}
	if f.precision >= 0 {
		s = s[:runeOffset(s, f.precision)]
	}
	if f.align == 0 {
		f.align = '<'
	}
	return m.align("", s, f)
}

// align pads a prefix (a sign, 0x) and a body to the spec's width.
func (m *machine) align(prefix, body string, f spec) (string, error) {
	v, err := m.pad(prefix+body, f.width, f.fill, func(n int) int {
		switch f.align {
		case '<':
			return 0
		case '^':
			return n / 2
		}
		return n
	})
	if err != nil || f.align != '=' || prefix == "" {
		s, _ := v.(string)
		return s, err
	}
	// The padding goes between the prefix and the body.
	s := v.(string)
	return prefix + s[:len(s)-len(prefix)-len(body)] + body, nil
}

func (m *machine) formatNumber(n value.Value, f spec) (string, error) {
	if isFloat(n) || strings.IndexByte("eEfFgG%", max(f.verb, 1)) >= 0 {
		return m.formatFloat(toFloat(n), f)
	}
	i := bigInt(n)
	if f.precision >= 0 {
		return "", valueErrorf("Precision not allowed in integer format specifier")
	}
	base, prefix := 10, ""
	switch f.verb {
	case 0, 'd', 'n':
	case 'b':
		base, prefix = 2, "0b"
	case 'o':
		base, prefix = 8, "0o"
	case 'x':
		base, prefix = 16, "0x"
	case 'X':
		base, prefix = 16, "0X"
	case 'c':
		if f.sign != 0 || f.alt {
			return "", valueErrorf("Sign not allowed with integer format specifier 'c'")
		}
		if !i.IsInt64() || i.Int64() < 0 || i.Int64() > utf8.MaxRune || !utf8.ValidRune(rune(i.Int64())) {
			return "", errorf("OverflowError", "%%c arg not in range(0x110000)")
		}
		return m.formatString(string(rune(i.Int64())), f)
	default:
		return "", valueErrorf("Unknown format code '%c' for object of type 'int'", f.verb)
	}
	if base == 10 && i.BitLen() > maxBits/9 {
		return "", valueErrorf("Exceeds the limit (%d digits) for integer string conversion", value.MaxDigits)
	}
	digits := new(big.Int).Abs(i).Text(base)
	if f.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	if !f.alt {
		prefix = ""
	}
	if err := m.alloc(len(digits)); err != nil {
		return "", err
	}
	group := 3
	if base != 10 {
		group = 4
	}
	return m.finish(i.Sign() < 0, prefix, digits, group, f)
}

// finish puts sign, prefix, digits and padding together.
func (m *machine) finish(negative bool, prefix, digits string, group int, f spec) (string, error) {
	switch {
	case negative:
		prefix = "-" + prefix
	case f.sign == '+' || f.sign == ' ':
		prefix = string(f.sign) + prefix
	}
	if f.align == 0 {
		f.align = '>'
	}
	if f.grouping != 0 {
		whole, rest := digits, ""
		if i := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 && group == 3 {
			whole, rest = digits[:i], digits[i:]
		}
		if f.align == '=' && f.fill == "0" { // the zeros that pad are grouped, too
			n := len(whole)
			if room := f.width - len(prefix) - len(rest); room > n {
				n = max(n, room-room/(group+1))
				if n+(n-1)/group < room { // a separator cannot come first
					n++
				}
			}
			zeros, err := m.repeatText("0", n-len(whole))
			if err != nil {
				return "", err
			}
			whole = zeros + whole
		}
		if err := m.alloc(2 * len(whole)); err != nil {
			return "", err
		}
		digits = grouped(whole, group, f.grouping) + rest
	}
	return m.align(prefix, digits, f)
}

func grouped(digits string, n int, sep byte) string {
	var b strings.Builder
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%n == 0 {
			b.WriteByte(sep)
		}
		b.WriteByte(digits[i])
	}
	return b.String()
}

func (m *machine) formatFloat(x float64, f spec) (string, error) {
	abs := math.Abs(x)
	precision := f.precision
	if precision < 0 {
		precision = 6
	}
	if precision > 1<<20 {
		return "", valueErrorf("precision too big")
	}
	if err := m.alloc(precision + 400); err != nil {
		return "", err
	}
	var s string
	switch f.verb {
	case 'f', 'F', '%':
		if f.verb == '%' {
			abs *= 100
		}
		s = strconv.FormatFloat(abs, 'f', precision, 64)
	case 'e', 'E':
		s = strconv.FormatFloat(abs, 'e', precision, 64)
	case 'g', 'G', 'n':
		p := max(precision, 1)
		s = general(abs, p, p, f.alt)
	case 0:
		if f.precision < 0 {
			s = value.FormatFloat(abs)
			break
		}
		p := max(precision, 1)
		s = general(abs, p, p-1, f.alt)
		if !strings.ContainsAny(s, ".e") {
			s += ".0"
		}
	default:
		return "", valueErrorf("Unknown format code '%c' for object of type 'float'", f.verb)
	}
	switch {
	case math.IsInf(x, 0):
		s = "inf"
	case math.IsNaN(x):
		s = "nan"
	case f.alt && !strings.Contains(s, "."):
		mantissa, exp, _ := strings.Cut(s, "e")
		s = mantissa + "."
		if exp != "" {
			s += "e" + exp
		}
	}
	if f.verb == '%' {
		s += "%"
	}
	if f.verb == 'E' || f.verb == 'F' || f.verb == 'G' {
		s = strings.ToUpper(s)
	}
	return m.finish(math.Signbit(x) && !math.IsNaN(x), "", s, 3, f)
}

// general is C's %g: with an exponent if that is below -4 or not below limit, and without zeros at the end
// unless they are asked for.
func general(x float64, precision, limit int, keepZeros bool) string {
	e := strconv.FormatFloat(x, 'e', precision-1, 64)
	mantissa, exponent, _ := strings.Cut(e, "e")
	exp, _ := strconv.Atoi(exponent)
	isExp := exp < -4 || exp >= limit
	if !isExp {
		mantissa = strconv.FormatFloat(x, 'f', max(precision-1-exp, 0), 64)
	}
	if !keepZeros && strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	if isExp {
		return mantissa + "e" + exponent
	}
	return mantissa
}
