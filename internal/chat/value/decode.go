package value

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// MaxDepth is how deep arrays and objects of a decoded text may nest. Walks of a decoded value may
	// recurse without a check of their own.
	MaxDepth = 128
	// MaxDigits is how many digits an integer may have: Python's own limit.
	MaxDigits = 4300
)

// Decode reads one JSON text (RFC 8259). As in Python, a key that comes twice keeps its first place and
// its last value. Unlike Python it refuses what is no JSON or has no UTF-8 form: NaN and Infinity, numbers
// beyond float64, half a surrogate pair. Errors name the byte offset.
func Decode(data []byte) (Value, error) { return decode(data, decoder{digits: MaxDigits}) }

// Limits bound what DecodeUnique takes: what is decoded takes up to 40 bytes for each byte of a text such
// as [[],[],…].
type Limits struct {
	Values int // all of them
	Keys   int // of one object
	Digits int // of an integer, at most MaxDigits: to convert them takes more than linear time
}

// DecodeUnique is Decode that refuses a key that comes twice in an object, and what is beyond limits.
func DecodeUnique(data []byte, limits Limits) (Value, error) {
	return decode(data, decoder{unique: true, left: limits.Values, keys: limits.Keys, digits: min(limits.Digits, MaxDigits)})
}

func decode(data []byte, d decoder) (Value, error) {
	if i := invalidUTF8(data); i >= 0 {
		return nil, fmt.Errorf("json: offset %d: invalid UTF-8", i)
	}
	d.s = string(data)
	v, err := d.value(0)
	if err != nil {
		return nil, fmt.Errorf("json: offset %d: %w", d.pos, err)
	}
	if d.space(); d.pos < len(d.s) {
		return nil, fmt.Errorf("json: offset %d: data after the value", d.pos)
	}
	return v, nil
}

func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

type decoder struct {
	s      string
	pos    int
	unique bool // keys, and values and keys are counted
	left   int  // values that may come
	keys   int  // that an object may have
	digits int  // that an integer may have
}

func (d *decoder) space() {
	for d.pos < len(d.s) {
		switch d.s[d.pos] {
		case ' ', '\t', '\r', '\n':
			d.pos++
		default:
			return
		}
	}
}

// peek returns the next byte that is no space, or 0 at the end.
func (d *decoder) peek() byte {
	d.space()
	if d.pos == len(d.s) {
		return 0
	}
	return d.s[d.pos]
}

func (d *decoder) accept(c byte) bool {
	if d.peek() != c || d.pos == len(d.s) {
		return false
	}
	d.pos++
	return true
}

func (d *decoder) value(depth int) (Value, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("nested deeper than %d", MaxDepth)
	}
	if d.left--; d.left < 0 && d.unique {
		return nil, fmt.Errorf("too many values")
	}
	switch c := d.peek(); {
	case c == '{':
		return d.object(depth)
	case c == '[':
		return d.list(depth)
	case c == '"':
		return d.string()
	case c == '-' || '0' <= c && c <= '9':
		return d.number()
	case d.word("null"):
		return nil, nil
	case d.word("true"):
		return true, nil
	case d.word("false"):
		return false, nil
	case d.pos == len(d.s):
		return nil, fmt.Errorf("unexpected end")
	}
	return nil, fmt.Errorf("expected a value, found %q", d.s[d.pos:d.pos+1])
}

func (d *decoder) word(w string) bool {
	if !strings.HasPrefix(d.s[d.pos:], w) {
		return false
	}
	d.pos += len(w)
	return true
}

func (d *decoder) object(depth int) (Value, error) {
	d.pos++ // {
	o := new(Object)
	if d.accept('}') {
		return o, nil
	}
	for {
		if d.peek() != '"' {
			return nil, fmt.Errorf("expected a key")
		}
		text, err := d.string()
		if err != nil {
			return nil, err
		}
		if !d.accept(':') {
			return nil, fmt.Errorf("expected ':'")
		}
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		switch key, n := Value(text), o.Len(); {
		case o.set(key, key, v) && d.unique:
			return nil, fmt.Errorf("the key %.80q comes twice", text)
		case n == d.keys && d.unique:
			return nil, fmt.Errorf("an object has more than %d keys", d.keys)
		}
		if d.accept('}') {
			return o, nil
		}
		if !d.accept(',') {
			return nil, fmt.Errorf("expected ',' or '}'")
		}
	}
}

