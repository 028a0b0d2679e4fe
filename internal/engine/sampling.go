package engine

import (
	"math/rand/v2"
	"sync"

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

// seeds draws seeds. It may be called from any goroutine.
type seeds func() uint64

func newSeeds(seed uint64) seeds {
	if seed == 0 {
		return rand.Uint64
	}
	var mu sync.Mutex
	source := rand.NewPCG(seed, 0)
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return source.Uint64()
	}
}

// Sampling returns the parameters that the model's files recommend, or
// temperature 0.8, top-k 40, top-p 0.95 where they recommend none, with a seed
// drawn anew at every call, as Options.Seed says.
func (e *Engine) Sampling() sample.Params {
	p := e.params
	p.Seed = e.seeds()
	return p
}
