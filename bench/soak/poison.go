package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
)

// notFinite serves a model that has a token whose state is not a number, with
// and without it in requests that come together.
func (s *soak) notFinite(ctx context.Context) ([]figure, error) {
	model, err := s.poisoned()
	if err != nil {
		return nil, err
	}
	p, err := s.serve(ctx, model)
	if err != nil {
		return nil, err
	}
	ask := func(prompt []int) ([]int32, error) {
		body := generate(prompt, 40)
		body["logit_bias"] = object{fmt.Sprint(poison): -100}
		stream, err := p.open(ctx, completions, body)
		if err != nil {
			return nil, err
		}
		return stream.rest()
	}
	good := numbers(3, 100)
	want, err := ask(good)
	if err != nil {
		return nil, err
	}
	bad := slices.Clone(good)
	bad[70] = poison
	const rounds, beside = 20, 4
	same, failed := 0, 0
	for range rounds {
		type result struct {
			ids []int32
			err error
		}
		results := make(chan result)
		for range beside {
			go func() {
				ids, err := ask(good)
				results <- result{ids, err}
			}()
		}
		a, err := p.post(ctx, completions, object{"prompt": bad, "max_tokens": 4})
		if err != nil {
			return nil, err
		}
		if a.status == http.StatusInternalServerError {
			failed++
		}
		for range beside {
			if r := <-results; r.err == nil && slices.Equal(r.ids, want) {
				same++
			}
		}
	}
	return []figure{
		exactly("a state is not a number: that request fails", rounds, failed, fmt.Sprint(rounds)),
		exactly("those beside it have their tokens", rounds*beside, same, fmt.Sprint(rounds*beside)),
	}, p.stop()
}
