package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	maxPatternLen    = 4 << 10  // bytes; the longest real one has 1.5 KB
	maxTranslatedLen = 64 << 10 // characters: \p{L} and \b are short for a lot
	maxPatternDepth  = 50
	maxRepetition    = 4096 // bounds of {n,m}; real ones go to 512
)

// translatePattern rewrites a pattern from Oniguruma's syntax to regexp2's: properties get the
// Unicode 16 supplement, \w, \b and class intersection their Oniguruma meaning. It accepts the
// constructs that tokenizers use and refuses the rest by name, since the two engines differ
// silently in many places.
func translatePattern(pattern string) (string, error) {
	if len(pattern) > maxPatternLen {
		return "", fmt.Errorf("longer than %d bytes", maxPatternLen)
	}
	t := translator{src: []rune(pattern), atom: -1}
	if err := t.run(); err != nil {
		return "", err
	}
	return string(t.out), nil
}

type translator struct {
	src  []rune
	pos  int
	out  []rune
	atom int   // where in out the thing begins that a quantifier would repeat; -1: there is none
	open []int // where in out the open groups begin
}

func (t *translator) run() error {
	for t.pos < len(t.src) {
		c := t.src[t.pos]
		start := len(t.out)
		var err error
		switch c {
		case '(':
			err = t.group()
		case ')':
			if len(t.open) == 0 {
				return errors.New("unmatched )")
			}
			t.pos++
			t.emit(")")
			t.atom = t.open[len(t.open)-1]
			t.open = t.open[:len(t.open)-1]
		case '[':
			t.pos++
			err = t.class()
			t.atom = start
		case '\\':
			err = t.escape()
		case '*', '+', '?':
			t.pos++
			err = t.quantify(string(c), false)
		case '{':
			err = t.interval()
		case '|', '^', '$':
			t.pos++
			t.emit(string(c))
			t.atom = -1
		case '.':
			t.pos++
			t.emit(".")
			t.atom = start
		default:
			t.pos++
			t.literal(c)
			t.atom = start
		}
		if err == nil && len(t.out) > maxTranslatedLen {
			err = errors.New("too many properties and word boundaries")
		}
		if err != nil {
			return err
		}
	}
	if len(t.open) > 0 {
		return errors.New("missing )")
	}
	return nil
}

func (t *translator) emit(s string) { t.out = append(t.out, []rune(s)...) }

func (t *translator) next(s string) bool {
	if !slices.Equal(t.src[t.pos:min(len(t.src), t.pos+len(s))], []rune(s)) { // s is ASCII
		return false
	}
	t.pos += len(s)
	return true
}

// literal writes a character so that it means itself, inside a class and outside.
func (t *translator) literal(c rune) {
	if c < 0x80 && strings.ContainsRune(`\.+*?()|[]{}^$-#&`, c) {
		t.out = append(t.out, '\\')
	}
	t.out = append(t.out, c)
}

func (t *translator) group() error {
	if len(t.open) == maxPatternDepth {
		return fmt.Errorf("groups nested deeper than %d", maxPatternDepth)
	}
	t.open = append(t.open, len(t.out))
	t.atom = -1
	for _, opening := range []string{"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>"} {
		if t.next(opening) {
			t.emit(opening)
			return nil
		}
	}
	if t.next("(?") {
		return fmt.Errorf("group (?%s is not supported", string(t.src[t.pos:min(len(t.src), t.pos+2)]))
	}
	t.pos++
	t.emit("(?:") // captures are not used, and cost time
	return nil
}

// quantify writes a quantifier and its suffix: ? makes it lazy, + possessive, but for {n,m}, where
// Oniguruma takes + as a further repetition.
func (t *translator) quantify(q string, interval bool) error {
	if t.atom < 0 {
		return fmt.Errorf("nothing to repeat before %s", q)
	}
	t.emit(q)
	switch {
	case t.next("?"):
		t.emit("?")
	case t.next("+"):
		if interval {
			t.out = slices.Insert(t.out, t.atom, []rune("(?:")...)
			t.emit(")")
		}
		t.emit("+")
	}
	t.atom = -1
	return nil
}

