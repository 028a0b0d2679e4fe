package tokenizer

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func normalize(t testing.TB, c obj, text string) (string, error) {
	t.Helper()
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := parseSteps(raw)
	if err != nil {
		t.Fatal(err)
	}
	n, err := newNormalizer(steps)
	if err != nil {
		t.Fatal(err)
	}
	if n == nil {
		return text, nil
	}
	return n(text, normalizeGrowth*len(text)+normalizeSlack)
}

func TestNormalizers(t *testing.T) {
	literal := func(old, new string) obj {
		return obj{"type": "Replace", "pattern": obj{"String": old}, "content": new}
	}
	for _, c := range []struct {
		normalizer obj
		in, want   string
	}{
		{obj{"type": "NFC"}, "e\u0301 \u1100\u1161\u11A8", "é 각"},
		{obj{"type": "NFD"}, "é 각", "e\u0301 \u1100\u1161\u11A8"},
		{obj{"type": "NFC"}, "ﬁ", "ﬁ"},
		{obj{"type": "NFKC"}, "ﬁ ①", "fi 1"},
		{obj{"type": "NFKD"}, "é½", "e\u03011⁄2"},
		{obj{"type": "Lowercase"}, "ÀBÇ ΣΑΣ İ \u1C89", "àbç σας"[:len("àbç ")] + "σασ i\u0307 \u1C8A"},
		{obj{"type": "Strip"}, "\u3000 a b\n", "a b"},
		{obj{"type": "Strip", "strip_left": false, "strip_right": true}, " a ", " a"},
		{obj{"type": "StripAccents"}, "e\u0301é", "eé"},
		{obj{"type": "Prepend", "prepend": "▁"}, "a", "▁a"},
		{obj{"type": "Prepend", "prepend": "▁"}, "", ""},
		{obj{"type": "ByteLevel"}, " é\n", "ĠÃ©Ċ"},
		{literal("a", "bb"), "aca", "bbcbb"},
		{literal(".", "$1"), "a.b", "a$1b"},
		{obj{"type": "Replace", "pattern": obj{"Regex": `\s+`}, "content": " "}, "a \n b", "a b"},
		{obj{"type": "Replace", "pattern": obj{"Regex": `(?=b)`}, "content": "-"}, "abb", "a-b-b"},
		{sequence("normalizers"), "a", "a"},
		{sequence("normalizers", obj{"type": "Lowercase"}, sequence("normalizers", literal("a", "b"))), "A", "b"},
	} {
		if got, err := normalize(t, c.normalizer, c.in); err != nil || got != c.want {
			t.Errorf("%v of %q: %q, %v; want %q", c.normalizer, c.in, got, err, c.want)
		}
	}
}

// The reference's tables are those of Unicode 9.
func TestNormalFormsLeaveYoungCharactersAlone(t *testing.T) {
	for _, c := range []struct{ form, in, want string }{
		{"NFC", "\U00011935\U00011930", "\U00011935\U00011930"}, // composes since Unicode 13
		{"NFC", "a\u0301\u08D3", "á\u08D3"},                     // a mark of combining class 220 since Unicode 11: it is not moved before U+0301
		{"NFC", "a\u08D3\u0301", "a\u08D3\u0301"},               // and stands between
		{"NFC", "a\u0323\u0301\u08CA", "ạ\u0301\u08CA"},
		{"NFKC", "\u32FF", "\u32FF"}, // a square of two characters since Unicode 12.1
		{"NFKC", "\u32FE", "ヲ"},
	} {
		if got := normalForms[c.form].normalize(c.in); got != c.want {
			t.Errorf("%s of %+q: %+q, want %+q", c.form, c.in, got, c.want)
		}
	}
}

// x/text puts U+034F into long runs of marks; the reference does not.
func TestNormalFormsOfLongRunsOfMarks(t *testing.T) {
	n := 40
	for _, c := range []struct{ form, in, want string }{
		{"NFC", "e" + strings.Repeat("\u0301", n), "é" + strings.Repeat("\u0301", n-1)},
		{"NFD", "é" + strings.Repeat("\u0323", n), "e" + strings.Repeat("\u0323", n) + "\u0301"},
		{"NFC", "é" + strings.Repeat("\u0323", n), "ẹ" + strings.Repeat("\u0323", n-1) + "\u0301"},
		{"NFC", strings.Repeat("\u0344", n), strings.Repeat("\u0308\u0301", n)},
		{"NFC", "\u1100" + strings.Repeat("\u1161", n), "가" + strings.Repeat("\u1161", n-1)},
		{"NFKD", "ﬁ" + strings.Repeat("\u0301", n), "fi" + strings.Repeat("\u0301", n)},
	} {
		if got := normalForms[c.form].normalize(c.in); got != c.want {
			t.Errorf("%s of %+q:\n got %+q\nwant %+q", c.form, c.in, got, c.want)
		}
	}
}

func TestLongMarksAgreesWithTheLibrary(t *testing.T) {
	marks := []rune{0x301, 0x308, 0x323, 0x331, 0x345, 0x334, 0x3099, 0x1161, 0x11A8, 'a', 'e', 'é', 0x1EA5, 0x1100, 0xAC00, 'ﬁ', 0x344, 0x1D165}
	rapid.Check(t, func(t *rapid.T) {
		// Up to maxMarks runes: below the limit of the library.
		text := string(rapid.SliceOfN(rapid.SampledFrom(marks), 0, maxMarks).Draw(t, "text"))
		for name, n := range normalForms {
			if got, want := n.longMarks(text), n.form.String(text); got != want {
				t.Fatalf("%s of %+q: %+q, want %+q", name, text, got, want)
			}
		}
	})
}

func TestNormalizersMayNotExplode(t *testing.T) {
	double := obj{"type": "Replace", "pattern": obj{"Regex": "a"}, "content": "aa"}
	steps := make([]any, 30)
	for i := range steps {
		steps[i] = double
	}
	for _, c := range []obj{
		sequence("normalizers", steps...),
		{"type": "Replace", "pattern": obj{"String": "a"}, "content": strings.Repeat("b", 100_000)},
	} {
		if _, err := normalize(t, c, "aaaa"); err != errGrowth {
			t.Errorf("error %v", err)
		}
	}
}
