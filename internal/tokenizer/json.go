package tokenizer

import (
	"fmt"
)

// FromJSON reads a tokenizer.json. config is the tokenizer_config.json beside it, or nil: it has
// the roles of special tokens, flags of added tokens, which win over those of the tokenizer.json,
// and for some model classes whether BOS and EOS are added.
func FromJSON(data, config []byte) (*Tokenizer, error) {
	t, err := fromJSON(data, config)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	return t, nil
}

func fromJSON(data, config []byte) (*Tokenizer, error) {
	cfg, err := parseConfig(config)
	if err != nil {
		return nil, fmt.Errorf("tokenizer_config.json: %w", err)
	}
	fields, err := documentFields(data)
	if err != nil {
		return nil, err
	}
	added, err := parseAdded(fields["added_tokens"])
	if err != nil {
		return nil, fmt.Errorf("added_tokens: %w", err)
	}
	added = cfg.mergeAdded(added)

	steps := map[string][]component{}
	for _, part := range []string{"normalizer", "pre_tokenizer", "post_processor", "decoder"} {
		if steps[part], err = parseSteps(fields[part]); err != nil {
			return nil, fmt.Errorf("%s: %w", part, err)
		}
	}
	t := &Tokenizer{bos: -1}
	if t.norm, err = newNormalizer(steps["normalizer"]); err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	var byteLevel bool
	if t.split, byteLevel, err = newPreTokenizer(steps["pre_tokenizer"]); err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	special := map[string]bool{}
	for _, tok := range added {
		special[tok.content] = tok.special
	}
	t.model, t.vocab, err = parseModel(fields["model"], byteLevel, func(text string) bool { return special[text] })
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if err := t.addTokens(added); err != nil {
		return nil, fmt.Errorf("added_tokens: %w", err)
	}
	if t.raw, t.normalized, err = splitAdded(added, t.norm); err != nil {
		return nil, err
	}
	if t.post, err = newPostProcessor(steps["post_processor"], t.vocab); err != nil {
		return nil, fmt.Errorf("post_processor: %w", err)
	}
	if t.dec, err = newDecoder(steps["decoder"]); err != nil {
		return nil, fmt.Errorf("decoder: %w", err)
	}
	t.origin = origin{json: true, normalizer: steps["normalizer"], split: steps["pre_tokenizer"], tokens: added}
	t.applyRoles(cfg)
	return t, nil
}

func parseAdded(raw []byte) ([]addedToken, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var tokens []addedToken
	s := jsonScanner{buf: raw}
	err := s.array(func() error {
		if len(tokens) == maxAddedTokens {
			return fmt.Errorf("more than %d tokens", maxAddedTokens)
		}
		tok, err := s.addedToken()
		tokens = append(tokens, tok)
		return err
	})
	return tokens, err
}

func (s *jsonScanner) addedToken() (tok addedToken, err error) {
	err = s.object(func(key []byte) error {
		var flag *bool
		switch string(key) {
		case "id":
			tok.id, err = s.id()
			return err
		case "content":
			text, err := s.str()
			if len(text) > maxAddedTokenLen {
				return fmt.Errorf("a token is longer than %d bytes", maxAddedTokenLen)
			}
			tok.content = string(text)
			return err
		case "single_word":
			flag = &tok.singleWord
		case "lstrip":
			flag = &tok.lstrip
		case "rstrip":
			flag = &tok.rstrip
		case "normalized":
			flag = &tok.normalized
		case "special":
			flag = &tok.special
		default:
			_, err := s.raw()
			return err
		}
		*flag, err = s.boolean()
		return err
	})
	return tok, err
}

// addTokens enters added tokens into the vocabulary, which the model keeps without them.
func (t *Tokenizer) addTokens(added []addedToken) error {
	model := t.vocab
	top := int32(model.size() - 1)
	for _, tok := range added {
		top = max(top, tok.id)
	}
	if int(top) >= 2*(len(model.ids)+len(added))+maxIDGap {
		return fmt.Errorf("token id %d in a vocabulary of %d tokens", top, len(model.ids)+len(added))
	}
	v := &vocab{texts: make([]string, top+1), known: make([]bool, top+1), ids: model.ids}
	copy(v.texts, model.texts)
	copy(v.known, model.known)
	t.vocab, t.kinds, t.added = v, make([]kind, top+1), make(map[string]int32, len(added))
	for _, tok := range added {
		if tok.content == "" { // the reference ignores these
			continue
		}
		if v.known[tok.id] && v.texts[tok.id] != tok.content {
			return fmt.Errorf("tokens %q and %q have the same id %d", abbreviate(v.texts[tok.id]), abbreviate(tok.content), tok.id)
		}
		if id, twice := t.ID(tok.content); twice && id != tok.id {
			return fmt.Errorf("token %q has the ids %d and %d", abbreviate(tok.content), id, tok.id)
		}
		v.texts[tok.id], v.known[tok.id] = tok.content, true
		t.added[tok.content] = tok.id
		t.kinds[tok.id] |= kindAdded
		if tok.special {
			t.kinds[tok.id] |= kindSpecial
		}
	}
	return nil
}