func (d *decoder) list(depth int) (Value, error) {
	d.pos++ // [
	l := new(List)
	if d.accept(']') {
		return l, nil
	}
	for {
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, v)
		if d.accept(']') {
			return l, nil
		}
		if !d.accept(',') {
			return nil, fmt.Errorf("expected ',' or ']'")
		}
	}
}

func (d *decoder) number() (Value, error) {
	if i, ok := d.short(); ok {
		return i, nil
	}
	start, isFloat := d.pos, false
	digits := func() int {
		n := 0
		for d.pos < len(d.s) && '0' <= d.s[d.pos] && d.s[d.pos] <= '9' {
			d.pos++
			n++
		}
		return n
	}
	next := func(set string) bool {
		if d.pos < len(d.s) && strings.IndexByte(set, d.s[d.pos]) >= 0 {
			d.pos++
			return true
		}
		return false
	}
	next("-")
	first := d.pos
	n := digits()
	if n == 0 || n > 1 && d.s[first] == '0' {
		return nil, fmt.Errorf("malformed number")
	}
	if next(".") {
		isFloat = true
		if digits() == 0 {
			return nil, fmt.Errorf("malformed number")
		}
	}
	if next("eE") {
		isFloat = true
		next("+-")
		if digits() == 0 {
			return nil, fmt.Errorf("malformed number")
		}
	}
	text := d.s[start:d.pos]
	if isFloat {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("number beyond float64")
		}
		return f, nil
	}
	if n > d.digits {
		return nil, fmt.Errorf("integer of %d digits, the most is %d", n, d.digits)
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}
	i, _ := new(big.Int).SetString(text, 10)
	return Int(i), nil
}

// short reads an integer of up to nine digits, as token ids are, of which there may be very many.
func (d *decoder) short() (int64, bool) {
	i, pos := int64(0), d.pos
	for pos < len(d.s) && '0' <= d.s[pos] && d.s[pos] <= '9' {
		i = 10*i + int64(d.s[pos]-'0')
		if pos++; pos-d.pos > 9 {
			return 0, false
		}
	}
	n := pos - d.pos
	if n == 0 || n > 1 && d.s[d.pos] == '0' || pos < len(d.s) && (d.s[pos] == '.' || d.s[pos]|0x20 == 'e') {
		return 0, false
	}
	d.pos = pos
	return i, true
}

func (d *decoder) string() (string, error) {
	d.pos++ // opening quote
	start := d.pos
	for d.pos < len(d.s) {
		switch c := d.s[d.pos]; {
		case c == '"': // no escapes: share the text
			s := d.s[start:d.pos]
			d.pos++
			return s, nil
		case c == '\\':
			return d.escaped(start)
		case c < 0x20:
			return "", fmt.Errorf("control character in a string")
		}
		d.pos++
	}
	return "", fmt.Errorf("unterminated string")
}

// escaped reads on from the first backslash of the string that began at start.
func (d *decoder) escaped(start int) (string, error) {
	var b strings.Builder
	b.WriteString(d.s[start:d.pos])
	for d.pos < len(d.s) {
		c := d.s[d.pos]
		d.pos++
		switch {
		case c == '"':
			return b.String(), nil
		case c < 0x20:
			return "", fmt.Errorf("control character in a string")
		case c != '\\':
			b.WriteByte(c)
		default:
			r, err := d.escape()
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
		}
	}
	return "", fmt.Errorf("unterminated string")
}

func (d *decoder) escape() (rune, error) {
	if d.pos == len(d.s) {
		return 0, fmt.Errorf("unterminated string")
	}
	c := d.s[d.pos]
	d.pos++
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	if c != 'u' {
		return 0, fmt.Errorf("unknown escape \\%c", c)
	}
	r, ok := d.hex4()
	if !ok {
		return 0, fmt.Errorf("malformed \\u escape")
	}
	if utf16.IsSurrogate(r) {
		low := rune(-1)
		if strings.HasPrefix(d.s[d.pos:], `\u`) {
			d.pos += 2
			low, _ = d.hex4()
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return 0, fmt.Errorf("half a surrogate pair")
		}
	}
	return r, nil
}

func (d *decoder) hex4() (rune, bool) {
	if len(d.s)-d.pos < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(d.s[d.pos:d.pos+4], 16, 16)
	if err != nil {
		return 0, false
	}
	d.pos += 4
	return rune(n), true
}
