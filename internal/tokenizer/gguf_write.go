package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// origin is what GGUF needs to know of the file a tokenizer was read from.
type origin struct {
	json       bool
	normalizer []component
	split      []component
	tokens     []addedToken
}

// GGUF returns the metadata (tokenizer.ggml.*) that describes the tokenizer in a GGUF file; token
// ids are uint32. It is for a Tokenizer that FromJSON made. The error says what GGUF cannot
// express: a split that has no name there, say. Such a tokenizer can only travel as a whole, as the
// text of its tokenizer.json under tokenizer.huggingface.json, which FromGGUF prefers to anything
// else.
func (t *Tokenizer) GGUF() (map[string]any, error) {
	m, ok := t.model.(*bpe)
	if !t.origin.json || !ok {
		return nil, errors.New("only a byte-pair encoding read from a tokenizer.json can be written as GGUF metadata")
	}
	for _, tok := range t.origin.tokens {
		if tok.lstrip || tok.rstrip || tok.singleWord {
			return nil, fmt.Errorf("added token %q has lstrip, rstrip or single_word, which GGUF does not know", abbreviate(tok.content))
		}
	}
	if m.prefix != "" || m.suffix != "" {
		return nil, errors.New("continuing_subword_prefix and end_of_word_suffix, which GGUF does not know")
	}
	meta := map[string]any{}
	var err error
	if m.bytes != nil {
		err = t.writeBPE(m, meta)
	} else {
		err = t.writeSPM(m, meta)
	}
	if err != nil {
		return nil, err
	}
	return meta, t.writeCommon(meta)
}

// writeCommon adds the tokens, their types and roles.
func (t *Tokenizer) writeCommon(meta map[string]any) error {
	texts, types := make([]string, t.Size()), make([]int32, t.Size())
	for id := range texts {
		texts[id], types[id] = t.ggufToken(int32(id))
	}
	meta[ggml+"tokens"], meta[ggml+"token_type"] = texts, types
	for name, key := range map[string]string{
		"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding", "sep_token": "seperator", "cls_token": "cls",
		"mask_token": "mask",
	} {
		if id, ok := t.ID(t.special[name]); ok {
			meta[ggml+key+"_token_id"] = uint32(id)
		}
	}
	if id := t.unknown(); id >= 0 {
		meta[ggml+"unknown_token_id"] = uint32(id)
	}
	if t.bos >= 0 {
		meta[ggml+"bos_token_id"] = uint32(t.bos)
	}
	meta[ggml+"add_bos_token"] = t.AddsBOS()
	meta[ggml+"add_eos_token"] = len(t.post.suffix) > 0
	if len(t.post.prefix) > 1 || len(t.post.prefix) == 1 && !t.AddsBOS() {
		return errors.New("the tokens put before a text are not BOS alone")
	}
	if n := len(t.post.suffix); n > 1 || n == 1 && meta[ggml+"eos_token_id"] != uint32(t.post.suffix[0]) {
		return errors.New("the tokens put after a text are not EOS alone")
	}
	return nil
}

// unknown is the token for characters that no other covers, -1 if there is none.
func (t *Tokenizer) unknown() int32 {
	if m, ok := t.model.(*bpe); ok && m.unk >= 0 {
		return m.unk
	}
	if id, ok := t.ID(t.special["unk_token"]); ok && t.kinds[id]&kindSpecial != 0 {
		return id
	}
	return -1
}

func (t *Tokenizer) ggufToken(id int32) (string, int32) {
	text := t.vocab.texts[id]
	_, isByte := byteTokenValue(text)
	switch {
	case !t.vocab.known[id]:
		return fmt.Sprintf("[PAD%d]", id), typeUnused
	case id == t.unknown():
		return text, typeUnknown
	case t.kinds[id]&kindSpecial != 0:
		return text, typeControl
	case t.kinds[id]&kindAdded != 0:
		return text, typeUserDefined
	case isByte && t.dec.byteToken:
		return text, typeByte
	}
	return text, typeNormal
}

// writeBPE writes the model gpt2, if a pre-tokenizer with a name splits as the file does.
func (t *Tokenizer) writeBPE(m *bpe, meta map[string]any) error {
	if m.unk >= 0 || m.byteFallback != nil {
		return errors.New("a byte-level model with unk_token or byte_fallback, which GGUF does not know")
	}
	if !t.dec.alphabet || len(t.dec.rewrites) > 0 || t.dec.stripMax > 0 {
		return errors.New("the decoder is not ByteLevel alone")
	}
	name, err := t.preName(m)
	if err != nil {
		return err
	}
	meta[ggml+"model"], meta[ggml+"pre"] = "gpt2", name
	merges := m.merges.byRank()
	texts := make([]string, len(merges))
	for i, x := range merges {
		texts[i] = m.vocab.texts[x.left] + " " + m.vocab.texts[x.right]
	}
	meta[ggml+"merges"] = texts
	return nil
}

// preName finds the pre-tokenizer with the patterns, normalization and treatment of whole tokens of
// the file.
func (t *Tokenizer) preName(m *bpe) (string, error) {
	composed := false
	for _, c := range t.origin.normalizer {
		if c.Type != "NFC" {
			return "", fmt.Errorf("normalizer %s, which GGUF does not know", c.Type)
		}
		composed = true
	}
	want, err := splitPatterns(t.origin.split)
	if err != nil {
		return "", err
	}
	whole := m.whole != nil
	for _, e := range preTokenizers {
		if e.flags&(rawText|dropGaps) != 0 || (e.flags&nfcFirst != 0) != composed || !samePatterns(e.patterns, want) {
			continue
		}
		if (e.flags&wholeTokens != 0) == whole || !m.wholeMatters() {
			name, _, _ := strings.Cut(e.names, " ")
			return name, nil
		}
	}
	return "", fmt.Errorf("no tokenizer.ggml.pre name stands for this normalizer, ignore_merges and the patterns %.200q", want)
}

