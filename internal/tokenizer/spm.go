package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// SentencePiece's BPE has scores instead of merges: any two neighbours that make a token may merge, the token of highest score first, the
// leftmost among equals. That is bpe with a merge for every way to cut a token in two, ranked by the token's score.

const (
	spaceMark   = "▁"  // stands for a space in SentencePiece's tokens
	maxSPMToken = 1024 // bytes: cutting a token costs the square of its length
)

// newSPM builds the model. scores are by id; mergeable says which tokens merging may make, not so control tokens, say.
func newSPM(v *vocab, scores []float32, mergeable func(id int32) bool) (*bpe, error) {
	m := &bpe{vocab: v, unk: -1, chars: map[rune]int32{}, byteFallback: v.byteTokens(), fuseUnk: true, cache: newPieceCache()}
	ids := make(map[string]int32, v.size())
	count := 0
	for id, text := range v.texts {
		if scores[id] != scores[id] {
			return nil, fmt.Errorf("the score of token %d is not a number", id)
		}
		if !mergeable(int32(id)) {
			continue
		}
		if len(text) > maxSPMToken {
			return nil, fmt.Errorf("token %d is longer than %d bytes", id, maxSPMToken)
		}
		ids[text] = int32(id)
		chars := utf8.RuneCountInString(text)
		if chars == 1 {
			r, _ := utf8.DecodeRuneInString(text)
			m.chars[r] = int32(id)
		}
		count += max(chars-1, 0)
	}
	symbol := func(text string) (int32, bool) {
		r, n := utf8.DecodeRuneInString(text)
		if n != len(text) {
			id, ok := ids[text]
			return id, ok
		}
		id, ok := m.chars[r]
		if !ok { // a character that is no token but may be part of one
			id = int32(v.size() + len(m.extra))
			m.chars[r] = id
			m.extra = append(m.extra, r)
		}
		return id, true
	}

	ranks := slices.Clone(scores)
	slices.SortFunc(ranks, func(a, b float32) int { // descending
		switch {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return 0
	})
	ranks = slices.Compact(ranks)
	rankOf := make(map[float32]int32, len(ranks))
	for rank, score := range ranks {
		rankOf[score] = int32(rank)
	}
	type merge struct{ left, right, id int32 }
	var merges []merge
	for text, id := range ids {
		for i := range text {
			if i == 0 {
				continue
			}
			left, ok := symbol(text[:i])
			if !ok {
				continue
			}
			if right, ok := symbol(text[i:]); ok {
				merges = append(merges, merge{left, right, id})
			}
		}
	}
	m.merges = newMergeTable(len(merges))
	for _, x := range merges {
		m.merges.set(x.left, x.right, rankOf[scores[x.id]], x.id)
	}
	return m, nil
}

// findMark allows cuts before ▁ if no token that merges make has one after another character. Then whole texts, which is what pieces are in
// Llama 2 and Gemma, fall apart into words. No character may vanish, ▁ least of all, or else neighbours would change.
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

// newSPM is the model "llama" of a GGUF file.
func (g *ggufVocab) newSPM() (*bpe, error) {
	if len(g.scores) != g.vocab.size() {
		return nil, fmt.Errorf("tokenizer.ggml.scores has %d entries, tokens %d", len(g.scores), g.vocab.size())
	}
	return newSPM(g.vocab, g.scores, func(id int32) bool {
		switch g.types[id] {
		case typeControl, typeUnknown, typeByte:
			return false
		}
		return true
	})
}
