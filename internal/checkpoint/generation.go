package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// Generation is what a model's files recommend for generating. Nil fields are
// ones that they do not mention.
type Generation struct {
	Temperature       *float32 `json:"temperature"`
	TopK              *int32   `json:"top_k"`
	TopP              *float32 `json:"top_p"`
	MinP              *float32 `json:"min_p"`
	TypicalP          *float32 `json:"typical_p"`
	RepetitionPenalty *float32 `json:"repetition_penalty"`
	EOS               []int32  `json:"-"` // tokens that end generation; in GGUF the tokenizer has them
}

// Samples reports whether a sampling parameter is recommended.
func (g *Generation) Samples() bool {
	return g.TopK != nil || g.Temperature != nil || g.TopP != nil || g.MinP != nil || g.TypicalP != nil || g.RepetitionPenalty != nil
}

// TokenIDs reads the value of a field of config.json or generation_config.json
// that is a token id, a list of them, null or absent.
func TokenIDs(field string, data json.RawMessage) (list []int32, err error) {
	if len(data) == 0 {
		return nil, nil
	}
	if json.Unmarshal(data, &list) == nil { // null too
		return list, nil
	}
	var one int32
	if json.Unmarshal(data, &one) != nil {
		return nil, fmt.Errorf("%s: expected a token id, a list of them or null", field)
	}
	return []int32{one}, nil
}

// ggufSampling lists the parameters that have a GGUF key.
func (g *Generation) ggufSampling() []ggufParameter {
	return []ggufParameter{
		{"general.sampling.temp", &g.Temperature},
		{"general.sampling.top_p", &g.TopP},
		{"general.sampling.min_p", &g.MinP},
		{"general.sampling.penalty_repeat", &g.RepetitionPenalty},
	}
}

type ggufParameter struct {
	key   string
	value **float32
}

const ggufTopK = "general.sampling.top_k"

// Generation reads generation_config.json or GGUF metadata. Without either
// nothing is recommended.
func (c *Checkpoint) Generation() (g Generation, err error) {
	if m := c.Metadata(); m != nil {
		for _, p := range g.ggufSampling() {
			if v, ok := m.Float(p.key); ok {
				f := float32(v)
				*p.value = &f
			}
		}
		if v, ok := m.Int(ggufTopK); ok {
			k := int32(min(max(v, -1), 1<<30))
			g.TopK = &k
		}
		return g, nil
	}
	data, err := c.File("generation_config.json")
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err != nil {
		return g, err
	}
	f := struct {
		*Generation
		EOS json.RawMessage `json:"eos_token_id"`
	}{Generation: &g}
	if err = json.Unmarshal(data, &f); err == nil {
		g.EOS, err = TokenIDs("eos_token_id", f.EOS)
	}
	if err != nil {
		return g, fmt.Errorf("generation_config.json: %w", err)
	}
	return g, nil
}

// Metadata is the sampling part of g under GGUF's keys.
func (g *Generation) Metadata() (pairs []Pair, err error) {
	if g.TypicalP != nil && *g.TypicalP != 1 {
		return nil, fmt.Errorf("GGUF files cannot express the recommended typical_p %v", *g.TypicalP)
	}
	for _, p := range g.ggufSampling() {
		if *p.value != nil {
			pairs = append(pairs, Pair{p.key, **p.value})
		}
	}
	if g.TopK != nil {
		pairs = append(pairs, Pair{ggufTopK, *g.TopK})
	}
	return pairs, nil
}
