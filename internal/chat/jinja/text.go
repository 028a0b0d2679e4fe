package jinja

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// text returns Python's str(v): what {{ v }} prints.
func (m *machine) text(v value.Value) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case markup:
		return string(v), nil
	case *undefined:
		return "", nil
	case *value.List, *value.Object, *value.Tuple, *view, *namespace:
		return m.repr(v)
	}
	return m.scalar(v)
}

// repr returns Python's repr(v).
func (m *machine) repr(v value.Value) (string, error) {
	p := printer{m, text{budget: &m.budget}}
	err := p.repr(v)
	return p.String(), err
}

// scalar prints what has no parts.
func (m *machine) scalar(v value.Value) (string, error) {
	switch v := v.(type) {
	case nil:
		return "None", nil
	case bool:
		if v {
			return "True", nil
		}
		return "False", nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case *big.Int:
		s := v.String()
		if len(strings.TrimPrefix(s, "-")) > value.MaxDigits {
			return "", valueErrorf("Exceeds the limit (%d digits) for integer string conversion", value.MaxDigits)
		}
		return s, m.alloc(len(s))
	case float64:
		return value.FormatFloat(v), nil
	case *undefined:
		return "Undefined", nil
	case *span:
		if v.step == 1 {
			return fmt.Sprintf("range(%d, %d)", v.start, v.stop), nil
		}
		return fmt.Sprintf("range(%d, %d, %d)", v.start, v.stop, v.step), nil
	case *macro:
		if v.decl.Name == "" {
			return "<Macro anonymous>", nil
		}
		return "<Macro '" + v.decl.Name + "'>", nil
	case *loop:
		n, err := v.length()
		return fmt.Sprintf("<LoopContext %d/%d>", v.index0+1, n), err
	case *function:
		return "<function " + v.name + ">", nil
	}
	return "<" + typeName(v) + " object>", nil
}

// printer writes reprs within the rendering's budget.
type printer struct {
	m *machine
	text
}

func (p *printer) repr(v value.Value) error {
	switch v := v.(type) {
	case string:
		return quoteTo(v, p.write)
	case markup:
		if err := p.write("Markup("); err != nil {
			return err
		}
		if err := quoteTo(string(v), p.write); err != nil {
			return err
		}
		return p.write(")")
	case *value.List:
		return p.items("[", v.Items, "]")
	case *value.Tuple:
		if len(v.Items) == 1 {
			return p.items("(", v.Items, ",)")
		}
		return p.items("(", v.Items, ")")
	case *value.Object:
		return p.object(v)
	case *view:
		items := make([]value.Value, v.of.Len())
		for i := range items {
			items[i] = v.at(i)
		}
		return p.items("dict_"+v.kind+"([", items, "])")
	case *namespace:
		if err := p.write("<Namespace "); err != nil {
			return err
		}
		if err := p.object(v.attrs); err != nil {
			return err
		}
		return p.write(">")
	}
	s, err := p.m.scalar(v)
	if err != nil {
		return err
	}
	return p.write(s)
}

func (p *printer) items(open string, items []value.Value, end string) error {
	if err := p.m.enter(); err != nil {
		return err
	}
	defer p.m.leave()
	if err := p.write(open); err != nil {
		return err
	}
	for i, item := range items {
		if i > 0 {
			if err := p.write(", "); err != nil {
				return err
			}
		}
		if err := p.repr(item); err != nil {
			return err
		}
	}
	return p.write(end)
}

func (p *printer) object(o *value.Object) error {
	if err := p.m.enter(); err != nil {
		return err
	}
	defer p.m.leave()
	sep := "{"
	for k, v := range o.All() {
		if err := p.write(sep); err != nil {
			return err
		}
		sep = ", "
		if err := p.repr(k); err != nil {
			return err
		}
		if err := p.write(": "); err != nil {
			return err
		}
		if err := p.repr(v); err != nil {
			return err
		}
	}
	if o.Len() == 0 {
		return p.write("{}")
	}
	return p.write("}")
}

// quote returns Python's repr of a string: single quotes unless only double ones avoid an escape.
func quote(s string) string {
	var b strings.Builder
	_ = quoteTo(s, func(part string) error { // a Builder does not fail
		b.WriteString(part)
		return nil
	})
	return b.String()
}

func quoteTo(s string, write func(part string) error) error {
	q := "'"
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = `"`
	}
	if err := write(q); err != nil {
		return err
	}
	start := 0
	for i, r := range s {
		esc := ""
		switch {
		case r == '\\' || r == rune(q[0]):
			esc = `\` + string(r)
		case r == '\n':
			esc = `\n`
		case r == '\r':
			esc = `\r`
		case r == '\t':
			esc = `\t`
		case unicode.IsPrint(r):
			continue
		case r < 0x100:
			esc = fmt.Sprintf(`\x%02x`, r)
		case r < 0x10000:
			esc = fmt.Sprintf(`\u%04x`, r)
		default:
			esc = fmt.Sprintf(`\U%08x`, r)
		}
		if err := write(s[start:i] + esc); err != nil {
			return err
		}
		start = i + utf8.RuneLen(r)
	}
	return write(s[start:] + q)
}

// escapeHTML is MarkupSafe's escape.
func escapeHTML(s string) string { return htmlEscapes.Replace(s) }

var htmlEscapes = strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;")

// isSpace is Python's str.isspace for one character.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

// ascii reports whether one byte is one character in all of s.
func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
