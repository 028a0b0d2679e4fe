package tokenizer

import (
	"fmt"
	"math"
	"strings"
)

const (
	maxTokenLen = 16 << 10 // bytes; real vocabularies hold runs of a thousand spaces
	// Ids need not be dense, but the highest may not exceed the number of tokens by much: tables
	// are indexed by them.
	maxIDGap = 1 << 20
)

// vocab maps token texts to ids and back. Ids may have holes.
type vocab struct {
	texts []string // by id
	known []bool   // by id; false for a hole
	ids   map[string]int32
}

func (v *vocab) size() int { return len(v.texts) }

func (v *vocab) has(id int32) bool { return uint32(id) < uint32(len(v.known)) && v.known[id] }

// vocabBuilder collects tokens in the order of a file. The texts share one block of memory.
type vocabBuilder struct {
	block []byte
	ends  []uint32
	ids   []int32
	top   int32
}

func (b *vocabBuilder) add(text []byte, id int32) error {
	if len(text) > maxTokenLen {
		return fmt.Errorf("token %d is longer than %d bytes", id, maxTokenLen)
	}
	if int64(len(b.block)+len(text)) > math.MaxInt32 {
		return fmt.Errorf("more than 2 GiB of tokens")
	}
	b.block = append(b.block, text...)
	b.ends = append(b.ends, uint32(len(b.block)))
	b.ids = append(b.ids, id)
	b.top = max(b.top, id)
	return nil
}

// build makes the vocabulary; no two tokens may have the same id or the same text.
func (b *vocabBuilder) build() (*vocab, error) {
	if len(b.ids) == 0 {
		return nil, fmt.Errorf("the vocabulary is empty")
	}
	if int(b.top) >= 2*len(b.ids)+maxIDGap {
		return nil, fmt.Errorf("token id %d in a vocabulary of %d tokens", b.top, len(b.ids))
	}
	v := &vocab{
		texts: make([]string, b.top+1),
		known: make([]bool, b.top+1),
		ids:   make(map[string]int32, len(b.ids)),
	}
	block := string(b.block)
	from := uint32(0)
	for i, id := range b.ids {
		text := block[from:b.ends[i]]
		from = b.ends[i]
		if v.known[id] {
			return nil, fmt.Errorf("tokens %q and %q have the same id %d", abbreviate(v.texts[id]), abbreviate(text), id)
		}
		v.texts[id], v.known[id] = text, true
		v.ids[text] = id
	}
	if len(v.ids) != len(b.ids) {
		return nil, fmt.Errorf("%d tokens are in the vocabulary twice", len(b.ids)-len(v.ids))
	}
	return v, nil
}

// byteTokens returns the ids of <0x00> … <0xFF>, -1 where there is none.
func (v *vocab) byteTokens() *[256]int32 {
	var ids [256]int32
	for b := range ids {
		id, ok := v.ids[fmt.Sprintf("<0x%02X>", b)]
		if !ok {
			id = -1
		}
		ids[b] = id
	}
	return &ids
}

// byteTokenValue parses <0xXX>.
func byteTokenValue(text string) (byte, bool) {
	hex, ok := strings.CutPrefix(text, "<0x")
	if !ok || len(hex) != 3 || hex[2] != '>' {
		return 0, false
	}
	high, ok1 := hexDigit(hex[0])
	low, ok2 := hexDigit(hex[1])
	return high<<4 | low, ok1 && ok2
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}
