package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// A model turns a piece into ids.
type model interface {
	// encode appends the ids of text to dst. It keeps no reference to text.
	encode(dst []int32, text string) []int32
}

// bpe is byte-pair encoding: the symbols of a piece are merged pairwise, the pair of lowest rank
// first, the leftmost among equals.
//
// A symbol is an id. Ids from len(vocab.texts) on stand for characters that are no tokens but part
// of some.
type bpe struct {
	vocab  *vocab
	merges mergeTable
	extra  []rune // the characters of the ids from len(vocab.texts) on

	// The symbols that merging begins with: bytes, if bytes is not nil; else characters, by chars,
	// or by vocab if they have a prefix or suffix.
	bytes          *[256]int32 // -1: the byte has none
	chars          map[rune]int32
	prefix, suffix string // continuing_subword_prefix, end_of_word_suffix

	byteFallback *[256]int32 // tokens <0xXX> for the bytes of unknown characters; nil: not used
	unk          int32       // for unknown characters; -1: they vanish
	fuseUnk      bool        // a run of unknown characters gives one unk

	whole    func(text string) bool // says of a piece that is a token: take it as it is; nil: never
	specials map[string]bool        // tokens that whole is not asked about
	mark     string                 // a piece may be cut between another character and this one; "": not
	cache    *pieceCache
}

func (m *bpe) encode(dst []int32, text string) []int32 {
	if m.whole != nil && m.whole(text) {
		if id, ok := m.wholeToken(text); ok {
			return append(dst, id)
		}
	}
	if m.mark == "" {
		return m.encodeCached(dst, text)
	}
	for from, at := 0, 0; ; {
		i := strings.Index(text[at:], m.mark)
		if i < 0 {
			return m.encodeCached(dst, text[from:])
		}
		at += i
		if at > from {
			dst = m.encodeCached(dst, text[from:at])
			from = at
		}
		for strings.HasPrefix(text[at:], m.mark) {
			at += len(m.mark)
		}
	}
}

func (m *bpe) wholeToken(text string) (int32, bool) {
	if m.specials[text] {
		return 0, false
	}
	if m.bytes == nil {
		id, ok := m.vocab.ids[text]
		return id, ok
	}
	var buf [128]byte
	id, ok := m.vocab.ids[string(appendByteAlphabet(buf[:0], text))]
	return id, ok
}

func (m *bpe) encodeCached(dst []int32, text string) []int32 {
	if text == "" {
		return dst
	}
	if m.cache == nil || len(text) > maxCachedPiece {
		return m.encodeMerged(dst, text)
	}
	slot, ids := m.cache.get(text)
	if ids != nil {
		return append(dst, ids...)
	}
	begin := len(dst)
	dst = m.encodeMerged(dst, text)
	m.cache.put(slot, text, dst[begin:])
	return dst
}

// encodeMerged appends the symbols of text, merges them in place, and replaces what is no token.
func (m *bpe) encodeMerged(dst []int32, text string) []int32 {
	begin := len(dst)
	switch {
	case m.prefix != "" || m.suffix != "":
		if m.bytes != nil {
			text = toByteAlphabet(text)
		}
		dst = m.affixedSymbols(dst, text)
	case m.bytes != nil:
		dst = m.byteSymbols(dst, text)
	default:
		dst = m.charSymbols(dst, text)
	}
	n := m.merges.merge(dst[begin:])
	dst = dst[:begin+n]
	if len(m.extra) > 0 {
		dst = m.resolveExtra(dst, begin)
	}
	return dst
}

func (m *bpe) byteSymbols(dst []int32, text string) []int32 {
	unknown := false // the symbol before is unk
	for i := range len(text) {
		id := m.bytes[text[i]]
		if id >= 0 {
			dst, unknown = append(dst, id), false
			continue
		}
		dst, unknown = m.unknownChar(dst, string(alphabet[text[i]]), unknown)
	}
	return dst
}

func (m *bpe) charSymbols(dst []int32, text string) []int32 {
	unknown := false
	for _, r := range text {
		if id, ok := m.chars[r]; ok {
			dst, unknown = append(dst, id), false
			continue
		}
		dst, unknown = m.unknownChar(dst, string(r), unknown)
	}
	return dst
}

func (m *bpe) affixedSymbols(dst []int32, text string) []int32 {
	unknown := false
	for i, r := range text {
		char := string(r)
		if i > 0 {
			char = m.prefix + char
		}
		if i+utf8.RuneLen(r) == len(text) {
			char += m.suffix
		}
		if id, ok := m.vocab.ids[char]; ok {
			dst, unknown = append(dst, id), false
			continue
		}
		dst, unknown = m.unknownChar(dst, char, unknown)
	}
	return dst
}

// unknownChar appends the byte tokens of a character, or unk, or nothing.
func (m *bpe) unknownChar(dst []int32, char string, afterUnk bool) (ids []int32, unknown bool) {
	if ids, ok := appendByteTokens(dst, char, m.byteFallback); ok {
		return ids, false
	}
	if m.unk >= 0 && !(m.fuseUnk && afterUnk) {
		dst = append(dst, m.unk)
	}
	return dst, m.unk >= 0
}

func appendByteTokens(dst []int32, char string, tokens *[256]int32) ([]int32, bool) {
	if tokens == nil {
		return dst, false
	}
	begin := len(dst)
	for i := range len(char) {
		if tokens[char[i]] < 0 {
			return dst[:begin], false
		}
		dst = append(dst, tokens[char[i]])
	}
	return dst, true
}

// resolveExtra replaces the symbols that are no tokens in dst[begin:] as unknown characters.
func (m *bpe) resolveExtra(dst []int32, begin int) []int32 {
	first := begin
	for first < len(dst) && int(dst[first]) < m.vocab.size() {
		first++
	}
	if first == len(dst) {
		return dst
	}
	symbols := append([]int32(nil), dst[first:]...)
	dst = dst[:first]
	unknown := false
	for _, id := range symbols {
		if int(id) < m.vocab.size() {
			dst, unknown = append(dst, id), false
			continue
		}
		dst, unknown = m.unknownChar(dst, string(m.extra[int(id)-m.vocab.size()]), unknown)
	}
	return dst
}

// indexChars fills chars from the one-character tokens.
func (m *bpe) indexChars() {
	m.chars = map[rune]int32{}
	for text, id := range m.vocab.ids {
		if r, n := utf8.DecodeRuneInString(text); n == len(text) && n > 0 {
			m.chars[r] = id
		}
	}
}
