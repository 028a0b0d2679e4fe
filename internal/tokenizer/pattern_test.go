package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

func TestPatternsMeanWhatTheyDoInTheReference(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          string // the matches, marked [ ]
	}{
		{`\s+$`, "a  \nb ", "a[  ]\nb[ ]"}, // $ is a line anchor
		{`^a`, "a\na", "[a]\n[a]"},
		{`.+`, "ab\ncd", "[ab]\n[cd]"},
		{`\p{N}{1,3}+`, "12345", "[12345]"}, // not possessive: a further repetition
		{`a{1,2}?`, "aa", "[a][a]"},
		{`a{,2}b`, "aaab", "a[aab]"},
		{`a++b|a`, "aab aa", "[aab] [a][a]"},
		{`(?i:'s|'ll)`, "it'S we'LL 'ſ", "it['S] we['LL] ['ſ]"},
		{`(?<=a)b(?!c)`, "ab abc b", "a[b] abc b"},
		{`(?<!a)b`, "ab b", "ab [b]"},
		{`(?>a+)a`, "aaa", "aaa"},
		{`\w+`, "a_1 ²x \u200D", "[a_1] [²x] \u200D"},       // outside a class, \w has the numbers of Latin-1
		{`[\w]+`, "a_1 ²x", "[a_1] ²[x]"},                   // inside it has not
		{`[^\w\s]`, "a² -", "a[²] [-]"},                     //
		{`\W`, "a²-", "a²[-]"},                              //
		{`\b`, "ab c", "[]ab[] []c[]"},                      //
		{`a\b`, "a² a", "a² [a]"},                           //
		{`\p{L}+`, "a\u1C89\U000105C0b", "[aᲉ\U000105C0b]"}, // Unicode 16
		{`\P{L}+`, "a\U000105C0-", "a\U000105C0[-]"},
		{`[^\p{L}]+`, "a\U000105C0-", "a\U000105C0[-]"},
		{`\d+`, "1\U00010D40٣", "[1\U00010D40٣]"},
		{`\D`, "1\U00010D40x", "1\U00010D40[x]"},
		{`[\p{L}&&[^\p{Han}]]+`, "a中b", "[a]中[b]"},
		{`[a\-z]+`, "a-z b", "[a-z] b"},
		{`[a-]+`, "a-b", "[a-]b"},
		{`[\x{4E00}-\x{9FA5}\u0061\x62]+`, "a中b", "[a中b]"},
		{`[()\]\[^.]+`, "(^.])x[", "[(^.])]x[[]"},
		{`<|\{|#`, "<{#", "[<][{][#]"},
		{`a]`, "a]", "[a]]"},
		{`(a)(b)`, "ab", "[ab]"},
	} {
		re, err := compileRegex(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		var got strings.Builder
		done := 0
		err = re.matches(c.text, func(start, end int) error {
			got.WriteString(c.text[done:start] + "[" + c.text[start:end] + "]")
			done = end
			return nil
		})
		if got.WriteString(c.text[done:]); err != nil || got.String() != c.want {
			t.Errorf("%s in %q: %q, %v; want %q", c.pattern, c.text, got.String(), err, c.want)
		}
	}
}

func TestUnknownPatternsAreRefused(t *testing.T) {
	for pattern, want := range map[string]string{
		`(?<name>a)`:                 "group (?<n is not supported",
		`(?i)a`:                      "group (?i) is not supported",
		`(?#c)a`:                     "group (?#c is not supported",
		`a\1`:                        `\1 is not supported`,
		`\h`:                         `\h is not supported`,
		`\K`:                         `\K is not supported`,
		`\X`:                         `\X is not supported`,
		`\p{IsHan}`:                  `property \p{IsHan} is not supported`,
		`\p{Mn}`:                     `property \p{Mn} is not supported`,
		`\p{^L}`:                     `property \p{^L} is not supported`,
		`\pL`:                        `\p without {name}`,
		`[\P{L}]`:                    "negated property",
		`[\D]`:                       "negated property",
		`[\b]`:                       `\b inside a class is not supported`,
		`[[:alpha:]]`:                `[ inside a class`,
		`[a[b]]`:                     `[ inside a class`,
		`[a&&b]`:                     "class intersection",
		`[^a&&[^b]]`:                 "class intersection",
		`[a&&[^b]c]`:                 "class intersection",
		`[]a]`:                       "empty class",
		`[a`:                         "missing ]",
		`[b-a]`:                      "bad range",
		`[a-\d]`:                     "bad range",
		`(a`:                         "missing )",
		`a)`:                         "unmatched )",
		`*a`:                         "nothing to repeat",
		`a**`:                        "nothing to repeat",
		`|?`:                         "nothing to repeat",
		`a{2}?`:                      "{2}? is not supported",
		`a{3,2}`:                     "bad repetition",
		`a{x}`:                       "bad repetition",
		`a{5000}`:                    "bad repetition",
		`a{`:                         "{ without }",
		`a\`:                         "trailing backslash",
		`\x{110000}`:                 `bad \x escape`,
		`\x{D800}`:                   `bad \x escape`,
		`\xFF`:                       `bad \x escape`,
		`\u12`:                       `bad \u escape`,
		strings.Repeat("(", 51):      "groups nested deeper than 50",
		strings.Repeat("a", 4097):    "longer than 4096 bytes",
		strings.Repeat(`\b`, 100):    "too many properties",
		strings.Repeat(`\p{L}`, 800): "", // enough for anyone
	} {
		_, err := compileRegex(pattern)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", abbreviate(pattern), err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: error %v, want %q", abbreviate(pattern), err, want)
		}
	}
}

func TestSlowPatternsBecomeErrors(t *testing.T) {
	re, err := compileRegex(`(?:x|x\w?)+y`)
	if err != nil {
		t.Fatal(err)
	}
	err = re.matches(strings.Repeat("x", 100)+" y", func(int, int) error { return nil })
	if err == nil || err.Error() != `pattern "(?:x|x\\w?)+y" backtracks too much on this text` {
		t.Errorf("error %v", err)
	}
}

// A run of letters takes room on the engine's stack with this pattern.
func TestLongRunsOfLetters(t *testing.T) {
	_, patterns, _ := preTokenizer("exaone-moe")
	re, err := compileRegex(patterns[0])
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a", 200_000)
	if got := pieces(t, text, isolate(re)); len(got) != 1 {
		t.Errorf("%d pieces", len(got))
	}
}

func TestDigitRulesAgreeWithTheirPatterns(t *testing.T) {
	for _, pattern := range []string{digitsBeforeBoundary, digitGroupStarts} {
		rule, err := newMatcher(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if _, isRule := rule.(groupDigits); !isRule {
			t.Fatalf("%s runs as %T", pattern, rule)
		}
		re, err := compileRegex(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range []string{"", "a", " ", "_", "é", "²", ".", "\u200D", "\u0301"} {
			for n := range 12 {
				text := "x" + "12345678901"[:n] + end + "٣٤٥٦ 7"
				if got, want := pieces(t, text, isolate(rule)), pieces(t, text, isolate(re)); !slices.Equal(got, want) {
					t.Errorf("%s in %q: %q, want %q", pattern, text, got, want)
				}
			}
		}
	}
}
