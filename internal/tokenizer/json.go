package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// FromJSON reads a tokenizer.json. config is the tokenizer_config.json beside it, or nil: it has the roles of special tokens, flags of added
// tokens, which win over those of the tokenizer.json, and for some model classes whether BOS and EOS are added.
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

// jsonConfig is what matters here of a tokenizer_config.json.
type jsonConfig struct {
	class          string
	addBOS, addEOS bool
	added          []addedToken
	roles          map[string]string // "bos_token" → text
}

func parseConfig(data []byte) (*jsonConfig, error) {
	cfg := &jsonConfig{roles: map[string]string{}}
	if len(data) == 0 {
		return cfg, nil
	}
	fields, err := documentFields(data)
	if err != nil {
		return nil, err
	}
	for name, dst := range map[string]any{"tokenizer_class": &cfg.class, "add_bos_token": &cfg.addBOS, "add_eos_token": &cfg.addEOS} {
		if raw, ok := fields[name]; ok {
			if err := json.Unmarshal(raw, dst); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for name, raw := range fields {
		if !strings.HasSuffix(name, "_token") {
			continue
		}
		var text string
		var object struct{ Content string }
		if json.Unmarshal(raw, &text) != nil {
			_ = json.Unmarshal(raw, &object) // flags such as add_bos_token are neither
			text = object.Content
		}
		if text != "" {
			cfg.roles[name] = text
		}
	}
	if raw, ok := fields["added_tokens_decoder"]; ok && string(raw) != "null" {
		if err := cfg.parseAdded(raw); err != nil {
			return nil, fmt.Errorf("added_tokens_decoder: %w", err)
		}
	}
	return cfg, nil
}

// parseAdded reads added tokens by id.
func (cfg *jsonConfig) parseAdded(raw []byte) error {
	s := jsonScanner{buf: raw}
	return s.object(func(key []byte) error {
		id, err := strconv.ParseUint(string(key), 10, 31)
		if err != nil {
			return fmt.Errorf("%q is no token id", abbreviate(string(key)))
		}
		if len(cfg.added) == maxAddedTokens {
			return fmt.Errorf("more than %d tokens", maxAddedTokens)
		}
		tok, err := s.addedToken()
		tok.id = int32(id)
		cfg.added = append(cfg.added, tok)
		return err
	})
}

// mergeAdded lets the config's added tokens win over those of the tokenizer.json, and adds those that only it has.
func (cfg *jsonConfig) mergeAdded(tokens []addedToken) []addedToken {
	at := make(map[string]int, len(tokens))
	for i, tok := range tokens {
		at[tok.content] = i
	}
	for _, tok := range cfg.added {
		if i, ok := at[tok.content]; ok {
			tok.id = tokens[i].id
			tokens[i] = tok
		} else {
			tokens = append(tokens, tok)
		}
	}
	return tokens
}

// llamaClasses are the Python classes, less their suffix Fast, that build the post-processor from add_bos_token and add_eos_token.
var llamaClasses = []string{"LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer", "CohereTokenizer"}

// applyRoles finds BOS and the tokens that end a generation.
func (t *Tokenizer) applyRoles(cfg *jsonConfig) {
	t.special = maps.Clone(cfg.roles)
	role := func(name string) int32 {
		if id, ok := t.ID(cfg.roles[name]); ok {
			return id
		}
		return -1
	}
	t.bos = role("bos_token")
	eos := role("eos_token")
	if !t.post.template && slices.Contains(llamaClasses, strings.TrimSuffix(cfg.class, "Fast")) {
		if cfg.addBOS && t.bos >= 0 {
			t.post.prefix = []int32{t.bos}
		}
		if cfg.addEOS && eos >= 0 {
			t.post.suffix = []int32{eos}
		}
	}
	if t.bos < 0 && len(t.post.prefix) > 0 {
		t.bos = t.post.prefix[0]
	}
	t.eog = t.endTokens([]int32{eos})
}
