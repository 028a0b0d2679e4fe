package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// modelFields are the small fields of the model object, of all types.
type modelFields struct {
	kind           string
	dropout        *float64
	unkToken       *string
	unkID          *int32
	prefix, suffix *string
	fuseUnk        bool
	byteFallback   bool
	ignoreMerges   bool
}

// parseModel reads the model of a tokenizer.json. byteLevel says that pieces arrive as bytes, not
// in the byte alphabet.
func parseModel(raw []byte, byteLevel bool, special func(text string) bool) (model, *vocab, error) {
	fields, err := objectFields(raw)
	if err != nil {
		return nil, nil, err
	}
	vocabRaw, mergesRaw := fields["vocab"], fields["merges"]
	var f modelFields
	for name, dst := range map[string]any{
		"type": &f.kind, "dropout": &f.dropout, "unk_token": &f.unkToken, "unk_id": &f.unkID, "continuing_subword_prefix": &f.prefix,
		"end_of_word_suffix": &f.suffix, "fuse_unk": &f.fuseUnk, "byte_fallback": &f.byteFallback, "ignore_merges": &f.ignoreMerges,
	} {
		if value, ok := fields[name]; ok {
			if err := json.Unmarshal(value, dst); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if len(vocabRaw) == 0 {
		return nil, nil, errors.New("vocab is missing")
	}
	if f.kind == "" { // old files
		switch {
		case mergesRaw != nil:
			f.kind = "BPE"
		case vocabRaw[0] == '[':
			f.kind = "Unigram"
		default:
			f.kind = "WordPiece"
		}
	}
	switch f.kind {
	case "BPE":
		return parseBPE(&f, vocabRaw, mergesRaw, byteLevel, special)
	case "Unigram":
		if byteLevel {
			return nil, nil, errors.New("Unigram with a ByteLevel pre-tokenizer is not supported")
		}
		return parseUnigram(&f, vocabRaw, special)
	}
	return nil, nil, fmt.Errorf("type %q is not supported", abbreviate(f.kind))
}

func parseBPE(f *modelFields, vocabRaw, mergesRaw []byte, byteLevel bool, special func(string) bool) (model, *vocab, error) {
	if f.dropout != nil && *f.dropout != 0 {
		return nil, nil, errors.New("dropout is for training and not supported")
	}
	s := jsonScanner{buf: vocabRaw}
	var b vocabBuilder
	err := s.object(func(key []byte) error {
		n := len(b.block)
		b.block = append(b.block, key...)
		id, err := s.id()
		if err != nil {
			return err
		}
		key, b.block = b.block[n:], b.block[:n]
		return b.add(key, id)
	})
	var v *vocab
	if err == nil {
		v, err = b.build()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("vocab: %w", err)
	}

	m := &bpe{vocab: v, unk: -1, fuseUnk: f.fuseUnk, cache: newPieceCache()}
	if f.prefix != nil {
		m.prefix = *f.prefix
	}
	if f.suffix != nil {
		m.suffix = *f.suffix
	}
	if f.unkToken != nil {
		id, ok := v.ids[*f.unkToken]
		if !ok {
			return nil, nil, fmt.Errorf("unk_token %q is not in the vocabulary", abbreviate(*f.unkToken))
		}
		m.unk = id
	}
	if f.byteFallback {
		m.byteFallback = v.byteTokens()
	}
	if f.ignoreMerges {
		m.whole = func(string) bool { return true }
	}
	if err := m.parseMerges(mergesRaw, special); err != nil {
		return nil, nil, fmt.Errorf("merges: %w", err)
	}
	m.finish(byteLevel, special)
	return m, v, nil
}

// parseMerges reads "left right" strings or ["left", "right"] pairs. Merges that would make a
// special token are left out: its text never reaches the model, but where it must be read as plain
// text.
func (m *bpe) parseMerges(raw []byte, special func(string) bool) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	type merge struct{ left, right, id int32 }
	var list []merge
	s := jsonScanner{buf: raw}
	var pair []byte // left and right one after the other
	err := s.array(func() error {
		pair = pair[:0]
		var leftLen int
		if s.peek() == '[' {
			parts := 0
			err := s.array(func() error {
				part, err := s.str()
				if parts++; parts == 1 {
					leftLen = len(part)
				}
				pair = append(pair, part...)
				return err
			})
			if err != nil {
				return err
			}
			if parts != 2 {
				return fmt.Errorf("merge %d is not a pair", len(list))
			}
		} else {
			text, err := s.str()
			if err != nil {
				return err
			}
			space := slices.Index(text, ' ')
			if space < 0 || slices.Contains(text[space+1:], ' ') {
				return fmt.Errorf("merge %d is not two parts with a space between", len(list))
			}
			leftLen = space
			pair = append(append(pair, text[:space]...), text[space+1:]...)
		}
		left, right, id, err := m.mergeIDs(pair, leftLen)
		if err != nil {
			return fmt.Errorf("merge %d: %w", len(list), err)
		}
		list = append(list, merge{left, right, id})
		return nil
	})
	if err != nil {
		return err
	}
	m.merges = newMergeTable(len(list))
	for rank, x := range list {
		if special == nil || !special(m.vocab.texts[x.id]) {
			m.merges.set(x.left, x.right, int32(rank), x.id)
		}
	}
	return nil
}

// mergeIDs looks up both parts of pair and what they make together.
func (m *bpe) mergeIDs(pair []byte, leftLen int) (left, right, id int32, err error) {
	left, ok := m.vocab.ids[string(pair[:leftLen])]
	if !ok {
		return 0, 0, 0, fmt.Errorf("%q is not in the vocabulary", abbreviate(string(pair[:leftLen])))
	}
	right, ok = m.vocab.ids[string(pair[leftLen:])]
	if !ok {
		return 0, 0, 0, fmt.Errorf("%q is not in the vocabulary", abbreviate(string(pair[leftLen:])))
	}
	if m.prefix == "" || !strings.HasPrefix(string(pair[leftLen:]), m.prefix) {
		id, ok = m.vocab.ids[string(pair)]
	} else {
		pair = slices.Delete(pair, leftLen, leftLen+len(m.prefix))
		id, ok = m.vocab.ids[string(pair)]
	}
	if !ok {
		return 0, 0, 0, fmt.Errorf("its result %q is not in the vocabulary", abbreviate(string(pair)))
	}
	return left, right, id, nil
}

// finish derives what encoding needs from the vocabulary and the merges.
func (m *bpe) finish(byteLevel bool, special func(string) bool) {
	if byteLevel {
		m.bytes = new([256]int32)
		for b, c := range alphabet {
			id, ok := m.vocab.ids[string(c)]
			if !ok {
				id = -1
			}
			m.bytes[b] = id
		}
	} else if m.prefix == "" && m.suffix == "" {
		m.indexChars()
		m.findMark()
	}
	if m.whole != nil && special != nil {
		m.specials = map[string]bool{}
		for text := range m.vocab.ids {
			if special(text) {
				m.specials[text] = true
			}
		}
	}
}
