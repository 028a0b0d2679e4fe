package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"

	"github.com/foretoken/foretoken/internal/chat/value"
)

// strMethods are the methods of Python's str. Results are of the same kind as the string they are called
// on.
func strMethods() map[string]methodFunc {
	t := map[string]methodFunc{
		"split":        func(m *machine, v value.Value, a args) (value.Value, error) { return m.splitMethod(v, a, false) },
		"rsplit":       func(m *machine, v value.Value, a args) (value.Value, error) { return m.splitMethod(v, a, true) },
		"splitlines":   (*machine).splitlinesMethod,
		"partition":    func(m *machine, v value.Value, a args) (value.Value, error) { return m.partition(v, a, false) },
		"rpartition":   func(m *machine, v value.Value, a args) (value.Value, error) { return m.partition(v, a, true) },
		"join":         (*machine).joinMethod,
		"replace":      (*machine).replaceMethod,
		"format":       (*machine).formatMethod,
		"format_map":   (*machine).formatMapMethod,
		"startswith":   affixMethod("startswith", strings.HasPrefix),
		"endswith":     affixMethod("endswith", strings.HasSuffix),
		"removeprefix": cutMethod("removeprefix", strings.TrimPrefix),
		"removesuffix": cutMethod("removesuffix", strings.TrimSuffix),
		"strip":        stripMethod("strip", true, true),
		"lstrip":       stripMethod("lstrip", true, false),
		"rstrip":       stripMethod("rstrip", false, true),
		"find":         findMethod("find", strings.Index, false),
		"rfind":        findMethod("rfind", strings.LastIndex, false),
		"index":        findMethod("index", strings.Index, true),
		"rindex":       findMethod("rindex", strings.LastIndex, true),
		"count":        (*machine).countMethod,
		"ljust":        padMethod("ljust", func(n int) int { return 0 }),
		"rjust":        padMethod("rjust", func(n int) int { return n }),
		"center":       (*machine).centerMethod,
		"zfill":        (*machine).zfillMethod,
		"expandtabs":   (*machine).expandtabsMethod,
	}
	for name, f := range map[string]func(string) string{
		"upper": upper, "lower": lower, "title": titleCase, "capitalize": capitalize, "swapcase": swapCase,
		"casefold": func(s string) string { return cases.Fold().String(s) },
	} {
		t[name] = func(m *machine, v value.Value, a args) (value.Value, error) {
			s, _ := str(v)
			if _, err := a.bind(name, ""); err != nil {
				return nil, err
			}
			return m.mapped(v, f(s))
		}
	}
	for name, f := range strTests {
		t[name] = func(m *machine, v value.Value, a args) (value.Value, error) {
			s, _ := str(v)
			_, err := a.bind(name, "")
			if err == nil {
				err = m.touch(len(s))
			}
			return f(s), err
		}
	}
	return t
}

// mapped returns s, made from v character by character.
func (m *machine) mapped(v value.Value, s string) (value.Value, error) {
	if err := m.touch(8 * len(s)); err != nil {
		return nil, err
	}
	return like(v, s), m.allocText(len(s))
}

// upper and lower know letters that change their length or depend on their place: ß, Σ.
func upper(s string) string {
	if ascii(s) {
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

func lower(s string) string {
	if ascii(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und).String(s)
}

func capitalize(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return cases.Title(language.Und).String(s[:n]) + lower(s[n:])
}

// titleCase is Python's str.title: every run of letters starts with a capital.
func titleCase(s string) string {
	var b strings.Builder
	inWord := false
	for _, r := range s {
		if inWord {
			b.WriteRune(unicode.ToLower(r))
		} else {
			b.WriteRune(unicode.ToTitle(r))
		}
		inWord = unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r)
	}
	return b.String()
}

func swapCase(s string) string {
	var b strings.Builder
	for i, r := range s {
		c := s[i : i+utf8.RuneLen(r)]
		if unicode.IsUpper(r) {
			b.WriteString(lower(c))
		} else {
			b.WriteString(upper(c))
		}
	}
	return b.String()
}

// strTests are the methods that say what a string is made of.
var strTests = map[string]func(string) bool{
	"isalpha":   allRunes(unicode.IsLetter),
	"isdecimal": allRunes(unicode.IsDigit),
	"isdigit": allRunes(func(r rune) bool {
		return unicode.IsDigit(r) || strings.ContainsRune("²³¹⁰⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", r)
	}),
	"isnumeric": allRunes(unicode.IsNumber),
	"isalnum":   allRunes(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
	"isspace":   allRunes(isSpace),
	"isprintable": func(s string) bool {
		return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
	},
	"isascii": ascii,
	"isupper": func(s string) bool { return cased(s, unicode.IsUpper) },
	"islower": func(s string) bool { return cased(s, unicode.IsLower) },
	"istitle": func(s string) bool { return cased(s, func(rune) bool { return true }) && titleCase(s) == s },
	"isidentifier": func(s string) bool {
		for i, r := range s {
			if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
				return false
			}
		}
		return s != ""
	},
}

func allRunes(is func(rune) bool) func(string) bool {
	return func(s string) bool {
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !is(r) }) < 0
	}
}

