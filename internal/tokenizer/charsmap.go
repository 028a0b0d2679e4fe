package tokenizer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// charsMap is SentencePiece's precompiled normalization: a double-array trie from byte strings to
// offsets of zero-terminated replacements.
//
// Layout: size of the trie in bytes (uint32, little-endian), the trie's units (uint32 each), the
// replacements.
type charsMap struct {
	units        []uint32
	replacements []byte
}

func newCharsMap(blob []byte) (*charsMap, error) {
	if len(blob) < 4 {
		return nil, errors.New("shorter than its header")
	}
	size := uint64(binary.LittleEndian.Uint32(blob))
	if size == 0 || size%4 != 0 || size > uint64(len(blob)-4) {
		return nil, errors.New("the trie's size does not fit the data")
	}
	m := &charsMap{units: make([]uint32, size/4), replacements: blob[4+size:]}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(blob[4+4*i:])
	}
	return m, nil
}

// A unit holds a label (the byte that leads to it), the XOR offset to its children, and whether a
// value hangs below it.
func unitOffset(u uint32) uint32 { return u >> 10 << (u & (1 << 9) >> 6) }

// replacementFor returns the replacement for the shortest prefix of s that has one.
func (m *charsMap) replacementFor(s string) (string, bool) {
	at := unitOffset(m.units[0])
	for i := range len(s) {
		at ^= uint32(s[i])
		if s[i] == 0 || uint64(at) >= uint64(len(m.units)) || m.units[at]&(1<<31|0xFF) != uint32(s[i]) {
			return "", false
		}
		unit := m.units[at]
		at ^= unitOffset(unit)
		if unit>>8&1 == 0 {
			continue
		}
		if uint64(at) >= uint64(len(m.units)) {
			return "", false
		}
		value := m.units[at] &^ (1 << 31)
		if uint64(value) > uint64(len(m.replacements)) {
			return "", false
		}
		text, _, _ := bytes.Cut(m.replacements[value:], []byte{0})
		return string(text), true
	}
	return "", false
}

// normalize replaces whole graphemes of under 6 bytes where the map has them, and else character by
// character.
func (m *charsMap) normalize(s string, limit int) (string, error) {
	var out strings.Builder
	state := -1
	for s != "" {
		var grapheme string
		grapheme, s, _, state = uniseg.FirstGraphemeClusterInString(s, state)
		if len(grapheme) < 6 {
			if text, ok := m.replacementFor(grapheme); ok {
				out.WriteString(text)
				grapheme = ""
			}
		}
		for grapheme != "" {
			_, n := utf8.DecodeRuneInString(grapheme)
			if text, ok := m.replacementFor(grapheme[:n]); ok {
				out.WriteString(text)
			} else {
				out.WriteString(grapheme[:n])
			}
			grapheme = grapheme[n:]
		}
		if out.Len() > limit {
			return "", errGrowth
		}
	}
	return validUTF8(out.String()), nil
}
