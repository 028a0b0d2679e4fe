package value

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Encode prints v as prompts want their JSON, which is Python's json.dumps(v, ensure_ascii=False): a
// space after each comma and colon, keys in order, nothing escaped but quotes, backslashes and controls.
func Encode(v Value) (string, error) {
	b, err := Dumps{}.Append(nil, v)
	return string(b), err
}

// Dumps are the arguments of Python's json.dumps. The zero value is what Encode uses.
type Dumps struct {
	// Indent is written once per level after a line break if Multiline is set.
	Indent    string
	Multiline bool
	// Separators, if not nil, replace ", " and ": ", or "," and ": " if Multiline is set.
	Separators *[2]string
	SortKeys   bool
	ASCII      bool // ensure_ascii
	Limit      int  // most bytes to append; 0: no limit
}

// A Text is a string of another package; JSON prints it as a string.
type Text interface{ Text() string }

// TypeError is a value that JSON has no form for.
type TypeError struct{ Message string }

func (e *TypeError) Error() string { return e.Message }

// ErrLimit is returned where the result would pass Dumps.Limit.
var ErrLimit = fmt.Errorf("json: result too long")

// encodeDepth bounds values that were not decoded but put together.
const encodeDepth = 1000

// Append appends the JSON of v to dst.
func (d Dumps) Append(dst []byte, v Value) ([]byte, error) {
	e := encoder{Dumps: d, b: dst, item: ", ", key: ": ", limit: math.MaxInt}
	if d.Multiline {
		e.item = ","
	}
	if d.Separators != nil {
		e.item, e.key = d.Separators[0], d.Separators[1]
	}
	if d.Limit > 0 {
		e.limit = len(dst) + d.Limit
	}
	err := e.value(v, 0)
	return e.b, err
}

type encoder struct {
	Dumps
	b         []byte
	item, key string
	limit     int
}

func (e *encoder) value(v Value, depth int) error {
	if len(e.b) > e.limit {
		return ErrLimit
	}
	if depth > encodeDepth {
		return fmt.Errorf("json: nested deeper than %d", encodeDepth)
	}
	switch v := v.(type) {
	case *List:
		return e.list(v.Items, depth)
	case *Tuple:
		return e.list(v.Items, depth)
	case *Object:
		return e.object(v, depth)
	case string:
		e.string(v)
	case Text:
		e.string(v.Text())
	default:
		s, ok := scalar(v)
		if !ok {
			return &TypeError{fmt.Sprintf("Object of type %s is not JSON serializable", TypeName(v))}
		}
		e.b = append(e.b, s...)
	}
	return nil
}

func (e *encoder) list(items []Value, depth int) error {
	if len(items) == 0 {
		e.b = append(e.b, "[]"...)
		return nil
	}
	e.b = append(e.b, '[')
	for i, item := range items {
		if i > 0 {
			e.b = append(e.b, e.item...)
		}
		e.newline(depth + 1)
		if err := e.value(item, depth+1); err != nil {
			return err
		}
	}
	e.newline(depth)
	e.b = append(e.b, ']')
	return nil
}

func (e *encoder) object(o *Object, depth int) error {
	if o.Len() == 0 {
		e.b = append(e.b, "{}"...)
		return nil
	}
	order := make([]int, o.Len())
	for i := range order {
		order[i] = i
	}
	if e.SortKeys {
		if err := sortKeys(o, order); err != nil {
			return err
		}
	}
	e.b = append(e.b, '{')
	for n, i := range order {
		if n > 0 {
			e.b = append(e.b, e.item...)
		}
		e.newline(depth + 1)
		k, v := o.At(i)
		name, err := keyName(k)
		if err != nil {
			return err
		}
		e.string(name)
		e.b = append(e.b, e.key...)
		if err := e.value(v, depth+1); err != nil {
			return err
		}
	}
	e.newline(depth)
	e.b = append(e.b, '}')
	return nil
}

func (e *encoder) newline(depth int) {
	if !e.Multiline {
		return
	}
	e.b = append(e.b, '\n')
	if len(e.Indent) > 0 && depth > (e.limit-len(e.b))/len(e.Indent) {
		depth = 0 // past the limit: the next value reports it
		e.limit = -1
	}
	for range depth {
		e.b = append(e.b, e.Indent...)
	}
}

func sortKeys(o *Object, order []int) error {
	var err error
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := o.keys[i], o.keys[j]
		if x, ok := a.(string); ok {
			if y, ok := b.(string); ok {
				return cmp.Compare(x, y) // UTF-8 sorts like code points
			}
		}
		x, okx := keyNumber(a)
		y, oky := keyNumber(b)
		if !okx || !oky {
			err = &TypeError{fmt.Sprintf("'<' not supported between instances of '%s' and '%s'", TypeName(a), TypeName(b))}
			return 0
		}
		return cmp.Compare(x, y)
	})
	return err
}

func keyNumber(k Value) (float64, bool) {
	switch k := k.(type) {
	case bool:
		if k {
			return 1, true
		}
		return 0, true
	case int64:
		return float64(k), true
	case *big.Int:
		f, _ := new(big.Float).SetInt(k).Float64()
		return f, true
	case float64:
		return k, true
	}
	return 0, false
}

// keyName is the string a key becomes: JSON has no other keys.
func keyName(k Value) (string, error) {
	switch k := k.(type) {
	case string:
		return k, nil
	case Text:
		return k.Text(), nil
	}
	if s, ok := scalar(k); ok {
		return s, nil
	}
	return "", &TypeError{fmt.Sprintf("keys must be str, int, float, bool or None, not %s", TypeName(k))}
}

func scalar(v Value) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "null", true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case *big.Int:
		return v.String(), true
	case float64:
		switch {
		case math.IsNaN(v):
			return "NaN", true
		case math.IsInf(v, 1):
			return "Infinity", true
		case math.IsInf(v, -1):
			return "-Infinity", true
		}
		return FormatFloat(v), true
	}
	return "", false
}

func (e *encoder) string(s string) {
	e.b = append(e.b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && (c < 0x7f || !e.ASCII) {
			i++
			continue
		}
		e.b = append(e.b, s[start:i]...)
		size := 1
		switch at := strings.IndexByte("\"\\\n\r\t\b\f", c); {
		case at >= 0:
			e.b = append(e.b, '\\', `"\nrtbf`[at])
		case c < 0x20:
			e.hex4(rune(c))
		default:
			var r rune
			r, size = utf8.DecodeRuneInString(s[i:])
			if r >= 0x10000 {
				e.hex4(0xd800 + (r-0x10000)>>10)
				r = 0xdc00 + (r-0x10000)&0x3ff
			}
			e.hex4(r)
		}
		i += size
		start = i
	}
	e.b = append(e.b, s[start:]...)
	e.b = append(e.b, '"')
}

func (e *encoder) hex4(r rune) {
	const digits = "0123456789abcdef"
	e.b = append(e.b, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}
