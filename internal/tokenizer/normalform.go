package tokenizer

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalForm is one of NFC, NFD, NFKC, NFKD as the reference computes it: by the tables of Unicode
// 9. Code points that those tables do not know are copied, and the text between them is normalized.
type normalForm struct {
	form  norm.Form
	inert func() rangeSet
}

var (
	inertCanonical     = sync.OnceValue(func() rangeSet { return parseRanges(inertMarks) })
	inertCompatibility = sync.OnceValue(func() rangeSet { return parseRanges(inertMarks, inertCompat) })

	nfc = normalForm{norm.NFC, inertCanonical}
	nfd = normalForm{norm.NFD, inertCanonical}

	normalForms = map[string]normalForm{
		"NFC": nfc, "NFD": nfd, "NFKC": {norm.NFKC, inertCompatibility}, "NFKD": {norm.NFKD, inertCompatibility},
	}
)

func (n normalForm) normalize(s string) string {
	if isASCII(s) {
		return s
	}
	var out strings.Builder
	inert := n.inert()
	from := 0
	for i, r := range s {
		if r >= inert[0].lo && inert.has(r) {
			out.WriteString(n.stretch(s[from:i]))
			out.WriteRune(r)
			from = i + utf8.RuneLen(r)
		}
	}
	if from == 0 {
		return n.stretch(s)
	}
	out.WriteString(n.stretch(s[from:]))
	return out.String()
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// maxMarks is how many characters that may combine with the one before may follow each other in
// what x/text gets. It separates longer runs by U+034F (the Stream-Safe format: more than 30 after
// decomposition, of which one gives two at most).
const maxMarks = 12

func (n normalForm) stretch(s string) string {
	marks := 0
	for _, r := range s {
		if r < 0x300 || !unicode.Is(unicode.M, r) && (r < 0x1160 || r > 0x11FF) { // the latter: Hangul vowels and final consonants
			marks = 0
		} else if marks++; marks > maxMarks {
			return n.longMarks(s)
		}
	}
	return n.form.String(s)
}

// longMarks is the textbook algorithm: decompose, sort marks by combining class, compose.
func (n normalForm) longMarks(s string) string {
	decompose, compose := norm.NFD, n.form == norm.NFC || n.form == norm.NFKC
	if n.form == norm.NFKC || n.form == norm.NFKD {
		decompose = norm.NFKD
	}
	var runes []rune
	for _, r := range s {
		runes = append(runes, []rune(decompose.String(string(r)))...)
	}
	for i := 0; i < len(runes); i++ {
		from := i
		for i < len(runes) && combiningClass(runes[i]) != 0 {
			i++
		}
		slices.SortStableFunc(runes[from:i], func(a, b rune) int { return int(combiningClass(a)) - int(combiningClass(b)) })
	}
	if compose {
		runes = composeRunes(runes)
	}
	return string(runes)
}

// composeRunes composes each character with the last starter unless one of its own or a higher
// combining class stands between.
func composeRunes(runes []rune) []rune {
	out := runes[:0]
	starter := -1    // index in out
	last := uint8(0) // combining class of the last character kept after the starter
	for _, r := range runes {
		class := combiningClass(r)
		if starter >= 0 && (starter == len(out)-1 || last != 0 && last < class) {
			if joined := norm.NFC.String(string(out[starter]) + string(r)); utf8.RuneCountInString(joined) == 1 {
				out[starter], _ = utf8.DecodeRuneInString(joined)
				continue
			}
		}
		if class == 0 {
			starter = len(out)
		}
		last = class
		out = append(out, r)
	}
	return out
}

func combiningClass(r rune) uint8 {
	if r < 0x300 {
		return 0
	}
	return norm.NFD.PropertiesString(string(r)).CCC()
}
