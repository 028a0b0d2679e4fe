package engine

import (
	"math/rand/v2"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/sample"
)

// recommended completes g. Where files recommend nothing, the values are those
// that other engines start with: a model's own distribution has a long tail of
// bad tokens.
func recommended(g *checkpoint.Generation) sample.Params {
	p := sample.Default()
	if !g.Samples() {
		p.Temperature, p.TopK, p.TopP = 0.8, 40, 0.95
	}
	if g.TopK != nil {
		p.TopK = int(*g.TopK)
	}
	for _, v := range []struct{ to, from *float32 }{
		{&p.Temperature, g.Temperature},
		{&p.TopP, g.TopP},
		{&p.MinP, g.MinP},
		{&p.TypicalP, g.TypicalP},
		{&p.RepetitionPenalty, g.RepetitionPenalty},
	} {
		if v.from != nil {
			*v.to = *v.from
		}
	}
	return p
}

// Sampling returns the parameters that the model's files recommend, or
// temperature 0.8, top-k 40, top-p 0.95 where they recommend none, with a seed
// drawn anew at every call.
func (e *Engine) Sampling() sample.Params {
	p := e.params
	p.Seed = rand.Uint64()
	return p
}
