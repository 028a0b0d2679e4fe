package tokenizer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// SentencePiece's BPE has scores instead of merges: any two neighbours that make a token may merge,
// the token of highest score first, the leftmost among equals. That is bpe with a merge for every
// way to cut a token in two, ranked by the token's score.

const (
	spaceMark   = "▁"  // stands for a space in SentencePiece's tokens
	maxSPMToken = 1024 // bytes: cutting a token costs the square of its length
)

// newSPM builds the model. scores are by id; mergeable says which tokens merging may make: not
// control tokens, say.
func newSPM(v *vocab, scores []float32, mergeable func(id int32) bool) (*bpe, error) {
	m := &bpe{vocab: v, unk: -1, chars: map[rune]int32{}, byteFallback: v.byteTokens(), fuseUnk: true, cache: newPieceCache()}
	ids := make(map[string]int32, v.size())
	for id, text := range v.texts {
		if !mergeable(int32(id)) {
			continue
		}
		if len(text) > maxSPMToken {
			return nil, fmt.Errorf("token %d is longer than %d bytes", id, maxSPMToken)
		}
		ids[text] = int32(id)
		if r, n := utf8.DecodeRuneInString(text); n == len(text) {
			m.chars[r] = int32(id)
		}
	}
	rankOf, err := scoreRanks(scores)
	if err != nil {
		return nil, err
	}
	type merge struct{ left, right, id int32 }
	var merges []merge
	for id, text := range v.texts {
		if made, ok := ids[text]; !ok || made != int32(id) {
			continue
		}
		for i := range text {
			if i == 0 {
				continue
			}
			left, ok := m.spmSymbol(text[:i], ids)
			if !ok {
				continue
			}
			if right, ok := m.spmSymbol(text[i:], ids); ok {
				merges = append(merges, merge{left, right, int32(id)})
			}
		}
	}
	m.merges = newMergeTable(len(merges))
	for _, x := range merges {
		m.merges.set(x.left, x.right, rankOf[scores[x.id]], x.id)
	}
	return m, nil
}

// spmSymbol returns the symbol for a part of a token: a token or a character, which gets an id of
// its own if it is no token.
func (m *bpe) spmSymbol(text string, ids map[string]int32) (int32, bool) {
	r, n := utf8.DecodeRuneInString(text)
	if n != len(text) {
		id, ok := ids[text]
		return id, ok
	}
	id, ok := m.chars[r]
	if !ok {
		id = int32(m.vocab.size() + len(m.extra))
		m.chars[r] = id
		m.extra = append(m.extra, r)
	}
	return id, true
}

// scoreRanks numbers the different scores from the highest down.
func scoreRanks(scores []float32) (map[float32]int32, error) {
	order := slices.Clone(scores)
	slices.SortFunc(order, func(a, b float32) int { return cmp.Compare(b, a) }) // puts NaN last
	ranks := make(map[float32]int32, len(order))
	for _, score := range slices.Compact(order) {
		if score != score {
			return nil, errors.New("a score is not a number")
		}
		ranks[score] = int32(len(ranks))
	}
	return ranks, nil
}

// findMark allows cuts before ▁ if no token that merges make has one after another character. Then
// whole texts, which is what pieces are in Llama 2 and Gemma, fall apart into words. No character
// may vanish, ▁ least of all, or else neighbours would change.
func (m *bpe) findMark() {
	_, isSymbol := m.chars['▁']
	vanish := m.unk < 0 && (m.byteFallback == nil || slices.Contains(m.byteFallback[:], -1))
	if !isSymbol || vanish {
		return
	}
	for _, s := range m.merges.slots {
		if s.left < 0 {
			continue
		}
		text := m.vocab.texts[s.id]
		if i := strings.LastIndex(text, spaceMark); i > 0 && strings.Trim(text[:i], spaceMark) != "" {
			return
		}
	}
	m.mark = spaceMark
}
