package engine

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/spec"
)

// verify commits the next tokens of a sequence: along its draft as far as the
// rule accepts it, and the model's own one after that. logits are those of the
// anchor's row and of the draft's, [1+n, vocab], and overwritten.
func (e *Engine) verify(p *planned, logits []float32) (ended bool, err error) {
	s, d := p.sequence, p.draft
	if d == nil {
		return s.next(e, logits, nil, 0)
	}
	v := verification{engine: e, planned: p, logits: logits, vocab: e.Config().Vocab}
	before := len(s.tokens)
	path, err := v.run()
	if err != nil {
		return true, err
	}
	tokens := len(s.tokens) - before
	accepted := path[:min(len(path), tokens)] // a rule does not know where the text ends
	e.speculator.verified(p, accepted, tokens)
	// The last token that was committed is the next anchor, or has ended the text: the
	// cache has no row of it.
	p.path = e.speculator.copied(accepted[:min(len(accepted), tokens-1)])
	return v.ended, e.keep(s, d, p.path)
}

// keep makes what the cache holds of the draft that of the path alone: its rows
// lie behind those of the committed tokens, row of node i at slot computed+i.
func (e *Engine) keep(s *sequence, d *spec.Draft, path []int32) error {
	if d.Parents != nil {
		if err := e.runner.Keep(&s.table, s.computed, path); err != nil {
			return err
		}
	}
	s.computed += len(path)
	return e.cache.Rewind(&s.table, s.computed)
}

// A verification is one round of a sequence.
type verification struct {
	engine *Engine
	*planned
	logits []float32 // [1+n, vocab]
	vocab  int
	ended  bool
}

func (v *verification) run() (path []int32, err error) {
	sp := v.engine.speculator
	switch {
	case sp.simulated != nil:
		return v.simulate()
	case sp.Verify == coupled || v.Params.Greedy():
		verdict, err := sp.verifier.Match(&v.draft.Tree, v.match)
		return verdict.Path, err
	}
	verdict, err := v.reject()
	if err != nil {
		return nil, err
	}
	return verdict.Path, v.commit(verdict)
}

// row is the logits of a row, the anchor's being 0.
func (v *verification) row(row int) ([]float32, error) {
	if _, ok := v.engine.runner.Finite(v.anchor+row, v.anchor+row+1); !ok {
		return nil, fmt.Errorf("the model's state at position %d is not finite", len(v.tokens)-1)
	}
	return v.logits[row*v.vocab:][:v.vocab], nil
}

// match commits the token that the model itself takes after a row, and returns
// it. Behind the last one there is no token, so that the walk ends.
func (v *verification) match(row int) (int32, error) {
	if v.ended {
		return -1, nil
	}
	logits, err := v.row(row)
	if err != nil {
		return 0, err
	}
	if v.ended, err = v.next(v.engine, logits, v.draft, row); err != nil {
		return 0, err
	}
	return v.tokens[len(v.tokens)-1], nil
}

// reject verifies by rejection or as a block: with the distributions of the rows
// as sampling has them, each after its own path. Penalties count the drafted tokens
// before a row, so the history holds those of the path while a rule asks along it.
func (v *verification) reject() (spec.Verdict, error) {
	sp, params := v.engine.speculator, v.Params
	if params.LogProbs >= 0 {
		sp.raw = append(sp.raw[:0], v.logits...)
	}
	sp.depths = v.draft.Depths(append(sp.depths[:0], 0)) // of rows
	anchor := v.sampling(v.engine)
	taken := sp.taken[:0] // tokens of rows that the history holds for now
	target := func(row int) (spec.Row, error) {
		logits, err := v.row(row)
		if err != nil {
			return spec.Row{}, err
		}
		if row > 0 && v.history != nil {
			v.history.Add(v.draft.Tokens[row-1])
			taken = append(taken, v.draft.Tokens[row-1])
		}
		r := anchor
		r.Position += int(sp.depths[row])
		r.Generated += int(sp.depths[row])
		d, err := v.engine.sampler.Dist(logits, &r)
		if err != nil {
			return spec.Row{}, err
		}
		for len(sp.rows) <= row {
			sp.rows = append(sp.rows, spec.Row{})
		}
		sp.rows[row].Set(d)
		return sp.rows[row], nil
	}
	defer func() {
		if v.history != nil {
			v.history.Remove(taken...)
		}
		sp.taken = taken
	}()
	coins := spec.NewCoins(anchor.Key())
	if sp.Verify == block { // checkTree has refused it with trees
		return sp.verifier.Block(v.draft, target, coins)
	}
	return sp.verifier.Rejection(v.draft, target, coins)
}

// commit commits what a rule has decided, as far as the sequence goes on.
func (v *verification) commit(verdict spec.Verdict) error {
	row := 0
	for i := 0; i <= len(verdict.Path) && !v.ended; i++ {
		r, drafted := sample.Result{Token: verdict.Next}, i < len(verdict.Path)
		if drafted {
			r.Token = v.draft.Tokens[verdict.Path[i]]
		}
		if v.Params.LogProbs >= 0 {
			if err := v.score(&r, row); err != nil {
				return err
			}
		}
		v.ended = v.add(v.engine, r, drafted)
		if drafted {
			row = int(verdict.Path[i]) + 1
		}
	}
	return nil
}

// score sets the log-probabilities of a token after a row, with the history as
// it is there.
func (v *verification) score(r *sample.Result, row int) error {
	e, sp := v.engine, v.engine.speculator
	at := v.sampling(e)
	if _, err := e.sampler.Dist(sp.raw[row*v.vocab:][:v.vocab], &at); err != nil {
		return err
	}
	r.LogProb, r.Top = e.sampler.LogProbs(r.Token, v.Params.LogProbs)
	return nil
}

// simulate accepts as many drafted tokens as coins say.
func (v *verification) simulate() (path []int32, err error) {
	row := v.sampling(v.engine)
	accepted := v.engine.speculator.simulated.Accepted(row.Key(), v.draft.Len())
	for node := range accepted {
		path = append(path, int32(node))
		if v.ended = v.add(v.engine, sample.Result{Token: v.draft.Tokens[node]}, true); v.ended {
			return path, nil
		}
	}
	_, err = v.match(accepted)
	return path, err
}
