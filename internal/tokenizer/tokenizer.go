// Package tokenizer turns text into token ids and back, exactly as Hugging Face's tokenizers
// library does for the same model.
//
// A Tokenizer is read from a tokenizer.json ([FromJSON]) or from the metadata of a GGUF file
// ([FromGGUF]). Text passes four stages: added tokens are cut out of it, the rest is normalized,
// split into pieces that no token crosses, and each piece is given to the model (byte-pair encoding
// or Unigram). Whatever a file asks for that is not implemented here is refused by name when it is
// read: a slightly wrong split would only show as slightly worse text.
package tokenizer

import (
	"maps"
	"slices"
	"sync"
)

// Tokenizer is immutable and safe for concurrent use.
type Tokenizer struct {
	vocab *vocab // all tokens, added ones included
	kinds []kind // by id
	added map[string]int32

	raw, normalized *addedMatcher // tokens cut out before and after normalization; nil: none
	norm            normalizer    // nil: none
	split           []splitter
	model           model
	post            postProcessor
	dec             *decoder

	bos     int32 // -1: none
	eog     []int32
	special map[string]string // by role
	origin  origin

	bytesOnce sync.Once
	bytes     []byte
	bytesEnd  []uint32 // by id, in bytes
}

// kind has flags of a token.
type kind uint8

const (
	kindAdded   kind = 1 << iota // cut out of the text before the model
	kindSpecial                  // left out by skipSpecial
)

// Options of Encode.
type Options struct {
	// Special adds BOS and EOS as the file says (add_special_tokens). A BOS that the text begins
	// with is not doubled. Chat templates write their own: encode what they give without it.
	Special bool
	// PlainText treats the text of special tokens as plain text, so that what a user wrote cannot
	// inject them.
	PlainText bool
}

// Encode returns the ids of text. Text of added tokens becomes those tokens, but see
// Options.PlainText. Invalid UTF-8 is read as U+FFFD, one for each maximal subpart. The error says
// that the file's normalizer or a pattern of it cannot cope with this text.
func (t *Tokenizer) Encode(text string, o Options) ([]int32, error) {
	ids := make([]int32, 0, len(text)/3+8)
	if o.Special {
		ids = append(ids, t.post.prefix...)
	}
	begin := len(ids)
	e := newEncoder(t, o.PlainText, ids)
	if err := t.raw.cut(validUTF8(text), o.PlainText, e.normalize, e.token); err != nil {
		return nil, err
	}
	ids = e.ids
	if o.Special {
		if t.AddsBOS() && begin < len(ids) && ids[begin] == t.bos {
			ids = slices.Delete(ids, begin, begin+1)
		}
		ids = append(ids, t.post.suffix...)
	}
	return ids, nil
}

// encoder is the state of one Encode.
type encoder struct {
	t     *Tokenizer
	plain bool
	ids   []int32
	split func(piece) error // runs all steps of the split, then the model
}

func newEncoder(t *Tokenizer, plain bool, ids []int32) *encoder {
	e := &encoder{t: t, plain: plain, ids: ids}
	e.split = func(p piece) error {
		e.ids = e.t.model.encode(e.ids, p.text)
		return nil
	}
	for _, step := range slices.Backward(t.split) {
		next := e.split
		e.split = func(p piece) error { return step(p, next) }
	}
	return e
}

func (e *encoder) token(id int32) { e.ids = append(e.ids, id) }

// normalize handles a stretch of raw text between added tokens; it begins at byte from of the
// whole.
func (e *encoder) normalize(text string, from int) error {
	if e.t.norm != nil {
		var err error
		if text, err = e.t.norm(text, normalizeGrowth*len(text)+normalizeSlack); err != nil {
			return err
		}
	}
	return e.t.normalized.cut(text, e.plain, func(text string, at int) error {
		return e.split(piece{text, from+at == 0})
	}, e.token)
}

// Size returns the number of ids: all are below it. Not all of them need be tokens.
func (t *Tokenizer) Size() int { return t.vocab.size() }

// Token returns the text of a token as the vocabulary has it: in the byte alphabet (Ġ), with ▁ for
// spaces.
func (t *Tokenizer) Token(id int32) (string, bool) {
	if !t.vocab.has(id) {
		return "", false
	}
	return t.vocab.texts[id], true
}

// ID returns the id of the token with the given text in the vocabulary. An added token comes before
// another one of the same text.
func (t *Tokenizer) ID(token string) (int32, bool) {
	if id, ok := t.added[token]; ok {
		return id, true
	}
	id, ok := t.vocab.ids[token]
	return id, ok
}

// Bytes returns the bytes that a token contributes to decoded text, other than at the start of a
// sequence: " the", "\n", half a character. Special tokens have their text. The result must not be
// changed.
func (t *Tokenizer) Bytes(id int32) []byte {
	if !t.vocab.has(id) {
		return nil
	}
	t.bytesOnce.Do(t.buildBytes)
	from := uint32(0)
	if id > 0 {
		from = t.bytesEnd[id-1]
	}
	end := t.bytesEnd[id]
	return t.bytes[from:end:end]
}

func (t *Tokenizer) buildBytes() {
	ends := make([]uint32, t.Size())
	var all []byte
	for id, text := range t.vocab.texts {
		if t.vocab.known[id] {
			all = t.dec.contribution(all, text, t.kinds[id]&kindAdded != 0, false)
		}
		ends[id] = uint32(len(all))
	}
	t.bytes, t.bytesEnd = all, ends
}

// IsSpecial reports whether skipSpecial leaves the token out.
func (t *Tokenizer) IsSpecial(id int32) bool {
	return t.vocab.has(id) && t.kinds[id]&kindSpecial != 0
}

// IsAdded reports whether the token is cut out of the text before the model sees it.
func (t *Tokenizer) IsAdded(id int32) bool {
	return t.vocab.has(id) && t.kinds[id]&kindAdded != 0
}

// BOS returns the token that begins a sequence.
func (t *Tokenizer) BOS() (int32, bool) { return t.bos, t.bos >= 0 }

// AddsBOS reports whether Encode with Options.Special puts BOS first.
func (t *Tokenizer) AddsBOS() bool {
	return t.bos >= 0 && len(t.post.prefix) > 0 && t.post.prefix[0] == t.bos
}

// EOG returns the tokens that end a generation, as far as the tokenizer's file tells: the end of
// text and those of turns and messages, in ascending order. A generation_config.json may name more.
func (t *Tokenizer) EOG() []int32 { return slices.Clone(t.eog) }

// SpecialTokens returns the texts of special tokens by role ("bos_token", "eos_token", "pad_token",
// "unk_token", …), as chat templates use them.
func (t *Tokenizer) SpecialTokens() map[string]string { return maps.Clone(t.special) }
