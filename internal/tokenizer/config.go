package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

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

// mergeAdded lets the config's added tokens win over those of the tokenizer.json, and adds those
// that only it has.
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

// llamaClasses are the Python classes, less their suffix Fast, that build the post-processor from
// add_bos_token and add_eos_token.
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
