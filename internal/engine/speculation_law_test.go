package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/sample"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// Texts have the law of the model, whatever drafts and however it is verified:
// a χ² test of all texts of a few tokens, through the whole engine. Their
// probabilities are the products of what sampling has for each prefix.
func TestSpeculationKeepsTheLaw(t *testing.T) {
	path := testmodel.GGUF(t, testmodel.Family("llama"))
	for _, o := range []Speculation{
		{Method: draftModel, Model: "self:layers=0", Tokens: 3, Verify: coupled},
		{Method: draftModel, Model: "self:layers=0", Tokens: 3, Verify: rejection},
		{Method: draftModel, Model: "self:layers=0", Tokens: 3, Verify: block},
		{Method: draftModel, Model: "self:layers=0", Tree: staticTree, Verify: rejection},
		{Method: draftModel, Model: "self:layers=0", Tokens: 2, TopK: 2, Nodes: 5, Verify: rejection},
		{Method: ngram, Tokens: 3, LookupMin: 1, LookupMax: 2, Verify: rejection},
		{Method: ngram, Tokens: 3, LookupMin: 1, LookupMax: 2, Verify: block},
	} {
		o.Fixed = true
		t.Run(fmt.Sprintf("%s %s %s topk %d", o.Method, o.Verify, o.Tree, o.TopK), func(t *testing.T) { keepsTheLaw(t, path, o) })
	}
}

// lawful asks for 4 tokens of 4 at each place: 256 texts.
func lawful() sample.Params {
	p := sample.Default()
	p.Temperature, p.TopK, p.MaxTokens, p.IgnoreEOS = 1.3, 4, 4, true
	p.FrequencyPenalty = 0.4 // what was drafted counts, too
	return p
}

func keepsTheLaw(t *testing.T, path string, o Speculation) {
	e, err := Open(context.Background(), path, Options{Threads: 1, MaxModelLen: 128, Speculation: o})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	prompt := []int32{5, 6, 7, 5, 6, 7, 5, 6}
	want := map[string]float64{}
	e.enumerate(t, prompt, nil, 1, want)

	const requests = 96
	got := map[string]int{}
	for seed := range uint64(requests) {
		r := Request{Prompt: prompt, Params: lawful(), Choices: MaxChoices}
		r.Params.Seed = seed
		texts := make([][]int32, MaxChoices)
		for token, err := range e.Generate(context.Background(), r) {
			if err != nil {
				t.Fatal(err)
			}
			texts[token.Choice] = append(texts[token.Choice], token.ID)
		}
		for _, text := range texts {
			got[fmt.Sprint(text)]++
		}
	}
	s := e.Stats().Speculation[o.Method]
	if s.Accepted*20 < s.Drafted || s.Accepted*20 > s.Drafted*19 {
		t.Fatalf("of %d drafted tokens %d were accepted: expected that some were, and some not", s.Drafted, s.Accepted)
	}
	checkLaw(t, got, want, requests*MaxChoices)
}

// enumerate adds the probabilities of all texts that go on after a prompt.
func (e *Engine) enumerate(t *testing.T, prompt, text []int32, p float64, law map[string]float64) {
	params := lawful()
	if len(text) == params.MaxTokens {
		law[fmt.Sprint(text)] += p
		return
	}
	var sampler sample.Sampler
	probs := make([]float64, e.Config().Vocab)
	history := sample.NewHistory(prompt)
	history.Add(text...)
	tokens := slices.Concat(prompt, text)
	err := e.Score(context.Background(), tokens, len(tokens)-1, 0, func(_ int, logits []float32) error {
		d, err := sampler.Dist(slices.Clone(logits), &sample.Row{
			Params: &params, Position: len(tokens), Generated: len(text), History: history, EOG: e.eog, Vocab: e.vocab(),
		})
		if err == nil {
			d.Probs(probs)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for token, q := range probs {
		if q > 0 {
			e.enumerate(t, prompt, append(slices.Clip(text), int32(token)), p*q, law)
		}
	}
}

// checkLaw compares counts with a law. Seeds are fixed, so it fails always or
// never; the bound is that of one in ten million.
func checkLaw(t *testing.T, got map[string]int, law map[string]float64, n int) {
	t.Helper()
	var chi2, rest float64
	cells, other := 0, n
	for text, p := range law {
		if want := p * float64(n); want >= 8 {
			d := float64(got[text]) - want
			chi2 += d * d / want
			cells++
			other -= got[text]
		} else {
			rest += want
		}
	}
	if rest >= 8 {
		chi2 += (float64(other) - rest) * (float64(other) - rest) / rest
		cells++
	} else if other > 30 {
		t.Errorf("%d of %d texts are such as the model hardly gives, expected about %.1f", other, n, rest)
	}
	df := float64(cells - 1)
	// Wilson and Hilferty 1931: the cube root of χ²/df is nearly normal.
	z := (math.Cbrt(chi2/df) - (1 - 2/(9*df))) / math.Sqrt(2/(9*df))
	t.Logf("χ² %.1f, %d cells, z %.2f", chi2, cells, z)
	if cells < 20 || z > 5.2 {
		t.Errorf("χ² is %.1f with %d cells, z %.2f: expected at least 20 cells and z below 5.2", chi2, cells, z)
	}
}
