package tokenizer

import (
	"testing"
	"unicode"
)

func eachRune(yield func(rune) bool) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r < 0xD800 || r > 0xDFFF {
			if !yield(r) {
				return
			}
		}
	}
}

// TestClassSizes pins the character classes of the reference (Unicode 16 in regexes). It fails when
// Go's own tables move on.
func TestClassSizes(t *testing.T) {
	all := make([]rune, 0, unicode.MaxRune)
	for r := range eachRune {
		all = append(all, r)
	}
	text := string(all)
	for pattern, want := range map[string]int{
		`\p{L}`: 141028, `\p{N}`: 1911, `\p{P}`: 855, `\p{S}`: 8514, `\p{M}`: 2501,
		`\p{Lu}`: 1858, `\p{Ll}`: 2258, `\p{Lt}`: 31, `\p{Lm}`: 404, `\p{Lo}`: 136477,
		`\p{Han}`: 99030, `\p{Hiragana}`: 381, `\p{Katakana}`: 321, `\p{Hangul}`: 11739,
		`\p{Nl}`: 236, `\p{No}`: 915, `\p{Pc}`: 10, `\p{Z}`: 19, `\p{Cc}`: 65,
		`\d`: 760, `\s`: 25, `\w`: 144671, `[\w]`: 144665,
	} {
		re, err := compileRegex(pattern)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		if err := re.matches(text, func(int, int) error { got++; return nil }); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s matches %d code points, want %d", pattern, got, want)
		}
	}
	for _, class := range []struct {
		name string
		has  func(rune) bool
		want int
	}{
		{"isWord", isWord, 144667},
		{"isRegexWord", isRegexWord, 144671},
		{"isDigit", isDigit, 760},
		{"isNumeric", isNumeric, 1924},
		{"isPunctuation", isPunctuation, 726},
		{"isAccent", isAccent, 2097},
		{"isSpace", isSpace, 25},
		{"toLower changes", func(r rune) bool { return toLower(r) != string(r) }, 1488},
	} {
		got := 0
		for r := range eachRune {
			if class.has(r) {
				got++
			}
		}
		if got != class.want {
			t.Errorf("%s holds for %d code points, want %d", class.name, got, class.want)
		}
	}
}

func TestInertCodePoints(t *testing.T) {
	count := func(s rangeSet) (n int) {
		for _, r := range s {
			n += int(r.hi-r.lo) + 1
		}
		return n
	}
	if got := count(inertCanonical()); got != 109+1 {
		t.Errorf("%d code points are inert in NFC and NFD, want 110", got)
	}
	if got := count(inertCompatibility()); got != 109+1+134 {
		t.Errorf("%d code points are inert in NFKC and NFKD, want 244", got)
	}
}
