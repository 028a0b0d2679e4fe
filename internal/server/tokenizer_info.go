package server

import "net/http"

// tokenizerInfo describes the tokenizer by the names of tokenizer_config.json,
// as vLLM does: with it, /tokenize and /detokenize, evaluation harnesses need no
// tokenizer of their own.
type tokenizerInfo struct {
	BOS            *string `json:"bos_token"`
	EOS            *string `json:"eos_token"`
	PAD            *string `json:"pad_token"`
	UNK            *string `json:"unk_token"`
	AddBOS         bool    `json:"add_bos_token"`
	ModelMaxLength int     `json:"model_max_length"`
	ChatTemplate   *string `json:"chat_template"`
}

// tokenizerInfo serves GET /tokenizer_info.
func (s *Server) tokenizerInfo(w http.ResponseWriter, _ *http.Request) error {
	t, err := s.engine.Tokenizer()
	if err != nil {
		return &Error{Status: http.StatusNotFound, Type: "not_found_error", Code: "not_found", Message: "the model has no tokenizer; send token ids"}
	}
	optional := func(text string) *string {
		if text == "" {
			return nil
		}
		return &text
	}
	special := t.SpecialTokens()
	return respond(w, &tokenizerInfo{
		BOS: optional(special["bos_token"]), EOS: optional(special["eos_token"]),
		PAD: optional(special["pad_token"]), UNK: optional(special["unk_token"]),
		AddBOS: t.AddsBOS(), ModelMaxLength: s.engine.MaxModelLen(), ChatTemplate: optional(s.engine.Template()),
	})
}
