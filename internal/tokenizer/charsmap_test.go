package tokenizer

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// buildCharsMap makes a charsmap of replacements: a double array in which each node's children are
// placed at the first free base.
func buildCharsMap(replacements map[string]string) []byte {
	type node struct {
		children map[byte]*node
		value    int // -1: none
	}
	root := &node{map[byte]*node{}, -1}
	var texts strings.Builder
	keys := make([]string, 0, len(replacements))
	for key := range replacements {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		n := root
		for i := range len(key) {
			if n.children[key[i]] == nil {
				n.children[key[i]] = &node{map[byte]*node{}, -1}
			}
			n = n.children[key[i]]
		}
		n.value = texts.Len()
		texts.WriteString(replacements[key] + "\x00")
	}

	units := make([]uint32, 1<<16)
	used := make([]bool, len(units))
	taken := map[uint32]bool{} // bases: two nodes of the same base would share children
	used[0] = true
	var place func(n *node, at uint32)
	place = func(n *node, at uint32) {
		labels := []byte{}
		if n.value >= 0 {
			labels = append(labels, 0)
		}
		for label := range n.children {
			labels = append(labels, label)
		}
		slices.Sort(labels)
		base := uint32(256)
		for ; taken[base] || slices.ContainsFunc(labels, func(l byte) bool { return used[base^uint32(l)] }); base++ {
		}
		taken[base] = true
		units[at] |= (at ^ base) << 10
		for _, l := range labels {
			used[base^uint32(l)] = true
		}
		for _, l := range labels {
			child := base ^ uint32(l)
			if l == 0 {
				units[at] |= 1 << 8
				units[child] = uint32(n.value) | 1<<31
				continue
			}
			units[child] = uint32(l)
			place(n.children[l], child)
		}
	}
	place(root, 0)

	blob := binary.LittleEndian.AppendUint32(nil, uint32(4*len(units)))
	for _, u := range units {
		blob = binary.LittleEndian.AppendUint32(blob, u)
	}
	return append(blob, texts.String()...)
}

func TestCharsMap(t *testing.T) {
	m, err := newCharsMap(buildCharsMap(map[string]string{
		"ﬁ": "fi", "①": "1", "\u3000": " ", "\n": " ", "é": "e", "e\u0301": "E", "\u200B": "", "ab": "x", "a": "y",
	}))
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"ﬁ①x\u3000":           "fi1x ",
		"c\nd":                "c d",
		"é":                   "e",
		"e\u0301":             "E",                   // a grapheme of under 6 bytes is looked up whole
		"e\u0301\u0301":       "E",                   // by its shortest prefix that is in the map
		"e\u0301\u0301\u0301": "e\u0301\u0301\u0301", // a longer one character by character
		"x\u200By":            "xy",
		"ab":                  "yb", // two graphemes
		"":                    "",
	} {
		if got, err := m.normalize(in, 1000); err != nil || got != want {
			t.Errorf("%+q: %+q, %v; want %+q", in, got, err, want)
		}
	}
	if _, err := m.normalize(strings.Repeat("ﬁ", 100), 10); err != errGrowth {
		t.Errorf("error %v", err)
	}
}

func TestCharsMapsThatAreRefused(t *testing.T) {
	for _, blob := range [][]byte{nil, {0, 0, 0}, {0, 0, 0, 0}, {4, 0, 0, 0}, {5, 0, 0, 0, 1, 2, 3, 4, 5}, {255, 255, 255, 255, 0}} {
		if _, err := newCharsMap(blob); err == nil {
			t.Errorf("% x: no error", blob)
		}
	}
	// Offsets that lead out of the trie or the replacements end the search.
	for _, unit := range []uint32{0xFFFFFFFF, 1<<31 | 'a', 'a' | 1<<8 | 0x3FFFFF<<10} {
		blob := binary.LittleEndian.AppendUint32(nil, 4*256)
		for range 256 {
			blob = binary.LittleEndian.AppendUint32(blob, unit)
		}
		m, err := newCharsMap(blob)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := m.normalize("abc", 100); err != nil || got != "abc" {
			t.Errorf("unit %x: %q, %v", unit, got, err)
		}
	}
}
