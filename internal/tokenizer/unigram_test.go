package tokenizer

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func unigramModel(byteFallback bool, entries ...any) obj {
	list := [][]any{{"<unk>", 0}}
	for i := 0; i < len(entries); i += 2 {
		list = append(list, []any{entries[i], entries[i+1]})
	}
	return obj{"type": "Unigram", "unk_id": 0, "vocab": list, "byte_fallback": byteFallback}
}

func TestUnigram(t *testing.T) {
	for _, c := range []struct {
		name  string
		model obj
		text  string
		want  string
	}{
		{"the best sum", unigramModel(false, "a", -1, "b", -1, "ab", -1.5, "c", -3, "bc", -1), "abc", "a|bc"},
		{"among equals the earliest start", unigramModel(false, "a", -1, "b", -1, "ab", -2), "ab", "ab"},
		{"unknown characters join", unigramModel(false, "a", -1), "axyaz", "a|<unk>|a|<unk>"},
		{"a token beats unknown characters", unigramModel(false, "a", -1, "xy", -15), "axy", "a|xy"},
		{"nor is a character known by a longer token", unigramModel(false, "z", -1, "ab", -1, "bc", -0.5), "zabc", "z|<unk>|bc"},
		{"bytes need all of them", unigramModel(true, "a", -1, "<0xC3>", -1), "aé", "a|<unk>"},
		{"bytes", unigramModel(true, "a", -1, "<0xC3>", -1, "<0xA9>", -1), "aé", "a|<0xC3>|<0xA9>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkTokens(t, file{Model: c.model}.load(t), c.text, Options{}, strings.Split(c.want, "|")...)
		})
	}
}

// TestUnigramFindsTheBest compares with all segmentations.
func TestUnigramFindsTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &unigram{vocab: &vocab{ids: map[string]int32{}}, unk: -1}
		longer := rapid.SliceOfNDistinct(rapid.StringMatching(`[abé]{2,3}`), 0, 8, rapid.ID).Draw(t, "tokens")
		for _, text := range slices.Concat([]string{"a", "b", "é"}, longer) {
			m.vocab.ids[text] = int32(len(m.scores))
			m.vocab.texts = append(m.vocab.texts, text)
			m.scores = append(m.scores, -float64(rapid.IntRange(1, 1000).Draw(t, "score"))/8) // eighths: sums are exact
		}
		m.finish(func(string) bool { return false })
		text := rapid.StringMatching(`[abé]{0,8}`).Draw(t, "text")

		var best func(rest string) float64
		best = func(rest string) float64 {
			if rest == "" {
				return 0
			}
			sum := math.Inf(-1)
			for id, token := range m.vocab.texts {
				if after, ok := strings.CutPrefix(rest, token); ok {
					sum = max(sum, m.scores[id]+best(after))
				}
			}
			return sum
		}
		got, joined := 0.0, ""
		for _, id := range m.encode(nil, text) {
			got += m.scores[id]
			joined += m.vocab.texts[id]
		}
		if joined != text || got != best(text) {
			t.Fatalf("%q: segments of %q with the sum %v, the best is %v", text, joined, got, best(text))
		}
	})
}
