package tokenizer

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// preTokenize runs a pre_tokenizer; pieces of a last step ByteLevel are mapped to the byte
// alphabet.
func preTokenize(t testing.TB, c obj, text string) []string {
	t.Helper()
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := parseSteps(raw)
	if err != nil {
		t.Fatal(err)
	}
	split, bytes, err := newPreTokenizer(steps)
	if err != nil {
		t.Fatal(err)
	}
	out := pieces(t, text, split...)
	if bytes {
		for i := range out {
			out[i] = toByteAlphabet(out[i])
		}
	}
	return out
}

func TestSplitBehaviors(t *testing.T) {
	const text = "the-final--countdown-"
	for _, c := range []struct {
		behavior string
		invert   bool
		want     string // pieces, separated by spaces
	}{
		{"Isolated", false, "the - final - - countdown -"},
		{"Removed", false, "the final countdown"},
		{"MergedWithPrevious", false, "the- final- - countdown-"},
		{"MergedWithNext", false, "the -final - -countdown -"},
		{"Contiguous", false, "the - final -- countdown -"},
		{"Removed", true, "- - - -"},
		{"MergedWithPrevious", true, "the -final - -countdown -"},
		{"Contiguous", true, "the - final -- countdown -"},
	} {
		for _, pattern := range []obj{{"String": "-"}, {"Regex": "-"}} {
			split := obj{"type": "Split", "pattern": pattern, "behavior": c.behavior, "invert": c.invert}
			if got := strings.Join(preTokenize(t, split, text), " "); got != c.want {
				t.Errorf("%s, inverted %v: %q, want %q", c.behavior, c.invert, got, c.want)
			}
		}
	}
}

func TestPreTokenizers(t *testing.T) {
	split := func(pattern string) obj {
		return obj{"type": "Split", "pattern": obj{"Regex": pattern}, "behavior": "Isolated"}
	}
	for _, c := range []struct {
		pre  obj
		text string
		want []string
	}{
		{obj{"type": "ByteLevel"}, "Hello  world, it's é", []string{"ĠHello", "Ġ", "Ġworld", ",", "Ġit", "'s", "ĠÃ©"}},
		{obj{"type": "ByteLevel", "add_prefix_space": false}, "a b", []string{"a", "Ġb"}},
		{byteLevel, "a b", []string{"aĠb"}},
		{sequence("pretokenizers", byteLevel, split("Ġ")), "a b", []string{"a", "Ġ", "b"}}, // the mapping is real for later steps
		{sequence("pretokenizers", split(`\s`), obj{"type": "ByteLevel"}), "a b", []string{"Ġa", "Ġ", "Ġb"}},
		{sequence("pretokenizers", split(`\p{N}{1,3}`), split(`\p{L}`)), "a1234", []string{"a", "123", "4"}},
		{split(`(?=b)`), "abab", []string{"a", "ba", "b"}}, // an empty match splits where it is
		{obj{"type": "Digits", "individual_digits": true}, "a12½", []string{"a", "1", "2", "½"}},
		{obj{"type": "Digits"}, "a12½b", []string{"a", "12½", "b"}},
		{obj{"type": "Punctuation"}, "a,.b$", []string{"a", ",", ".", "b", "$"}},
		{obj{"type": "Punctuation", "behavior": "Contiguous"}, "a,.b。", []string{"a", ",.", "b", "。"}},
		{obj{"type": "Whitespace"}, " ab, c\u200Dd\n½!", []string{"ab", ",", "c\u200Dd", "½!"}},
		{obj{"type": "WhitespaceSplit"}, " ab, c\u3000", []string{"ab,", "c"}},
		{obj{"type": "CharDelimiterSplit", "delimiter": "é"}, "aéébé", []string{"a", "b"}},
		{obj{"type": "FixedLength", "length": 2}, "aébcd", []string{"aé", "bc", "d"}},
		{obj{"type": "Metaspace"}, "a b\tc", []string{"▁a", "▁b\tc"}},
		{obj{"type": "Metaspace", "split": false}, "a  b", []string{"▁a▁▁b"}},
		{obj{"type": "Metaspace"}, "▁a ", []string{"▁a", "▁"}},
		{obj{"type": "Metaspace", "prepend_scheme": "never"}, "a b", []string{"a", "▁b"}},
		{obj{"type": "Metaspace", "add_prefix_space": false}, "a b", []string{"a", "▁b"}},
		{obj{"type": "Metaspace", "replacement": "_"}, "a b", []string{"_a", "_b"}},
		{
			sequence("pretokenizers", obj{"type": "CharDelimiterSplit", "delimiter": "-"}, obj{"type": "Metaspace", "prepend_scheme": "first"}), "a-b",
			[]string{"▁a", "b"},
		},
		{sequence("pretokenizers", obj{"type": "CharDelimiterSplit", "delimiter": "-"}, obj{"type": "Metaspace"}), "a-b", []string{"▁a", "▁b"}},
	} {
		if got := preTokenize(t, c.pre, c.text); !slices.Equal(got, c.want) {
			t.Errorf("%v of %q: %q, want %q", c.pre, c.text, got, c.want)
		}
	}
}

func TestDigitsFromTheRight(t *testing.T) {
	for _, c := range []struct{ rule, text, want string }{
		{digitsBeforeBoundary, "x1234567", "x|1|234|567"},
		{digitsBeforeBoundary, "1234567 12 123", "1|234|567| |12| |123"},
		{digitsBeforeBoundary, "1234a", "1234a"}, // no word ends behind the run
		{digitGroupStarts, "x1234567a", "x1|234|567a"},
		{digitGroupStarts, "x123", "x|123"},
	} {
		m, err := newMatcher(c.rule)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(pieces(t, c.text, isolate(m)), "|"); got != c.want {
			t.Errorf("%s of %q: %q, want %q", c.rule, c.text, got, c.want)
		}
	}
	if got := strings.Join(pieces(t, "x1234a", isolate(groupDigits{})), "|"); got != "x|1|234|a" {
		t.Errorf("every run: %q", got)
	}
}
