package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Metadata is what FromGGUF asks a GGUF file for. A method reports false if the key is absent or
// has another type.
type Metadata interface {
	String(key string) (string, bool)
	Int(key string) (int64, bool)
	Bool(key string) (bool, bool)
	Strings(key string) ([]string, bool)
	Floats(key string) ([]float32, bool)
	Ints(key string) ([]int32, bool)
	Has(key string) bool // of any type
}

// Token types of tokenizer.ggml.token_type.
const (
	typeNormal = iota + 1
	typeUnknown
	typeControl
	typeUserDefined
	typeUnused
	typeByte
)

const ggml = "tokenizer.ggml."

// FromGGUF reads the tokenizer of a GGUF file from its metadata (tokenizer.ggml.*). A
// tokenizer.json in it (tokenizer.huggingface.json) wins.
func FromGGUF(m Metadata) (*Tokenizer, error) {
	if err := checkTypes(m); err != nil {
		return nil, err
	}
	if text, ok := m.String("tokenizer.huggingface.json"); ok {
		t, err := fromJSON([]byte(text), nil)
		if err != nil {
			return nil, fmt.Errorf("tokenizer.huggingface.json: %w", err)
		}
		g := &ggufVocab{meta: m, vocab: t.vocab, bos: -1, eos: -1, unk: -1}
		if err := g.applyRoles(t); err != nil {
			return nil, err
		}
		return t, nil
	}
	name, ok := m.String(ggml + "model")
	if !ok {
		return nil, errors.New(ggml + "model is missing")
	}
	g, err := readGGUFVocab(m)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{bos: -1}
	if err := g.addTokens(t); err != nil {
		return nil, err
	}
	switch name {
	case "llama":
		err = g.buildSPM(t)
	case "gpt2", "gemma4", "whitespace":
		err = g.buildBPE(t, name)
	default:
		err = fmt.Errorf("%smodel %q is not supported", ggml, abbreviate(name))
	}
	if err == nil {
		err = g.applyRoles(t)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// ggufVocab is the vocabulary of a GGUF file.
type ggufVocab struct {
	meta   Metadata
	vocab  *vocab
	types  []int32 // by id
	scores []float32

	bos, eos, unk int64 // defaults, -1: none
	addBOS        bool
	addSEP        bool
}

func readGGUFVocab(m Metadata) (*ggufVocab, error) {
	tokens, ok := m.Strings(ggml + "tokens")
	if !ok || len(tokens) == 0 {
		return nil, errors.New(ggml + "tokens is missing or empty")
	}
	g := &ggufVocab{meta: m, bos: -1, eos: -1, unk: -1}
	g.scores, _ = m.Floats(ggml + "scores")
	if types, ok := m.Ints(ggml + "token_type"); ok {
		g.types = slices.Clone(types)
	} else {
		g.types = slices.Repeat([]int32{typeNormal}, len(tokens))
	}
	if len(g.types) != len(tokens) {
		return nil, fmt.Errorf("%stoken_type has %d entries, tokens %d", ggml, len(g.types), len(tokens))
	}
	v := &vocab{texts: make([]string, len(tokens)), known: make([]bool, len(tokens)), ids: make(map[string]int32, len(tokens))}
	for id, text := range tokens {
		switch {
		case len(text) > maxTokenLen:
			return nil, fmt.Errorf("%stokens: token %d is longer than %d bytes", ggml, id, maxTokenLen)
		case g.types[id] < typeNormal || g.types[id] > typeByte:
			return nil, fmt.Errorf("%stoken_type: token %d has the unknown type %d", ggml, id, g.types[id])
		case text == "":
			text = fmt.Sprintf("[EMPTY_%d]", id)
		}
		text = validUTF8(text)
		v.texts[id], v.known[id] = text, true
		if g.types[id] == typeNormal && slices.Contains(controlEnds, text) { // conversions have got these wrong
			g.types[id] = typeControl
		}
		v.ids[text] = int32(id)
	}
	g.vocab = v
	return g, nil
}

// addTokens enters the tokens that are cut out of the text: control, unknown and user-defined ones.
func (g *ggufVocab) addTokens(t *Tokenizer) error {
	var tokens []addedToken
	rstrip, lstrip := g.isPhi3(), g.maskToken()
	for id, text := range g.vocab.texts {
		if g.vocab.ids[text] != int32(id) { // a later token has the same text
			continue
		}
		tok := addedToken{id: int32(id), content: text, lstrip: text == lstrip}
		switch g.types[id] {
		case typeControl, typeUnknown:
			tok.special = true
			tok.rstrip = rstrip && text != "<unk>" && text != "<s>" && text != "<|endoftext|>"
		case typeUserDefined:
			tok.rstrip = rstrip && text == "</s>"
		default:
			continue
		}
		tokens = append(tokens, tok)
	}
	t.vocab = g.vocab
	if err := t.addTokens(tokens); err != nil {
		return fmt.Errorf("%stokens: %w", ggml, err)
	}
	for id, typ := range g.types {
		switch typ {
		case typeControl, typeUnknown:
			t.kinds[id] |= kindAdded | kindSpecial
		case typeUserDefined:
			t.kinds[id] |= kindAdded
		}
	}
	t.raw = newAddedMatcher(tokens)
	return nil
}

// isPhi3: the special tokens of Phi-3 swallow white space to their right, which GGUF has no key
// for.
func (g *ggufVocab) isPhi3() bool {
	name, _ := g.meta.String("general.name")
	name = strings.ToLower(name)
	return strings.Contains(name, "phi-3") || strings.Contains(name, "phi3")
}

// maskToken is the token that swallows white space to its left, which GGUF has no key for either.
func (g *ggufVocab) maskToken() string {
	switch pre, _ := g.meta.String(ggml + "pre"); pre {
	case "jina-v2-de", "jina-v2-es", "jina-v2-code":
		return "<mask>"
	case "modern-bert":
		return "[MASK]"
	}
	return ""
}

func (g *ggufVocab) flag(key string, byDefault bool) bool {
	if v, ok := g.meta.Bool(ggml + key); ok {
		return v
	}
	return byDefault
}

func (g *ggufVocab) buildSPM(t *Tokenizer) error {
	g.bos, g.eos, g.unk, g.addBOS = 1, 2, 0, true
	if len(g.scores) != g.vocab.size() {
		return fmt.Errorf("%sscores has %d entries, tokens %d", ggml, len(g.scores), g.vocab.size())
	}
	m, err := newSPM(g.vocab, g.scores, func(id int32) bool {
		return g.types[id] != typeControl && g.types[id] != typeUnknown && g.types[id] != typeByte
	})
	if err != nil {
		return fmt.Errorf("%stokens: %w", ggml, err)
	}
	if m.unk, err = g.id("unknown_token_id", g.unk); err != nil {
		return err
	}
	m.findMark()
	t.model = m
	t.dec = &decoder{byteToken: true, rawAdded: true, rewrites: []func(string) string{unmarkSpaces}}
	t.norm = replaceLiteral(" ", spaceMark)
	if g.flag("add_space_prefix", true) {
		t.norm = chain(prepend(" "), t.norm)
		t.dec.strip, t.dec.stripMax = ' ', 1
	}
	return nil
}

func unmarkSpaces(s string) string { return strings.ReplaceAll(s, spaceMark, " ") }

func (g *ggufVocab) buildBPE(t *Tokenizer, name string) error {
	pre, ok := g.meta.String(ggml + "pre")
	if !ok {
		switch name {
		case "gemma4", "whitespace":
			pre = name
		default:
			return fmt.Errorf("%spre is missing: convert the file again, old conversions do not say how their text is split", ggml)
		}
	}
	flags, patterns, ok := preTokenizer(pre)
	if !ok {
		return fmt.Errorf("%spre %q is not supported", ggml, abbreviate(pre))
	}
	g.addBOS = flags&addBOS != 0 || name == "gemma4"
	g.addSEP = flags&addSEP != 0
	for _, p := range patterns {
		var m matcher = groupDigits{}
		if p != digitGroups {
			var err error
			if m, err = newMatcher(p); err != nil {
				return fmt.Errorf("%spre %q: %w", ggml, pre, err)
			}
		}
		if flags&dropGaps != 0 {
			t.split = append(t.split, splitBy(m, removed, true))
		} else {
			t.split = append(t.split, isolate(m))
		}
	}
	var norms []normalizer
	if flags&nfcFirst != 0 {
		norms = append(norms, plain(nfc.normalize))
	}
	if flags&dropGaps != 0 && g.flag("normalizer.lowercase", false) {
		norms = append(norms, plain(lowercase))
	}
	t.dec = &decoder{alphabet: true, rawAdded: true}
	if flags&rawText != 0 {
		t.dec = &decoder{byteToken: true, rawAdded: true}
	}
	if flags&markSpaces != 0 {
		norms = append(norms, replaceLiteral(" ", spaceMark))
		t.dec.rewrites = append(t.dec.rewrites, unmarkSpaces)
	}
	t.norm = chain(norms...)
	var err error
	t.model, err = g.newBPE(flags)
	return err
}

func preTokenizer(name string) (preFlags, []string, bool) {
	for _, e := range preTokenizers {
		for n := range strings.FieldsSeq(e.names) {
			if n == name {
				return e.flags, e.patterns, true
			}
		}
	}
	return 0, nil, false
}

func (g *ggufVocab) newBPE(flags preFlags) (*bpe, error) {
	m := &bpe{vocab: g.vocab, unk: -1, cache: newPieceCache()}
	var err error
	if flags&rawText != 0 {
		m.byteFallback = g.vocab.byteTokens()
		m.fuseUnk = true
		if m.unk, err = g.id("unknown_token_id", -1); err != nil {
			return nil, err
		}
	}
	switch {
	case flags&wholeTokens != 0:
		m.whole = func(string) bool { return true }
	case flags&wholeNewlines != 0:
		m.whole = func(text string) bool { return strings.Trim(text, "\n") == "" }
	}
	merges, ok := g.meta.Strings(ggml + "merges")
	if !ok && flags&dropGaps == 0 {
		return nil, errors.New(ggml + "merges is missing")
	}
	special := func(text string) bool {
		typ := g.types[g.vocab.ids[text]]
		return typ == typeControl || typ == typeUnknown
	}
	m.merges = newMergeTable(len(merges))
	var pair []byte
	for rank, text := range merges {
		space := -1
		if len(text) > 2 {
			space = strings.IndexByte(text[1:], ' ') + 1
		}
		if space < 1 {
			return nil, fmt.Errorf("%smerges: merge %d is not two parts with a space between", ggml, rank)
		}
		pair = append(append(pair[:0], text[:space]...), text[space+1:]...)
		left, right, id, err := m.mergeIDs(pair, space)
		if err != nil {
			return nil, fmt.Errorf("%smerges: merge %d: %w", ggml, rank, err)
		}
		if known, _ := m.merges.get(left, right); known == noRank && !special(g.vocab.texts[id]) {
			m.merges.set(left, right, int32(rank), id)
		}
	}
	m.finish(flags&rawText == 0, special)
	return m, nil
}

// id reads a token id; -1 means none.
func (g *ggufVocab) id(key string, byDefault int64) (int32, error) {
	id, ok := g.meta.Int(ggml + key)
	if !ok {
		if byDefault >= int64(g.vocab.size()) {
			byDefault = -1
		}
		return int32(byDefault), nil
	}
	if id < 0 || id >= int64(g.vocab.size()) {
		return 0, fmt.Errorf("%s%s is %d, and the vocabulary has %d tokens", ggml, key, id, g.vocab.size())
	}
	return int32(id), nil
}

// applyRoles sets what the keys for single tokens say: BOS, EOS and their kin.
func (g *ggufVocab) applyRoles(t *Tokenizer) error {
	t.special = map[string]string{}
	ids := map[string]int32{}
	for _, role := range []struct {
		key, name string
		byDefault int64
	}{
		{"bos", "bos_token", g.bos},
		{"eos", "eos_token", g.eos},
		{"unknown", "unk_token", g.unk},
		{"padding", "pad_token", -1},
		{"seperator", "sep_token", -1},
		{"cls", "cls_token", -1},
		{"mask", "mask_token", -1},
		{"eot", "", -1},
		{"eom", "", -1},
		{"fim_pad", "", -1},
		{"fim_rep", "", -1},
		{"fim_sep", "", -1},
	} {
		id, err := g.id(role.key+"_token_id", role.byDefault)
		if err != nil {
			return err
		}
		ids[role.key] = id
		if text, ok := t.Token(id); ok && role.name != "" {
			t.special[role.name] = text
		}
	}
	if t.bos < 0 || ids["bos"] >= 0 {
		t.bos = ids["bos"]
	}
	if err := g.applyAffixes(t, ids["eos"], ids["seperator"]); err != nil {
		return err
	}
	t.eog = t.endTokens([]int32{ids["eos"], ids["eot"], ids["eom"], ids["fim_pad"], ids["fim_rep"], ids["fim_sep"]})
	if t.isHarmony() { // these structure a message and are shown, though no user may write them
		for _, text := range []string{"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"} {
			if id, ok := t.added[text]; ok {
				t.kinds[id] &^= kindSpecial
			}
		}
	}
	return nil
}

// applyAffixes decides what Options.Special adds. A tokenizer.json with a template has decided
// already.
func (g *ggufVocab) applyAffixes(t *Tokenizer, eos, sep int32) error {
	if t.post.template {
		return nil
	}
	for _, affix := range []struct {
		key       string
		byDefault bool
		id        int32
		list      *[]int32
	}{
		{"add_bos_token", g.addBOS, t.bos, &t.post.prefix},
		{"add_eos_token", false, eos, &t.post.suffix},
		{"add_sep_token", g.addSEP, sep, &t.post.suffix},
	} {
		explicit, ok := g.meta.Bool(ggml + affix.key)
		switch {
		case ok && explicit && affix.id < 0:
			return fmt.Errorf("%s%s is true, but there is no such token", ggml, affix.key)
		case affix.id >= 0 && g.flag(affix.key, affix.byDefault):
			*affix.list = append(*affix.list, affix.id)
		}
	}
	return nil
}
