package server

import "net/http"

// tokenizeRequest is the body of POST /tokenize: a prompt, or a conversation.
type tokenizeRequest struct {
	Model           string  `json:"model"`
	Prompt          *string `json:"prompt"`
	AddSpecial      *bool   `json:"add_special_tokens"` // true for a prompt; a conversation's template writes its own
	ReturnTokenStrs bool    `json:"return_token_strs"`
	conversationFields
}

// tokenized is the answer.
type tokenized struct {
	Count       int      `json:"count"`
	MaxModelLen int      `json:"max_model_len"`
	Tokens      []int32  `json:"tokens"`
	TokenStrs   []string `json:"token_strs,omitempty"` // as the vocabulary has them
}

// tokenize serves POST /tokenize.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) error {
	var q tokenizeRequest
	if err := readRequest(r, &q); err != nil {
		return err
	}
	if err := s.checkModel(q.Model); err != nil {
		return err
	}
	t, err := s.tokenizer("prompt")
	if err != nil {
		return err
	}
	var ids []int32
	switch special := q.Prompt != nil; {
	case q.Prompt != nil && len(q.Messages) > 0:
		return badRequest("prompt", "prompt and messages: one will do")
	case q.Prompt != nil:
		set(&special, q.AddSpecial)
		ids, err = s.tokens("prompt", *q.Prompt, special)
	default:
		set(&special, q.AddSpecial)
		ids, err = s.promptOf(r.Context(), &q.conversationFields, toolValues(q.Tools), q.Kwargs, special)
	}
	if err != nil {
		return err
	}
	answer := tokenized{Count: len(ids), MaxModelLen: s.engine.MaxModelLen(), Tokens: ids}
	if q.ReturnTokenStrs {
		for _, id := range ids {
			text, _ := t.Token(id)
			answer.TokenStrs = append(answer.TokenStrs, text)
		}
	}
	return respond(w, &answer)
}

// detokenizeRequest is the body of POST /detokenize.
type detokenizeRequest struct {
	Model  string  `json:"model"`
	Tokens []int32 `json:"tokens"`
}

// detokenized is the answer: the text, special tokens with it.
type detokenized struct {
	Prompt string `json:"prompt"`
}

// detokenize serves POST /detokenize.
func (s *Server) detokenize(w http.ResponseWriter, r *http.Request) error {
	var q detokenizeRequest
	if err := readRequest(r, &q); err != nil {
		return err
	}
	if err := s.checkModel(q.Model); err != nil {
		return err
	}
	t, err := s.tokenizer("tokens")
	if err != nil {
		return err
	}
	for i, id := range q.Tokens {
		if id < 0 || int(id) >= s.vocab() {
			return badRequest("tokens", "tokens[%d] is %d, expected 0 to %d", i, id, s.vocab()-1)
		}
	}
	return respond(w, &detokenized{t.Decode(q.Tokens, false)})
}
