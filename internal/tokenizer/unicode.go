package tokenizer

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// The reference library classifies characters by Unicode 16, Go 1.26 by Unicode 15. The tables
// below are the difference; a test pins the resulting sizes of the classes, so that a newer Go
// shows up there and not as a slightly different tokenization.

// supplement lists, per property, the code points that Unicode 16 has and Unicode 15 lacks
// (hexadecimal, inclusive). It names every property that a pattern may use: a property missing here
// is refused, because its exact extent in the reference is not known.
var supplement = map[string]string{
	"L": "1C89-1C8A A7CB-A7CD A7DA-A7DC 105C0-105F3 10D4A-10D65 10D6F-10D85 10EC2-10EC4 11380-11389 1138B 1138E 11390-113B5 113B7 113D1 113D3 " +
		"11BC0-11BE0 13460-143FA 16100-1611D 16D40-16D6C 18CFF 1E5D0-1E5ED 1E5F0 2EBF0-2EE5D",
	"Lu": "1C89 A7CB-A7CC A7DA A7DC 10D50-10D65",
	"Ll": "1C8A A7CD A7DB 10D70-10D85",
	"Lt": "",
	"Lm": "10D4E 10D6F 16D40-16D42 16D6B-16D6C",
	"Lo": "105C0-105F3 10D4A-10D4D 10D4F 10EC2-10EC4 11380-11389 1138B 1138E 11390-113B5 113B7 113D1 113D3 11BC0-11BE0 13460-143FA 16100-1611D " +
		"16D43-16D6A 18CFF 1E5D0-1E5ED 1E5F0 2EBF0-2EE5D",
	"N":  newDigits, // all of them decimal digits
	"Nd": newDigits,
	"Nl": "",
	"No": "",
	"M":  "897 10D69-10D6D 10EFC 113B8-113C0 113C2 113C5 113C7-113CA 113CC-113D0 113D2 113E1-113E2 11F5A 1611E-1612F 1E5EE-1E5EF",
	"P":  "1B4E-1B4F 1B7F 10D6E 113D4-113D5 113D7-113D8 11BE1 16D6D-16D6F 1E5FF",
	"S": "2427-2429 2FFC-2FFF 31E4-31E5 31EF 10D8E-10D8F 1CC00-1CCEF 1CD00-1CEB3 1F8B2-1F8BB 1F8C0-1F8C1 1FA89 1FA8F 1FABE 1FAC6 1FADC 1FADF " +
		"1FAE9 1FBCB-1FBEF",
	"Z": "", "Zs": "", "Zl": "", "Zp": "", "Cc": "", "Pc": "",
	"Han": "2EBF0-2EE5D", "Hiragana": "", "Katakana": "", "Hangul": "",
}

const newDigits = "10D40-10D49 116D0-116E3 11BF0-11BF9 16130-16139 16D70-16D79 1CCF0-1CCF9 1E5F1-1E5FA"

// inertMarks are code points younger than Unicode 9, the version of the reference's normalization
// tables: it neither composes nor reorders them. U+11930 is here because it composes to the young
// U+11938.
const inertMarks = "7FD 898-89F 8CA-8D3 9FE C3C D3B-D3C EBA 1715 1ABF-1ACE 1DF6-1DFA A82C 10D24-10D27 10EAB-10EAC 10EFD-10EFF 10F46-10F50 " +
	"10F82-10F85 11070 1133B 1145E 11839-1183A 11930 11938 1193D-1193E 11943 119E0 11A34 11A47 11A99 11D42 11D44-11D45 11D97 11F41-11F42 " +
	"16FF0-16FF1 1E08F 1E130-1E136 1E2AE 1E2EC-1E2EF 1E4EC-1E4EF"

// inertCompat are code points whose compatibility mapping is younger than Unicode 9; NFKC and NFKD
// leave them alone.
const inertCompat = "32FF A7F2-A7F4 AB69 10781-10785 10787-107B0 107B2-107BA 1E030-1E06D 1F16C 1FBF0-1FBF9"

// rangeSet is a sorted list of inclusive code point ranges.
type rangeSet []runeRange

type runeRange struct{ lo, hi rune }

func parseRanges(lists ...string) rangeSet {
	var set rangeSet
	for _, list := range lists {
		for f := range strings.FieldsSeq(list) {
			lo, hi, ok := strings.Cut(f, "-")
			if !ok {
				hi = lo
			}
			set = append(set, runeRange{parseHex(lo), parseHex(hi)})
		}
	}
	slices.SortFunc(set, func(a, b runeRange) int { return int(a.lo - b.lo) })
	return set
}

func parseHex(s string) rune {
	v, err := strconv.ParseInt(s, 16, 32)
	if err != nil {
		panic(err) // the tables are constants
	}
	return rune(v)
}

func (s rangeSet) has(r rune) bool {
	_, found := slices.BinarySearchFunc(s, r, func(x runeRange, r rune) int {
		switch {
		case x.hi < r:
			return -1
		case x.lo > r:
			return 1
		}
		return 0
	})
	return found
}

