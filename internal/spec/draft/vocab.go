package draft

import (
	"fmt"
	"math"

	"github.com/foretoken/foretoken/internal/tokenizer"
)

// A Vocab says which of a draft model's tokens are which of the target's. A nil
// Vocab is that of one vocabulary.
type Vocab struct {
	toDraft []int32 // by the target's id, -1: the draft model does not have it
	same    int     // ids below are the same in both
	only    bool    // and no others are known
}

// MapVocab maps the vocabularies of two models whose logits have so many
// entries. Tokenizers may differ in size, by padding and by what one alone has,
// and in their added tokens, which go by their texts. Any other token that both
// have under one id must have the same text.
func MapVocab(target, draft *tokenizer.Tokenizer, targetSize, draftSize int) (*Vocab, error) {
	v := &Vocab{toDraft: make([]int32, targetSize), only: true}
	for i := range v.toDraft {
		to, err := counterpart(target, draft, int32(i))
		if err != nil {
			return nil, err
		}
		if int(to) >= draftSize {
			to = -1
		}
		v.toDraft[i] = to
		switch {
		case v.same == i && int(to) == i:
			v.same++
		case to >= 0:
			v.only = false
		}
	}
	return v, nil
}

// counterpart returns the draft model's id of a token of the target, -1 if it
// has none.
func counterpart(target, draft *tokenizer.Tokenizer, id int32) (int32, error) {
	text, ok := target.Token(id)
	if !ok {
		return -1, nil
	}
	other, known := draft.Token(id)
	switch {
	case known && other == text:
		return id, nil
	case target.IsAdded(id):
		if to, ok := draft.ID(text); ok {
			return to, nil
		}
	case known && !draft.IsAdded(id):
		return -1, fmt.Errorf("the draft model has another vocabulary: token %d is %q, in the target %q", id, other, text)
	}
	return -1, nil
}

// tokens appends the draft model's ids of the target's tokens to dst, as far as
// it knows them.
func (v *Vocab) tokens(dst, tokens []int32) []int32 {
	if v == nil {
		return append(dst, tokens...)
	}
	for _, token := range tokens {
		to := v.token(token)
		if to < 0 {
			break
		}
		dst = append(dst, to)
	}
	return dst
}

// token returns the draft model's id of a token of the target, -1 if it has
// none.
func (v *Vocab) token(token int32) int32 {
	if v == nil {
		return token
	}
	if token < 0 || int(token) >= len(v.toDraft) {
		return -1
	}
	return v.toDraft[token]
}

// logits returns the draft model's logits in the order of the target's tokens,
// -Inf for those that it does not have: in the memory of logits, which is
// overwritten, or in dst.
func (v *Vocab) logits(dst, logits []float32) []float32 {
	if v == nil {
		return logits
	}
	never := float32(math.Inf(-1))
	if v.only && len(v.toDraft) <= len(logits) {
		logits = logits[:len(v.toDraft)]
		for i := v.same; i < len(logits); i++ {
			logits[i] = never
		}
		return logits
	}
	dst = dst[:0]
	for _, to := range v.toDraft {
		x := never
		if to >= 0 {
			x = logits[to]
		}
		dst = append(dst, x)
	}
	return dst
}
