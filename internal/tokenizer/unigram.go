package tokenizer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// unigram picks the segmentation of a piece with the highest sum of scores (Viterbi). Among equals,
// the one found first stays: that with the earlier start of its last token.
type unigram struct {
	vocab        *vocab
	scores       []float64 // by id
	unk          int32     // -1: none
	unkScore     float64   // of a character that no one-character token covers
	byteFallback *[256]int32
	index        prefixIndex
	keyIDs       []int32 // by index.keys
}

const unkPenalty = 10 // below the lowest score

// finish builds the index of what text may be segmented into: all tokens but the special ones,
// which never come from plain text.
func (m *unigram) finish(special func(text string) bool) {
	keys := make([]string, 0, len(m.vocab.ids))
	for text := range m.vocab.ids {
		if text != "" && !special(text) {
			keys = append(keys, text)
		}
	}
	m.index = newPrefixIndex(keys)
	lowest := math.Inf(1)
	m.keyIDs = make([]int32, len(m.index.keys))
	for i, key := range m.index.keys {
		m.keyIDs[i] = m.vocab.ids[key]
	}
	for _, score := range m.scores {
		lowest = min(lowest, score)
	}
	m.unkScore = lowest - unkPenalty
}

// unigramNode is the best way to reach a byte position: by the token id that starts at from. An id
// of -1 is an unknown character.
type unigramNode struct {
	score float64
	from  int32
	id    int32
}

func (m *unigram) encode(dst []int32, text string) []int32 {
	nodes := make([]unigramNode, len(text)+1)
	for i := range nodes {
		nodes[i].from = -1
	}
	reach := func(from, to int, id int32, score float64) {
		if n := &nodes[to]; n.from < 0 || score > n.score {
			*n = unigramNode{score, int32(from), id}
		}
	}
	for at := 0; at < len(text); {
		_, size := utf8.DecodeRuneInString(text[at:])
		score, single := nodes[at].score, false
		for k := range m.index.prefixesOf(text[at:]) {
			n := len(m.index.keys[k])
			id := m.keyIDs[k]
			reach(at, at+n, id, score+m.scores[id])
			single = single || n == size
		}
		if !single {
			reach(at, at+size, -1, score+m.unkScore)
		}
		at += size
	}

	// Walk back, joining neighbouring unknown characters, then turn around.
	type span struct {
		from, to int
		id       int32
	}
	var path []span
	for at := len(text); at > 0; {
		n := nodes[at]
		if last := len(path) - 1; n.id < 0 && last >= 0 && path[last].id < 0 {
			path[last].from = int(n.from)
		} else {
			path = append(path, span{int(n.from), at, n.id})
		}
		at = int(n.from)
	}
	for _, p := range slices.Backward(path) {
		if p.id >= 0 {
			dst = append(dst, p.id)
		} else {
			dst = m.unknown(dst, text[p.from:p.to])
		}
	}
	return dst
}

func (m *unigram) unknown(dst []int32, text string) []int32 {
	if ids, ok := appendByteTokens(dst, text, m.byteFallback); ok {
		return ids
	}
	if m.unk >= 0 {
		return append(dst, m.unk)
	}
	return dst
}

// parseUnigram reads a vocabulary of [text, score] entries; ids are their places.
func parseUnigram(f *modelFields, raw []byte, special func(string) bool) (model, *vocab, error) {
	s := jsonScanner{buf: raw}
	var b vocabBuilder
	var scores []float64
	err := s.array(func() error {
		field := 0
		return s.array(func() error {
			field++
			switch field {
			case 1:
				text, err := s.str()
				if err != nil {
					return err
				}
				return b.add(text, int32(len(scores)))
			case 2:
				score, err := s.float()
				scores = append(scores, score)
				return err
			}
			return errors.New("an entry is not [text, score]")
		})
	})
	if err == nil && len(scores) != len(b.ids) {
		err = errors.New("an entry is not [text, score]")
	}
	var v *vocab
	if err == nil {
		v, err = b.build()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("vocab: %w", err)
	}
	m := &unigram{vocab: v, scores: scores, unk: -1}
	if f.unkID != nil {
		if !v.has(*f.unkID) {
			return nil, nil, fmt.Errorf("unk_id %d is not in the vocabulary", *f.unkID)
		}
		m.unk = *f.unkID
	}
	if f.byteFallback {
		m.byteFallback = v.byteTokens()
	}
	m.finish(special)
	return m, v, nil
}
