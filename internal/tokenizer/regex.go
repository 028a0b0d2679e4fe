package tokenizer

import (
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

const (
	// matchTimeout bounds the search for one match in a text of up to matchBytes, and as much again
	// for each further matchBytes: a search may run through all of a text. Real patterns need
	// microseconds; patterns come from files, though, and the engine backtracks.
	matchTimeout = time.Second
	matchBytes   = 128 << 10
	// All matches in a text may take textTime plus textTime for each MiB of it. Real patterns run
	// at 20 MB/s; the limit is for those that take nearly matchTimeout for every match, and far
	// enough away for a machine with other things to do.
	textTime = 20 * time.Second
	// backtrackSlots bounds the engine's backtracking stack (32 MiB). Some real patterns take a few
	// slots per character of a long run of letters.
	backtrackSlots = 4 << 20
)

var errSlowRegex = errors.New("backtracks too much on this text")

// regex is a pattern in the syntax of the reference's engine (Oniguruma), run by regexp2.
type regex struct {
	pattern string
	re      *regexp2.Regexp
}

func compileRegex(pattern string) (*regex, error) {
	translated, err := translatePattern(pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", abbreviate(pattern), err)
	}
	// Multiline because ^ and $ are always line anchors in the reference.
	re, err := regexp2.Compile(translated, regexp2.Multiline, regexp2.OptionMaxBacktrackingStackSize(backtrackSlots))
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", abbreviate(pattern), err)
	}
	re.MatchTimeout = matchTimeout
	return &regex{pattern, re}, nil
}

var runeBuffers = sync.Pool{New: func() any { return new([]rune) }}

// matches calls yield with the byte range of each successive match in s, which must be valid UTF-8.
func (r *regex) matches(s string, yield func(start, end int) error) error {
	buf := runeBuffers.Get().(*[]rune)
	defer func() {
		if cap(*buf) <= 1<<20 { // do not keep what one huge prompt needed
			runeBuffers.Put(buf)
		}
	}()
	runes := (*buf)[:0]
	for _, c := range s {
		runes = append(runes, c)
	}
	*buf = runes

	re := r.re
	if len(s) > matchBytes {
		patient := *re
		patient.MatchTimeout *= time.Duration(1 + len(s)/matchBytes)
		re = &patient
	}
	var begun time.Time
	var failed error // of yield
	slow := false
	count, atRune, atByte := 0, 0, 0
	err := re.FindRunesMatches(runes, 0, func(m regexp2.MatchView) bool {
		if count++; count&7 == 0 { // reading the clock takes a quarter of a usual search
			if begun.IsZero() {
				begun = time.Now()
			} else if time.Since(begun) > textTime+textTime*time.Duration(len(s)>>20) {
				slow = true
				return false
			}
		}
		at, n, _ := m.GroupRange(0)
		for ; atRune < at; atRune++ {
			atByte += utf8.RuneLen(runes[atRune])
		}
		start := atByte
		for ; atRune < at+n; atRune++ {
			atByte += utf8.RuneLen(runes[atRune])
		}
		failed = yield(start, atByte)
		return failed == nil
	})
	if err != nil || slow {
		return fmt.Errorf("pattern %q %w", abbreviate(r.pattern), errSlowRegex)
	}
	return failed
}

// abbreviate shortens s for an error message.
func abbreviate(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return validUTF8(s[:most]) + "…"
}