// splitPatterns returns the patterns of a pre-tokenizer that splits by patterns only, translated,
// before its last step ByteLevel.
func splitPatterns(steps []component) ([]string, error) {
	var patterns []string
	for i, c := range steps {
		pattern := ""
		switch {
		case c.Type == "Split" && c.Pattern.Regex != nil && c.Behavior == "Isolated" && !c.Invert:
			pattern = *c.Pattern.Regex
		case c.Type == "Digits" && c.Individual:
			pattern = `\p{N}`
		case c.Type == "Digits":
			pattern = `\p{N}+`
		case c.Type == "ByteLevel" && i == len(steps)-1 && !orTrue(c.PrefixSpace):
			if !orTrue(c.UseRegex) {
				return patterns, nil
			}
			pattern = gpt2Pattern
		default:
			return nil, fmt.Errorf("pre-tokenizer %s with these settings, which GGUF does not know", c.Type)
		}
		translated, err := translatePattern(pattern)
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, translated)
	}
	return patterns, nil
}

func samePatterns(patterns, translated []string) bool {
	return slices.EqualFunc(patterns, translated, func(p, want string) bool {
		got, err := translatePattern(p)
		return err == nil && got == want
	})
}

// wholeMatters reports whether some token is not what the merges make of its text.
func (m *bpe) wholeMatters() bool {
	var ids []int32
	for text, id := range m.vocab.ids {
		raw := appendFromByteAlphabet(nil, text)
		ids = m.encodeMerged(ids[:0], string(raw))
		if !m.specials[text] && (len(ids) != 1 || ids[0] != id) {
			return true
		}
	}
	return false
}

// writeSPM writes the model llama, if the merges are those that scores of the tokens would give.
func (t *Tokenizer) writeSPM(m *bpe, meta map[string]any) error {
	prefix, err := t.spmNormalizer()
	if err != nil {
		return err
	}
	if m.byteFallback == nil || slices.Contains(m.byteFallback[:], -1) {
		return errors.New("a model that is neither byte-level nor has all byte tokens, which GGUF does not know")
	}
	if !t.dec.byteToken || t.dec.stripMax > 1 || (t.dec.stripMax == 1) != prefix {
		return errors.New("the decoder is not that of a SentencePiece model")
	}
	scores, err := m.scores(t)
	if err != nil {
		return err
	}
	meta[ggml+"model"], meta[ggml+"pre"] = "llama", "default"
	meta[ggml+"scores"], meta[ggml+"add_space_prefix"] = scores, prefix
	return nil
}

// spmNormalizer checks that spaces become ▁, in the whole text at once, and reports whether one is
// put in front.
func (t *Tokenizer) spmNormalizer() (prefix bool, err error) {
	steps := t.origin.normalizer
	if len(steps) > 0 && steps[0].Type == "Prepend" && steps[0].Prepend == spaceMark {
		prefix = true
		steps = steps[1:]
	}
	isReplace := len(steps) == 1 && steps[0].Type == "Replace" && steps[0].Content == spaceMark && steps[0].Pattern.String != nil &&
		*steps[0].Pattern.String == " "
	noSplit := !slices.ContainsFunc(t.origin.split, func(c component) bool { // a split at spaces finds none
		return c.Type != "Split" || c.Pattern.String == nil || *c.Pattern.String != " "
	})
	if !isReplace || !noSplit {
		return false, errors.New("the normalizer and pre-tokenizer are not those of a SentencePiece model as GGUF knows it")
	}
	return prefix, nil
}

// scores returns scores that order merging as the ranks do: minus the rank of a token's first
// merge. It checks that they give the same merges.
func (m *bpe) scores(t *Tokenizer) ([]float32, error) {
	scores := make([]float32, t.Size())
	merges := m.merges.byRank()
	made := make([]bool, t.Size())
	order := float32(0)
	last := int32(-1)
	for _, x := range merges {
		if x.id == last {
			continue
		}
		if made[x.id] {
			return nil, fmt.Errorf("the merges that make token %d are not next to each other: they do not come from scores", x.id)
		}
		order--
		scores[x.id], made[x.id], last = order, true, x.id
	}
	spm, err := newSPM(m.vocab, scores, func(id int32) bool {
		_, typ := t.ggufToken(id)
		return typ == typeNormal || typ == typeUserDefined
	})
	if err != nil {
		return nil, err
	}
	if spm.merges.count != len(merges) {
		return nil, fmt.Errorf("%d merges, but the tokens can be made in %d ways: the merges do not come from scores",
			len(merges), spm.merges.count)
	}
	for _, x := range merges {
		if _, id := spm.merges.get(x.left, x.right); id != x.id {
			return nil, fmt.Errorf("the merge of tokens %d and %d does not come from scores", x.left, x.right)
		}
	}
	return scores, nil
}

// byRank returns the merges in order.
func (t *mergeTable) byRank() []mergeSlot {
	list := slices.DeleteFunc(slices.Clone(t.slots), func(s mergeSlot) bool { return s.left < 0 })
	slices.SortFunc(list, func(a, b mergeSlot) int { return int(a.rank) - int(b.rank) })
	return list
}
