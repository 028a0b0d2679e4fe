package tokenizer

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestBPE(t *testing.T) {
	unk := with(bpeModel("?ab", "a b"), "unk_token", "?")
	bytes := []string{"a", "ab"}
	for b := range 256 {
		bytes = append(bytes, "<0x"+strings.ToUpper(hexByte(byte(b)))+">")
	}
	fallback := obj{"type": "BPE", "vocab": vocabulary(bytes...), "merges": []string{}, "byte_fallback": true}
	for _, c := range []struct {
		name  string
		model obj
		pre   any
		text  string
		want  string
	}{
		{"lowest rank first", bpeModel("abc", "b c", "a b"), nil, "abc", "a|bc"},
		{"equal rank: leftmost first", bpeModel("a", "a a"), nil, "aaaaa", "aa|aa|a"},
		{"a merge may make a pair of lower rank", bpeModel("abc", "ab c", "a b", "b c"), nil, "abcbc", "abc|bc"},
		{"one after the other", bpeModel("ab", "a a", "aa b", "b b"), nil, "aaabbaab", "aa|a|bb|aab"},
		{"whole tokens, asked for", with(bpeModel("abc", "a b", "b c", "ab c"), "ignore_merges", true), nil, "abc", "abc"},
		{"whole tokens the merges do not reach", with(obj{"type": "BPE", "vocab": vocabulary("a", "b", "ba", "bab"), "merges": []string{"b a"}},
			"ignore_merges", true), nil, "bab", "bab"},
		{"and not asked for", obj{"type": "BPE", "vocab": vocabulary("a", "b", "ba", "bab"), "merges": []string{"b a"}}, nil, "bab", "ba|b"},
		{"a repeated merge has the later rank", bpeModel("abc", "a b", "b c", "a b"), nil, "abc", "a|bc"},
		{"merges as pairs", obj{"type": "BPE", "vocab": vocabulary("a", " ", "a "), "merges": [][]string{{"a", " "}}}, nil, "a a", "a |a"},
		{"a file without type", obj{"vocab": vocabulary("a", "b", "ab"), "merges": []string{"a b"}}, nil, "ab", "ab"},
		{"unknown characters vanish", bpeModel("ab"), nil, "axb", "a|b"},
		{"or are unk", unk, nil, "axyb", "a|?|?|b"},
		{"or one unk for a run", with(unk, "fuse_unk", true), nil, "axyb", "a|?|b"},
		{"or bytes", fallback, nil, "aé", "a|<0xC3>|<0xA9>"},
		{"continuing_subword_prefix", obj{
			"type": "BPE", "vocab": vocabulary("a", "##b", "##c", "ab", "##bc"), "merges": []string{"##b ##c", "a ##b"},
			"continuing_subword_prefix": "##",
		}, nil, "abc", "a|##bc"},
		{
			"end_of_word_suffix",
			obj{"type": "BPE", "vocab": vocabulary("a", "b", "b$", "ab$"), "merges": []string{"a b$"}, "end_of_word_suffix": "$"},
			nil,
			"ab", "ab$",
		},
		{"both over bytes", obj{"type": "BPE", "vocab": vocabulary("Ã", "©$"), "merges": []string{}, "end_of_word_suffix": "$"}, byteLevel, "é", "Ã|©$"},
		{"bytes", byteModel("Ã ©"), byteLevel, "aé", "a|Ã©"},
		{"a byte without a symbol", bpeModel("Ã"), byteLevel, "é", "Ã"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tok := file{Model: c.model, Pre: c.pre}.load(t)
			for range 2 { // the second time from the cache
				checkTokens(t, tok, c.text, Options{}, strings.Split(c.want, "|")...)
			}
		})
	}
}

func hexByte(b byte) string {
	const digits = "0123456789ABCDEF"
	return string([]byte{digits[b>>4], digits[b&15]})
}

// naiveMerge is the definition: merge the leftmost pair of the lowest rank until none is left.
func naiveMerge(t *mergeTable, symbols []int32) []int32 {
	for {
		best, bestRank, bestID := -1, int32(noRank), int32(0)
		for i := range len(symbols) - 1 {
			if rank, id := t.get(symbols[i], symbols[i+1]); rank < bestRank {
				best, bestRank, bestID = i, rank, id
			}
		}
		if best < 0 {
			return symbols
		}
		symbols = slices.Replace(symbols, best, best+2, bestID)
	}
}

func TestMergingAgreesWithItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "merges")
		table := newMergeTable(n)
		const letters = 3
		for i := range n { // symbols made earlier may be merged; ranks may repeat, as scores do
			top := int32(letters + i)
			left, right := rapid.Int32Range(0, top-1).Draw(t, "left"), rapid.Int32Range(0, top-1).Draw(t, "right")
			table.set(left, right, rapid.Int32Range(0, int32(n)).Draw(t, "rank"), top)
		}
		symbols := rapid.SliceOfN(rapid.Int32Range(0, letters-1), 0, 100).Draw(t, "symbols")
		want := naiveMerge(&table, slices.Clone(symbols))
		long := slices.Clone(symbols)
		if len(long) > 1 {
			long = long[:table.mergeLong(long)]
		}
		if !slices.Equal(long, want) {
			t.Fatalf("heap: %v, want %v", long, want)
		}
		if len(symbols) <= shortPiece {
			short := slices.Clone(symbols)
			short = short[:table.mergeShort(short)]
			if !slices.Equal(short, want) {
				t.Fatalf("scan: %v, want %v", short, want)
			}
		}
	})
}

// Cutting a whole text before each ▁ is an optimization; it must not show.
func TestCutsBeforeSpacesDoNotShow(t *testing.T) {
	merges := []string{"▁ a", "a b", "▁ ▁", "▁▁ ▁", "▁a b", "b a"}
	tok := file{Model: with(bpeModel("▁ab?", merges...), "unk_token", "?")}.load(t)
	cut := tok.model.(*bpe)
	if cut.mark != spaceMark {
		t.Fatal("these merges allow cuts")
	}
	for why, model := range map[string]obj{
		"a▁ crosses a cut":             with(bpeModel("▁ab?", "a ▁", "a b"), "unk_token", "?"),
		"unknown characters vanish":    bpeModel("▁ab", merges...),
		"▁ is an unknown character":    with(bpeModel("ab?", "a b"), "unk_token", "?"),
		"prefixes depend on the place": with(with(bpeModel("▁ab?"), "unk_token", "?"), "continuing_subword_prefix", "?"),
	} {
		if (file{Model: model}).load(t).model.(*bpe).mark != "" {
			t.Error("cuts, although", why)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"▁", "▁▁", "a", "b", "ab", "x"})).Draw(t, "text"), "")
		if got, want := cut.encode(nil, text), cut.encodeMerged(nil, text); !slices.Equal(got, want) {
			t.Fatalf("%q: %v, in one piece %v", text, got, want)
		}
	})
}

func TestLongPieces(t *testing.T) {
	tok := file{Model: byteModel("a a", "aa aa", "aaaa aaaa"), Pre: byteLevel}.load(t)
	ids, err := tok.Encode(strings.Repeat("a", 1<<20), Options{})
	if err != nil || len(ids) != 1<<17 {
		t.Errorf("%d tokens, %v; want %d", len(ids), err, 1<<17)
	}
}