func (t *translator) interval() error {
	end := slices.Index(t.src[t.pos:], '}')
	if end < 0 {
		return errors.New("{ without }: write \\{")
	}
	body := string(t.src[t.pos+1 : t.pos+end])
	from, to, ranged := strings.Cut(body, ",")
	if ranged && from == "" {
		from = "0"
	}
	low, err := strconv.ParseUint(from, 10, 31)
	high := low
	if err == nil && ranged && to != "" {
		high, err = strconv.ParseUint(to, 10, 31)
	}
	if err != nil || high < low || high > maxRepetition {
		return fmt.Errorf("bad repetition {%s}", abbreviate(body))
	}
	t.pos += end + 1
	if !ranged && t.pos < len(t.src) && t.src[t.pos] == '?' {
		return fmt.Errorf("{%s}? is not supported", body)
	}
	q := fmt.Sprintf("{%d}", low)
	if ranged && to == "" {
		q = fmt.Sprintf("{%d,}", low)
	} else if ranged {
		q = fmt.Sprintf("{%d,%d}", low, high)
	}
	return t.quantify(q, true)
}

// escape handles a backslash outside a class.
func (t *translator) escape() error {
	start := len(t.out)
	item, c, err := t.escaped()
	if err != nil {
		return err
	}
	t.atom = start
	switch item {
	case "":
		t.literal(c)
	case "b": // oniguruma's \w is not regexp2's, so neither is \b
		w := "[" + loneWordClass() + "]"
		t.emit("(?:(?<=" + w + ")(?!" + w + ")|(?<!" + w + ")(?=" + w + "))")
		t.atom = -1
	case "A", "z":
		t.emit(`\` + item)
		t.atom = -1
	case "s", "S":
		t.emit(`\` + item)
	case "w":
		t.emit("[" + loneWordClass() + "]")
	case "W":
		t.emit("[^" + loneWordClass() + "]")
	default:
		t.emit("[")
		if negated, positive := strings.CutPrefix(item, "^"); positive {
			t.emit("^")
			item = negated
		}
		t.emit(item + "]")
	}
	return nil
}

// escaped reads a backslash sequence. It is a character (item empty), one of the letters b A z s S
// w W, or else the content of a class, after ^ if the class is negated.
func (t *translator) escaped() (item string, c rune, err error) {
	if t.pos+1 >= len(t.src) {
		return "", 0, errors.New("trailing backslash")
	}
	c = t.src[t.pos+1]
	t.pos += 2
	switch c {
	case 'n':
		return "", '\n', nil
	case 'r':
		return "", '\r', nil
	case 't':
		return "", '\t', nil
	case 'f':
		return "", '\f', nil
	case 'v':
		return "", '\v', nil
	case 'x', 'u':
		c, err = t.hex(c)
		return "", c, err
	case 'b', 'A', 'z', 's', 'S', 'w', 'W':
		return string(c), 0, nil
	case 'd':
		return propertyClass("Nd"), 0, nil
	case 'D':
		return "^" + propertyClass("Nd"), 0, nil
	case 'p', 'P':
		end := slices.Index(t.src[t.pos:], '}')
		if end < 0 || t.src[t.pos] != '{' {
			return "", 0, fmt.Errorf(`\%c without {name}`, c)
		}
		name := string(t.src[t.pos+1 : t.pos+end])
		t.pos += end + 1
		if _, known := supplement[name]; !known {
			return "", 0, fmt.Errorf(`property \%c{%s} is not supported`, c, abbreviate(name))
		}
		if c == 'P' {
			return "^" + propertyClass(name), 0, nil
		}
		return propertyClass(name), 0, nil
	}
	if c < 0x80 && !isASCIIPunctuation(c) && c != ' ' {
		return "", 0, fmt.Errorf(`\%c is not supported`, c)
	}
	return "", c, nil
}

// hex reads the digits of \xHH, \x{H…} or \uHHHH.
func (t *translator) hex(kind rune) (rune, error) {
	digits := 2
	if kind == 'u' {
		digits = 4
	}
	rest := t.src[t.pos:]
	if kind == 'x' && len(rest) > 0 && rest[0] == '{' {
		digits = slices.Index(rest, '}') - 1
		rest = rest[1:]
		t.pos += 2
	}
	if digits < 1 || digits > len(rest) {
		return 0, fmt.Errorf(`bad \%c escape`, kind)
	}
	t.pos += digits
	v, err := strconv.ParseUint(string(rest[:digits]), 16, 32)
	if err != nil || v > 0x10FFFF || v&^0x7FF == 0xD800 || kind == 'x' && digits == 2 && v > 0x7F {
		return 0, fmt.Errorf(`bad \%c escape`, kind)
	}
	return rune(v), nil
}

// class translates what follows a [, up to its ].
func (t *translator) class() error {
	t.emit("[")
	negated := t.next("^")
	if negated {
		t.emit("^")
	}
	for first := true; ; first = false {
		if t.pos >= len(t.src) {
			return errors.New("missing ]")
		}
		switch {
		case t.src[t.pos] == ']':
			if first {
				return errors.New("empty class")
			}
			t.pos++
			t.emit("]")
			return nil
		case t.next("&&"):
			return t.intersection(negated)
		case t.src[t.pos] == '[':
			return errors.New(`[ inside a class: write \[`)
		}
		if err := t.classItem(); err != nil {
			return err
		}
	}
}

// intersection translates A&&[^B]] to A-[B]], the only form of use.
func (t *translator) intersection(negated bool) error {
	if negated || !t.next("[^") {
		return errors.New("class intersection other than [a&&[^b]] is not supported")
	}
	t.emit("-[")
	for t.pos < len(t.src) && t.src[t.pos] != ']' {
		if t.src[t.pos] == '[' || t.src[t.pos] == '&' {
			return errors.New("class intersection other than [a&&[^b]] is not supported")
		}
		if err := t.classItem(); err != nil {
			return err
		}
	}
	if !t.next("]]") {
		return errors.New("class intersection other than [a&&[^b]] is not supported")
	}
	t.emit("]]")
	return nil
}

// classItem translates a character, a range or a property in a class.
func (t *translator) classItem() error {
	item, low, err := t.classAtom()
	if err != nil {
		return err
	}
	if item != "" {
		t.emit(item)
		return nil
	}
	t.literal(low)
	if t.pos+1 >= len(t.src) || t.src[t.pos] != '-' || t.src[t.pos+1] == ']' {
		return nil
	}
	t.pos++
	item, high, err := t.classAtom()
	if err != nil {
		return err
	}
	if item != "" || high < low {
		return errors.New("bad range in class")
	}
	t.emit("-")
	t.literal(high)
	return nil
}

func (t *translator) classAtom() (item string, c rune, err error) {
	c = t.src[t.pos]
	if c != '\\' {
		t.pos++
		return "", c, nil
	}
	item, c, err = t.escaped()
	switch {
	case err != nil:
		return "", 0, err
	case item == "s" || item == "S":
		return `\` + item, 0, nil
	case item == "w":
		return wordClass(), 0, nil
	case len(item) == 1:
		return "", 0, fmt.Errorf(`\%s inside a class is not supported`, item)
	case strings.HasPrefix(item, "^"):
		return "", 0, errors.New(`a negated property (\P, \D, \W) inside a class is not supported`)
	}
	return item, c, nil
}

// propertyClass is \p{name} as the content of a class, with its supplement.
func propertyClass(name string) string {
	var b strings.Builder
	b.WriteString(`\p{` + name + `}`)
	for _, r := range parseRanges(supplement[name]) {
		b.WriteRune(r.lo)
		b.WriteByte('-')
		b.WriteRune(r.hi)
	}
	return b.String()
}

// wordClass is Oniguruma's \w inside a class, as the content of a class: Alphabetic, marks, decimal
// digits, connectors. Beyond letters and marks, Alphabetic has the letter numbers and the circled
// and squared Latin letters.
var wordClass = sync.OnceValue(func() string {
	return propertyClass("L") + propertyClass("M") + propertyClass("Nd") + `\p{Nl}\p{Pc}` +
		"\u24B6-\u24E9\U0001F130-\U0001F149\U0001F150-\U0001F169\U0001F170-\U0001F189"
})

// loneWordClass is \w outside a class and for \b, where it also has the numbers of Latin-1.
func loneWordClass() string { return wordClass() + "²³¹¼-¾" }
