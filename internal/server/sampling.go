package server

import (
	"strconv"
	"strings"

	"github.com/foretoken/foretoken/internal/chat/value"
	"github.com/foretoken/foretoken/internal/sample"
)

// maxTop bounds how many alternatives of a token can be asked for.
const maxTop = 20

// maxSalt bounds cache_salt, in bytes: the prefix cache keeps it as long as a page.
const maxSalt = 256

// samplingFields say how tokens are chosen and when they end. What a request
// leaves out is what the model's files recommend.
type samplingFields struct {
	Temperature       *float32         `json:"temperature"`
	TopP              *float32         `json:"top_p"`
	TopK              *int             `json:"top_k"`
	MinP              *float32         `json:"min_p"`
	TypicalP          *float32         `json:"typical_p"`
	RepetitionPenalty *float32         `json:"repetition_penalty"`
	PresencePenalty   *float32         `json:"presence_penalty"`
	FrequencyPenalty  *float32         `json:"frequency_penalty"`
	LogitBias         logitBias        `json:"logit_bias"`
	Seed              *int64           `json:"seed"`
	Stop              textOrList       `json:"stop"`
	StopTokenIDs      []int32          `json:"stop_token_ids"`
	IncludeStop       bool             `json:"include_stop_str_in_output"`
	IgnoreEOS         bool             `json:"ignore_eos"`
	MinTokens         int              `json:"min_tokens"`
	SkipSpecial       *bool            `json:"skip_special_tokens"`
	Speculation       speculationField `json:"speculation"`
	Priority          int              `json:"priority"`
	CacheSalt         string           `json:"cache_salt"` // requests of different salts share no prefixes
}

// params are the parameters of a request. maxTokens nil: as many tokens as the
// context holds.
func (s *Server) params(f *samplingFields, maxTokens *int) (sample.Params, error) {
	if n := len(f.CacheSalt); n > maxSalt {
		return sample.Params{}, badRequest("cache_salt", "cache_salt has %d bytes, expected at most %d", n, maxSalt)
	}
	p := s.engine.Sampling()
	set(&p.Temperature, f.Temperature)
	set(&p.TopP, f.TopP)
	set(&p.TopK, f.TopK)
	set(&p.MinP, f.MinP)
	set(&p.TypicalP, f.TypicalP)
	set(&p.RepetitionPenalty, f.RepetitionPenalty)
	set(&p.PresencePenalty, f.PresencePenalty)
	set(&p.FrequencyPenalty, f.FrequencyPenalty)
	set(&p.MaxTokens, maxTokens)
	if f.Seed != nil {
		p.Seed = uint64(*f.Seed)
	}
	p.LogitBias, p.MinTokens = f.LogitBias, f.MinTokens
	p.Stop, p.StopIDs, p.IncludeStop, p.IgnoreEOS = f.Stop, f.StopTokenIDs, f.IncludeStop, f.IgnoreEOS
	if err := p.Validate(s.vocab()); err != nil {
		field, _, _ := strings.Cut(err.Error(), " ") // it begins with the field's name
		return p, badRequest(field, "%v", err)
	}
	return p, nil
}

// vocab is the number of tokens that can be drawn.
func (s *Server) vocab() int {
	n := s.engine.Config().Vocab
	if t, err := s.engine.Tokenizer(); err == nil {
		n = min(n, t.Size())
	}
	return n
}

// keepsSpecial reports whether special tokens are to be in the text.
func (f *samplingFields) keepsSpecial() bool { return f.SkipSpecial != nil && !*f.SkipSpecial }

func set[T any](p, field *T) {
	if field != nil {
		*p = *field
	}
}

// logitBias has token ids as keys: JSON writes them as strings.
type logitBias map[int32]float32

func (b *logitBias) read(path string, v value.Value) error {
	o, ok := v.(*value.Object)
	if !ok {
		return badRequest(path, "%s is %s, expected an object of token ids and numbers", path, kindOf(v))
	}
	*b = make(logitBias, o.Len())
	for k, v := range o.All() {
		key, _ := k.(string)
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil {
			return badRequest(path, "%s has the key %.40q, expected a token id", path, key)
		}
		bias, ok := number(v)
		if !ok {
			return badRequest(path, "%s of token %d is %s, expected a number", path, id, kindOf(v))
		}
		(*b)[int32(id)] = float32(bias)
	}
	return nil
}

// textOrList is a text or a list of them.
type textOrList []string

func (t *textOrList) read(path string, v value.Value) error {
	switch v := v.(type) {
	case string:
		*t = textOrList{v}
		return nil
	case *value.List:
		*t = make(textOrList, len(v.Items))
		for i, item := range v.Items {
			text, ok := item.(string)
			if !ok {
				return badRequest(path, "%s[%d] is %s, expected a string", path, i, kindOf(item))
			}
			(*t)[i] = text
		}
		return nil
	}
	return badRequest(path, "%s is %s, expected a string or a list of strings", path, kindOf(v))
}