// cased reports whether s has letters with a case, and all of them are of the given one.
func cased(s string, is func(rune) bool) bool {
	any := false
	for _, r := range s {
		if unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r) {
			if !is(r) {
				return false
			}
			any = true
		}
	}
	return any
}

func affixMethod(name string, has func(s, affix string) bool) methodFunc {
	return func(m *machine, v value.Value, a args) (value.Value, error) {
		p, err := a.bind(name, "affix start? end?")
		if err != nil {
			return nil, err
		}
		part, err := m.slice(v, [3]value.Value{p.or(1, nil), p.or(2, nil)})
		if err != nil {
			return nil, err
		}
		s, _ := str(part)
		affixes := []value.Value{p[0]}
		if t, ok := p[0].(*value.Tuple); ok {
			affixes = t.Items
		}
		for _, affix := range affixes {
			x, ok := str(affix)
			if !ok {
				return nil, typeErrorf("%s first arg must be str or a tuple of str, not %s", name, typeName(affix))
			}
			if err := m.touch(len(x)); err != nil {
				return nil, err
			}
			if has(s, x) {
				return true, nil
			}
		}
		return false, nil
	}
}

func cutMethod(name string, cut func(s, affix string) string) methodFunc {
	return func(m *machine, v value.Value, a args) (value.Value, error) {
		p, err := a.bind(name, "affix")
		if err != nil {
			return nil, err
		}
		affix, err := p.str(0, "")
		if err != nil {
			return nil, err
		}
		s, _ := str(v)
		return like(v, cut(s, affix)), m.touch(len(affix))
	}
}

func stripMethod(name string, left, right bool) methodFunc {
	return func(m *machine, v value.Value, a args) (value.Value, error) {
		p, err := a.bind(name, "chars?")
		if err != nil {
			return nil, err
		}
		return m.strip(v, p.or(0, nil), left, right)
	}
}

// strip removes characters from the ends of a string: white space if chars is None.
func (m *machine) strip(v, chars value.Value, left, right bool) (value.Value, error) {
	s, _ := str(v)
	is := isSpace
	if chars != nil {
		set, ok := str(chars)
		if !ok {
			return nil, typeErrorf("strip arg must be None or str")
		}
		is = runeSet(set)
	}
	if err := m.touch(8 * len(s)); err != nil { // character by character
		return nil, err
	}
	if left {
		s = strings.TrimLeftFunc(s, is)
	}
	if right {
		s = strings.TrimRightFunc(s, is)
	}
	return like(v, s), nil
}

// runeSet returns a test for the characters of s.
func runeSet(s string) func(rune) bool {
	if len(s) <= 16 {
		return func(r rune) bool { return strings.ContainsRune(s, r) }
	}
	set := map[rune]bool{}
	for _, r := range s {
		set[r] = true
	}
	return func(r rune) bool { return set[r] }
}

func findMethod(name string, find func(s, sub string) int, must bool) methodFunc {
	return func(m *machine, v value.Value, a args) (value.Value, error) {
		s, sub, lo, err := m.window(name, v, a)
		if err != nil {
			return nil, err
		}
		at := -1
		if lo >= 0 {
			at = find(s, sub)
		}
		if at < 0 {
			if must {
				return nil, valueErrorf("substring not found")
			}
			return int64(-1), nil
		}
		return int64(lo + utf8.RuneCountInString(s[:at])), nil
	}
}

func (m *machine) countMethod(v value.Value, a args) (value.Value, error) {
	s, sub, lo, err := m.window("count", v, a)
	if err != nil || lo < 0 {
		return int64(0), err
	}
	return int64(strings.Count(s, sub)), nil
}

// window returns the part of a string that find and its kin look at, what they look for, and how many
// characters come before the part; -1 if the part begins behind the end.
func (m *machine) window(name string, v value.Value, a args) (s, sub string, lo int, err error) {
	p, err := a.bind(name, "sub start? end?")
	if err != nil {
		return "", "", 0, err
	}
	if sub, err = p.str(0, ""); err != nil {
		return "", "", 0, err
	}
	n, err := m.length(v)
	if err != nil {
		return "", "", 0, err
	}
	lo, hi, _, err := sliceBounds([3]value.Value{p.or(1, nil), p.or(2, nil)}, n)
	if err != nil {
		return "", "", 0, err
	}
	if start, err := p.int(1, 0); err == nil && p.or(1, nil) != nil && start > n || lo > hi {
		return "", "", -1, nil
	}
	part, err := m.slice(v, [3]value.Value{int64(lo), int64(hi)})
	if err != nil {
		return "", "", 0, err
	}
	s, _ = str(part)
	return s, sub, lo, m.touch(len(s))
}