// class returns the membership test of a property in Unicode 16, whose Unicode 15 part is table.
func class(name string, table *unicode.RangeTable) func(rune) bool {
	added := sync.OnceValue(func() rangeSet { return parseRanges(supplement[name]) })
	return func(r rune) bool { return unicode.Is(table, r) || r > unicode.MaxLatin1 && added().has(r) }
}

var (
	isLetter = class("L", unicode.L)
	isDigit  = class("Nd", unicode.Nd)
	isMark   = class("M", unicode.M)

	youngPunctuation = sync.OnceValue(func() rangeSet { return parseRanges(punctuationSince9) })
	youngMarks       = sync.OnceValue(func() rangeSet { return parseRanges(marksSince9) })
)

// The parts of the reference that are not regexes carry tables of their own: Punctuation and
// StripAccents those of Unicode 8, digits and lower case those of Unicode 17. What Go has beyond
// Unicode 8:
const (
	punctuationSince9 = "61D 9FD A76 C77 C84 1B7D-1B7E 2E43-2E4F 2E52-2E5D 10EAD 10F55-10F59 10F86-10F89 1144B-1144F 1145A-1145B 1145D " +
		"11660-1166C 116B9 1183B 11944-11946 119E2 11A3F-11A46 11A9A-11A9C 11A9E-11AA2 11B00-11B09 11C41-11C45 11C70-11C71 11EF7-11EF8 " +
		"11F43-11F4F 11FFF 12FF1-12FF2 16E97-16E9A 16FE2 1E95E-1E95F"
	marksSince9 = "7FD 898-89F 8CA-8D3 9FE AFA-AFF B55 C04 C3C CF3 D00 D3B-D3C D81 EBA ECE 1715 180F 1ABF-1ACE 1CF7 1DF6-1DFA A82C A8FF " +
		"10D24-10D27 10EAB-10EAC 10EFD-10EFF 10F46-10F50 10F82-10F85 11070 11073-11074 110C2 11145-11146 111C9 111CE-111CF 11241 1133B " +
		"1145E 1182C-1183A 11930-11935 11937-11938 1193B-1193E 11940 11942-11943 119D1-119D7 119DA-119E0 119E4 11A01-11A0A 11A33-11A39 " +
		"11A3B-11A3E 11A47 11A51-11A5B 11A8A-11A99 11D31-11D36 11D3A 11D3C-11D3D 11D3F-11D45 11D47 11D8A-11D8E 11D90-11D91 11D93-11D97 " +
		"11EF3-11EF6 11F00-11F01 11F03 11F34-11F3A 11F3E-11F42 13440 13447-13455 16F4F 16F7F-16F87 16FE4 16FF0-16FF1 1CF00-1CF2D " +
		"1CF30-1CF46 1E08F 1E130-1E136 1E2AE 1E2EC-1E2EF 1E4EC-1E4EF"
)

// isWord is \w outside regexes: Alphabetic, marks, decimal digits, connectors and the two joiners.
func isWord(r rune) bool {
	return r == 0x200C || r == 0x200D || isRegexWord(r) && !latinNumber(r)
}

// isRegexWord is \w in regexes (Oniguruma): it lacks the joiners and has the superscripts and
// fractions of Latin-1. Beyond letters and marks, Alphabetic has the letter numbers and the circled
// and squared Latin letters.
func isRegexWord(r rune) bool {
	switch {
	case r < 0x80:
		return r == '_' || '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z'
	case latinNumber(r), isLetter(r), isMark(r), isDigit(r):
		return true
	}
	return unicode.In(r, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic)
}

func latinNumber(r rune) bool { return r <= unicode.MaxLatin1 && unicode.Is(unicode.No, r) }

func isASCIIPunctuation(r rune) bool {
	return '!' <= r && r <= '/' || ':' <= r && r <= '@' || '[' <= r && r <= '`' || '{' <= r && r <= '~'
}

// isPunctuation is what the Punctuation step isolates.
func isPunctuation(r rune) bool {
	return isASCIIPunctuation(r) || unicode.IsPunct(r) && !youngPunctuation().has(r) || r == 0x166D || r == 0x111C9
}

// isNumeric is what the Digits step isolates.
func isNumeric(r rune) bool {
	return unicode.IsNumber(r) || isDigit(r) || 0x11DE0 <= r && r <= 0x11DE9 || 0x16FF4 <= r && r <= 0x16FF6
}

// isAccent is what StripAccents drops.
func isAccent(r rune) bool {
	return unicode.IsMark(r) && !youngMarks().has(r) || r == 0x1CF2 || r == 0x1CF3
}

// toLower is the full lower-case mapping, which gives one character except for U+0130.
func toLower(r rune) string {
	switch {
	case r == 0x130:
		return "i\u0307"
	case r == 0xA7CB:
		return "\u0264"
	case r == 0xA7DC:
		return "\u019B"
	case r == 0x1C89, r == 0xA7CC, r == 0xA7CE, r == 0xA7D2, r == 0xA7D4, r == 0xA7DA:
		return string(r + 1)
	case 0x10D50 <= r && r <= 0x10D65:
		return string(r + 0x20)
	case 0x16EA0 <= r && r <= 0x16EB8:
		return string(r + 0x1B)
	}
	return string(unicode.ToLower(r))
}
