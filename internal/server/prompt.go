package server

import (
	"fmt"
	"unicode/utf8"

	"github.com/foretoken/foretoken/internal/chat/value"
	"github.com/foretoken/foretoken/internal/tokenizer"
)

// promptField is what is to be continued or embedded: one or several texts, or
// lists of token ids.
type promptField struct {
	texts []string
	ids   [][]int32 // instead
	given bool
}

// maxPrompts bounds the prompts of a request, and its continuations.
const maxPrompts = 2048

func (p *promptField) read(path string, v value.Value) error {
	p.given = true
	expected := func(at string, v value.Value) error {
		return badRequest(path, "%s is %s, expected a text, token ids, or a list of either", at, kindOf(v))
	}
	if text, ok := v.(string); ok {
		p.texts = []string{text}
		return nil
	}
	list, ok := v.(*value.List)
	if !ok {
		return expected(path, v)
	}
	if len(list.Items) == 0 {
		return badRequest(path, "%s is an empty list", path)
	}
	if _, ok := integer(list.Items[0]); ok {
		ids, err := tokenIDs(path, list)
		p.ids = [][]int32{ids}
		return err
	}
	if len(list.Items) > maxPrompts {
		return badRequest(path, "%s has %d prompts, expected at most %d", path, len(list.Items), maxPrompts)
	}
	_, texts := list.Items[0].(string)
	for i, item := range list.Items {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch item := item.(type) {
		case string:
			if !texts {
				return badRequest(path, "%s is a text, but %s[0] is token ids", at, path)
			}
			p.texts = append(p.texts, item)
		case *value.List:
			if texts {
				return badRequest(path, "%s is a list, but %s[0] is a text", at, path)
			}
			ids, err := tokenIDs(at, item)
			if err != nil {
				return err
			}
			p.ids = append(p.ids, ids)
		default:
			return expected(at, item)
		}
	}
	return nil
}

func tokenIDs(path string, list *value.List) ([]int32, error) {
	ids := make([]int32, len(list.Items))
	for i, item := range list.Items {
		id, ok := integer(item)
		if !ok || id < 0 || int64(int32(id)) != id {
			return nil, badRequest(path, "%s[%d] is %s, expected a token id", path, i, kindOf(item))
		}
		ids[i] = int32(id)
	}
	return ids, nil
}

// encode returns the token ids of the prompts. special adds the tokens that the
// model's tokenizer begins and ends texts with.
func (s *Server) encode(p *promptField, field string, special bool) ([][]int32, error) {
	if !p.given {
		return nil, badRequest(field, "%s is missing", field)
	}
	prompts := p.ids
	for _, text := range p.texts {
		ids, err := s.tokens(field, text, special)
		if err != nil {
			return nil, err
		}
		prompts = append(prompts, ids)
	}
	for i, ids := range prompts {
		name := field
		if len(prompts) > 1 {
			name = fmt.Sprintf("%s[%d]", field, i)
		}
		if err := s.checkPrompt(field, name, ids); err != nil {
			return nil, err
		}
	}
	return prompts, nil
}

// checkPrompt is what the engine would say, with the code that clients look for.
func (s *Server) checkPrompt(field, name string, ids []int32) error {
	switch most := s.maxPrompt(); {
	case len(ids) == 0:
		return badRequest(field, "%s is empty", name)
	case len(ids) > most:
		return tooLong(field, "%s has %d tokens, this server takes %d", name, len(ids), most)
	}
	for i, id := range ids {
		if int(id) >= s.vocab() {
			return badRequest(field, "%s: token %d is %d, expected 0 to %d", name, i, id, s.vocab()-1)
		}
	}
	return nil
}

func tooLong(field, format string, args ...any) error {
	e := badRequest(field, format, args...)
	e.Code = "context_length_exceeded"
	return e
}

// maxPrompt is the longest prompt in tokens.
func (s *Server) maxPrompt() int {
	most := s.engine.MaxModelLen()
	if s.Limits.Prompt > 0 {
		most = min(most, s.Limits.Prompt)
	}
	return most
}

// longText is the length in bytes from which on texts are encoded one at a time.
const longText = 256 << 10

// tokens encodes a text of a request.
func (s *Server) tokens(field, text string, special bool) ([]int32, error) {
	t, err := s.tokenizer(field)
	if err != nil {
		return nil, err
	}
	if len(text) > longText {
		s.encoding.Lock()
		defer s.encoding.Unlock()
	}
	if err := s.checkLength(t, field, text); err != nil {
		return nil, err
	}
	ids, err := t.Encode(text, tokenizer.Options{Special: special})
	if err != nil {
		return nil, badRequest(field, "%s: %v", field, err)
	}
	return ids, nil
}

// tokenizer is the model's; without one a server takes token ids only.
func (s *Server) tokenizer(field string) (*tokenizer.Tokenizer, error) {
	t, err := s.engine.Tokenizer()
	if err != nil {
		return nil, badRequest(field, "%s: the model has no tokenizer; send token ids", field)
	}
	return t, nil
}

// checkLength refuses a text far too long without encoding it all. Where the
// beginning of a text is cut off changes its last few tokens, not the half of
// them.
func (s *Server) checkLength(t *tokenizer.Tokenizer, field, text string) error {
	most := s.maxPrompt()
	begin := 16 * most // bytes; a token of text has 4 to 5
	if len(text) <= begin {
		return nil
	}
	for !utf8.RuneStart(text[begin]) {
		begin--
	}
	if ids, err := t.Encode(text[:begin], tokenizer.Options{}); err == nil && len(ids) > 2*most {
		return tooLong(field, "%s has %d bytes, the first %d of which are %d tokens; this server takes %d", field, len(text), begin, len(ids), most)
	}
	return nil
}
