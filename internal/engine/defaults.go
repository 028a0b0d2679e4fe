package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/sample"
)

// defaults is what generation_config.json recommends.
type defaults struct {
	params      sample.Params
	recommended bool    // the file says something of params
	eos         []int32 // nil where the file does not say
}

func readDefaults(c *checkpoint.Checkpoint) (defaults, error) {
	d := defaults{params: sample.Default()}
	data, err := c.File("generation_config.json")
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return d, err
	}
	var f struct {
		EOS               json.RawMessage `json:"eos_token_id"`
		Temperature       *float32        `json:"temperature"`
		TopK              *int            `json:"top_k"`
		TopP              *float32        `json:"top_p"`
		MinP              *float32        `json:"min_p"`
		TypicalP          *float32        `json:"typical_p"`
		RepetitionPenalty *float32        `json:"repetition_penalty"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return d, fmt.Errorf("generation_config.json: %w", err)
	}
	if f.TopK != nil {
		d.params.TopK, d.recommended = *f.TopK, true
	}
	for _, v := range []struct{ to, from *float32 }{
		{&d.params.Temperature, f.Temperature},
		{&d.params.TopP, f.TopP},
		{&d.params.MinP, f.MinP},
		{&d.params.TypicalP, f.TypicalP},
		{&d.params.RepetitionPenalty, f.RepetitionPenalty},
	} {
		if v.from != nil {
			*v.to, d.recommended = *v.from, true
		}
	}
	if f.EOS != nil && json.Unmarshal(f.EOS, &d.eos) != nil {
		var one int32
		if json.Unmarshal(f.EOS, &one) != nil {
			return d, fmt.Errorf("generation_config.json: eos_token_id: expected a token id or a list of them")
		}
		d.eos = []int32{one}
	}
	return d, nil
}
