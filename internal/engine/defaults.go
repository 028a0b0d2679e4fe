package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/sample"
)

// defaults is what a model's files recommend.
type defaults struct {
	params sample.Params
	eos    []int32 // nil where they do not say
}

// recommended are the sampling parameters that files mention.
type recommended struct {
	Temperature       *float32 `json:"temperature"`
	TopK              *int     `json:"top_k"`
	TopP              *float32 `json:"top_p"`
	MinP              *float32 `json:"min_p"`
	TypicalP          *float32 `json:"typical_p"`
	RepetitionPenalty *float32 `json:"repetition_penalty"`
}

// params completes r. Where files recommend nothing, the values are those
// that other engines start with: a model's own distribution has a long tail of
// bad tokens.
func (r recommended) params() sample.Params {
	p := sample.Default()
	if r == (recommended{}) {
		p.Temperature, p.TopK, p.TopP = 0.8, 40, 0.95
	}
	if r.TopK != nil {
		p.TopK = *r.TopK
	}
	for _, v := range []struct{ to, from *float32 }{
		{&p.Temperature, r.Temperature},
		{&p.TopP, r.TopP},
		{&p.MinP, r.MinP},
		{&p.TypicalP, r.TypicalP},
		{&p.RepetitionPenalty, r.RepetitionPenalty},
	} {
		if v.from != nil {
			*v.to = *v.from
		}
	}
	return p
}

// readDefaults reads generation_config.json or GGUF metadata.
func readDefaults(c *checkpoint.Checkpoint, m *model.Config) (defaults, error) {
	if metadata := c.Metadata(); metadata != nil {
		return defaults{params: ggufRecommended(metadata).params()}, nil
	}
	data, err := c.File("generation_config.json")
	if errors.Is(err, fs.ErrNotExist) {
		return defaults{params: recommended{}.params()}, nil
	}
	if err != nil {
		return defaults{}, err
	}
	var f struct {
		recommended
		EOS json.RawMessage `json:"eos_token_id"`
	}
	var eos []int32
	if err = json.Unmarshal(data, &f); err == nil {
		eos, err = model.TokenIDs("eos_token_id", f.EOS)
	}
	if err == nil {
		err = m.CheckEOS(eos)
	}
	if err != nil {
		return defaults{}, fmt.Errorf("generation_config.json: %w", err)
	}
	return defaults{f.recommended.params(), eos}, nil
}

func ggufRecommended(m *checkpoint.Metadata) (r recommended) {
	for key, to := range map[string]**float32{
		"temp": &r.Temperature, "top_p": &r.TopP, "min_p": &r.MinP, "penalty_repeat": &r.RepetitionPenalty,
	} {
		if v, ok := m.Float("general.sampling." + key); ok {
			f := float32(v)
			*to = &f
		}
	}
	if v, ok := m.Int("general.sampling.top_k"); ok {
		k := int(v)
		r.TopK = &k
	}
	return r
}
