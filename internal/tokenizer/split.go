package tokenizer

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// behavior says what Split does with matches; the gaps between them are always kept. With - as the
// pattern, a-b--c becomes:
type behavior int

const (
	isolated           behavior = iota // a · - · b · - · - · c
	removed                            // a · b · c
	mergedWithPrevious                 // a- · b- · - · c
	mergedWithNext                     // a · -b · - · -c
	contiguous                         // a · - · b · -- · c
)

func parseBehavior(name string, byDefault behavior) (behavior, error) {
	switch name {
	case "Isolated":
		return isolated, nil
	case "Removed":
		return removed, nil
	case "MergedWithPrevious":
		return mergedWithPrevious, nil
	case "MergedWithNext":
		return mergedWithNext, nil
	case "Contiguous":
		return contiguous, nil
	case "":
		if byDefault >= 0 {
			return byDefault, nil
		}
	}
	return 0, fmt.Errorf("behavior %q is unknown", abbreviate(name))
}

// A matcher yields the byte ranges of successive, non-overlapping matches.
type matcher interface {
	// matches stops at the first error that yield returns, and returns it.
	matches(s string, yield func(start, end int) error) error
}

// newMatcher compiles a pattern. Two need a rule of their own: their look-ahead costs a regex
// engine quadratic time on long runs of digits.
func newMatcher(pattern string) (matcher, error) {
	switch pattern {
	case digitsBeforeBoundary:
		return groupDigits{boundary: true}, nil
	case digitGroupStarts:
		return groupDigits{cutOnly: true}, nil
	}
	return compileRegex(pattern)
}

// isolate is the usual step: matches and gaps become pieces.
func isolate(m matcher) splitter { return splitBy(m, isolated, false) }

// splitBy cuts pieces by the matches of m. A span is a match or a gap; invert makes matches gaps
// and the reverse.
func splitBy(m matcher, b behavior, invert bool) splitter {
	return func(p piece, emit func(piece) error) error {
		a := spansPool.Get().(*spans)
		defer a.release()
		a.p, a.behavior, a.invert, a.emit = p, b, invert, emit
		if err := m.matches(p.text, a.yield); err != nil {
			return err
		}
		if err := a.gap(len(p.text)); err != nil {
			return err
		}
		return a.flush()
	}
}

// spans makes pieces of consecutive spans of p.
type spans struct {
	p        piece
	behavior behavior
	invert   bool
	emit     func(piece) error
	yield    func(start, end int) error // a.match, made once: a step may see each word as a text of its own

	done     int // p.text[:done] has been added
	from, to int // a piece that waits for what follows, if pending
	pending  bool
	matched  bool // the last span was a match
}

var spansPool = sync.Pool{New: func() any {
	a := new(spans)
	a.yield = a.match
	return a
}}

func (a *spans) release() {
	*a = spans{yield: a.yield}
	spansPool.Put(a)
}

func (a *spans) match(start, end int) error {
	if err := a.gap(start); err != nil {
		return err
	}
	a.done = end
	return a.add(start, end, !a.invert)
}

func (a *spans) gap(to int) error {
	from := a.done
	if from == to {
		return nil
	}
	a.done = to
	return a.add(from, to, a.invert)
}

func (a *spans) add(start, end int, match bool) error {
	join := false
	switch a.behavior {
	case mergedWithPrevious:
		join = match && !a.matched
	case mergedWithNext:
		join = a.matched && !match
	case contiguous:
		join = a.matched == match
	}
	a.matched = match
	if a.pending && join {
		a.to = end
		return nil
	}
	if err := a.flush(); err != nil {
		return err
	}
	a.pending = !match || a.behavior != removed
	a.from, a.to = start, end
	return nil
}

func (a *spans) flush() error {
	if !a.pending || a.from == a.to {
		return nil
	}
	a.pending = false
	return a.emit(piece{a.p.text[a.from:a.to], a.p.first && a.from == 0})
}

// splitRunes is splitBy where each character of a class is a match of its own.
func splitRunes(class func(rune) bool, b behavior) splitter {
	return splitBy(runeMatcher(class), b, false)
}

type runeMatcher func(rune) bool

func (m runeMatcher) matches(s string, yield func(start, end int) error) error {
	for i, r := range s {
		if m(r) {
			if err := yield(i, i+utf8.RuneLen(r)); err != nil {
				return err
			}
		}
	}
	return nil
}

type literalMatcher string

func (m literalMatcher) matches(s string, yield func(start, end int) error) error {
	if m == "" {
		return nil
	}
	for from := 0; ; {
		i := strings.Index(s[from:], string(m))
		if i < 0 {
			return nil
		}
		from += i + len(m)
		if err := yield(from-len(m), from); err != nil {
			return err
		}
	}
}

const (
	// digitsBeforeBoundary cuts a run of digits into threes from the right (1234567 → 1, 234, 567)
	// where a word ends behind it.
	digitsBeforeBoundary = `\d{1,3}(?=(?:\d{3})*\b)`
	// digitGroupStarts matches the empty string where such a group begins, whatever follows the
	// run.
	digitGroupStarts = `(?=(\d{3})+(?!\d))`
)

// groupDigits cuts each run of decimal digits so that the first group has length mod 3 and all
// others 3.
type groupDigits struct {
	boundary bool // only runs that no \w follows
	cutOnly  bool // empty matches at the groups' starts, where what is left is a multiple of 3
}

func (g groupDigits) matches(s string, yield func(start, end int) error) error {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isDigit(r) {
			i += n
			continue
		}
		var starts []int // of each digit of the run, and its end
		for ; ; i += n {
			r, n = utf8.DecodeRuneInString(s[i:])
			starts = append(starts, i)
			if n == 0 || !isDigit(r) {
				break
			}
		}
		if g.boundary && n > 0 && isRegexWord(r) {
			continue
		}
		digits := len(starts) - 1
		for from := 0; from < digits; {
			to := from + 3
			if odd := (digits - from) % 3; odd != 0 {
				to = from + odd
			}
			var err error
			switch {
			case !g.cutOnly:
				err = yield(starts[from], starts[to])
			case (digits-from)%3 == 0:
				err = yield(starts[from], starts[from])
			}
			if err != nil {
				return err
			}
			from = to
		}
	}
	return nil
}
