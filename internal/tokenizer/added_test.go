package tokenizer

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAddedTokens(t *testing.T) {
	letters := bpeModel("abcdef< >sxyzYES\n\t▁_é.")
	prependMark := obj{"type": "Prepend", "prepend": "▁"}
	for _, c := range []struct {
		name       string
		added      []obj
		normalizer any
		text       string
		want       string // tokens, separated by |
	}{
		{"the longest at a place", []obj{added(100, "ab"), added(101, "abc"), added(103, "bca")}, nil, "abcab", "abc|ab"},
		{"an earlier start beats a longer match", []obj{added(100, "ab"), added(101, "bcdef")}, nil, "abcdef", "ab|c|d|e|f"},
		{"file order plays no part", []obj{added(101, "abc"), added(100, "ab")}, nil, "abc", "abc"},
		{"no match inside another", []obj{added(100, "aba")}, nil, "ababa", "aba|b|a"},
		{"lstrip", []obj{added(100, "<s>", "lstrip")}, nil, "a \t<s> b", "a|<s>| |b"},
		{"rstrip", []obj{added(100, "<s>", "rstrip")}, nil, "a <s> \nb", "a| |<s>|b"},
		{"lstrip ends at the match before", []obj{added(100, "<s>", "rstrip"), added(101, "xy", "lstrip")}, nil, "<s>  xy", "<s>|xy"},
		{"white space tokens", []obj{added(16, "\n", "lstrip", "rstrip")}, nil, "a\n\nb", "a|\n|b"},
		{"single_word", []obj{added(100, "ab", "single_word")}, nil, "ab cab ab_ ab.", "ab| |c|a|b| |a|b|_| |ab|."},
		{
			"a match dropped by single_word is not retried shorter",
			[]obj{added(100, "abc", "single_word"), added(101, "ab")},
			nil, "abcd abc",
			"a|b|c|d| |abc",
		},
		{"the search goes on after it", []obj{added(100, "abc", "single_word"), added(101, "bc")}, nil, "abcd", "a|b|c|d"},
		{"content in the vocabulary", []obj{added(0, "a", "special")}, nil, "ba", "b|a"},
		{"raw tokens before normalized ones", []obj{added(100, "ab", "normalized"), added(101, "bc")}, nil, "abc", "a|bc"},
		{"normalized content", []obj{added(100, "Yes", "normalized")}, obj{"type": "Lowercase"}, "YESyesYes", "Yes|Yes|Yes"},
		{"raw content", []obj{added(100, "Yes")}, obj{"type": "Lowercase"}, "YESYes", "y|e|s|Yes"},
		{"a prefix is part of normalized content", []obj{added(100, "sx", "normalized")}, prependMark, "sxasx", "sx|a|s|x"},
		{"the normalizer runs between tokens", []obj{added(100, "<s>")}, prependMark, "a<s>b<s>", "▁|a|<s>|▁|b|<s>"},
		{"empty content is ignored", []obj{added(100, "")}, nil, "a", "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tok := file{Added: c.added, Normalizer: c.normalizer, Model: letters}.load(t)
			checkTokens(t, tok, c.text, Options{}, strings.Split(c.want, "|")...)
		})
	}
}

// Metaspace with prepend_scheme first puts its mark before the first piece of the text, and not
// before one that follows an added token.
func TestFirstMeansTheWholeText(t *testing.T) {
	for _, flags := range [][]string{nil, {"normalized"}} {
		tok := file{Model: bpeModel("ab▁"), Pre: obj{"type": "Metaspace", "prepend_scheme": "first"}, Added: []obj{added(3, "<s>", flags...)}}.load(t)
		checkTokens(t, tok, "a<s>b", Options{}, "▁", "a", "<s>", "b")
		checkTokens(t, tok, "<s>b", Options{}, "<s>", "b")
	}
}

func TestPlainTextHasNoSpecialTokens(t *testing.T) {
	tok := file{
		Added: []obj{added(50, "<|a|>", "special"), added(51, "<|ab|>"), added(52, "<|a|>b", "special"), added(53, "<|")},
		Model: bpeModel("<|ab>"),
	}.load(t)
	checkTokens(t, tok, "<|a|>b<|ab|>", Options{}, "<|a|>b", "<|ab|>")
	// The longest that is not special.
	checkTokens(t, tok, "<|a|>b<|ab|>", Options{PlainText: true}, "<|", "a", "|", ">", "b", "<|ab|>")
}

// Nor can merges make one, or the rule that a piece which is a token is taken whole.
func TestPlainTextCannotSpellSpecialTokens(t *testing.T) {
	model := with(bpeModel("<a>", "< a", "<a >"), "ignore_merges", true)
	tok := file{Added: []obj{added(4, "<a>", "special")}, Model: model}.load(t)
	checkTokens(t, tok, "<a>", Options{}, "<a>")
	checkTokens(t, tok, "<a>", Options{PlainText: true}, "<a", ">")
}

// Were each token to look through all the white space around it, this would take hours.
func TestStrippingIsLinear(t *testing.T) {
	const n = 1 << 20
	for _, c := range []struct {
		flags []string
		want  int
	}{{[]string{"lstrip"}, n}, {[]string{"rstrip"}, n}, {[]string{"lstrip", "rstrip"}, 1}} {
		tok := file{Added: []obj{added(1, "\n", c.flags...)}, Model: bpeModel("a")}.load(t)
		ids, err := tok.Encode(strings.Repeat("\n", n), Options{})
		if err != nil || len(ids) != c.want {
			t.Errorf("%v: %d tokens, %v; want %d", c.flags, len(ids), err, c.want)
		}
	}
}

func TestPrefixIndexAgreesWithSearch(t *testing.T) {
	word := rapid.StringMatching(`[abé]{1,5}`)
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(word, 0, 12).Draw(t, "keys")
		text := rapid.StringMatching(`[abcé]{0,8}`).Draw(t, "text")
		x := newPrefixIndex(keys)
		var got []string
		for k := range x.prefixesOf(text) {
			got = append(got, x.keys[k])
		}
		var want []string
		for n := range len(text) {
			if slices.Contains(keys, text[:n+1]) {
				want = append(want, text[:n+1])
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("prefixes of %q among %q: %q, want %q", text, keys, got, want)
		}
		if text != "" && x.canBegin(text[0]) != slices.ContainsFunc(keys, func(k string) bool { return k[0] == text[0] }) {
			t.Fatalf("canBegin of %q among %q is wrong", text[0], keys)
		}
	})
}
