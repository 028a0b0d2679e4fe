//go:build shared

package spec

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/fixtures"
)

// The known answers of golden/spec/kat.json, all but the formula of chains, which
// package adapt has.
type knownAnswers struct {
	HistoryToy struct {
		DraftLength int `json:"draft_length"`
		Horizon     int
		P, Q        map[string][]float64
		Expected    struct {
			TokenWise string `json:"token_wise"`
			Block     string
		} `json:"expected_tokens_per_round"`
	} `json:"history_toy"`
	NegativeControls []struct {
		Rule      string
		P, Q, Law []float64
	} `json:"negative_controls"`
	Recursive struct {
		P, Q     []float64
		Siblings []int
	} `json:"recursive_rejection_without_replacement"`
	Algorithm1 []struct {
		C            [][]float64
		SPS          any
		Lengths      []int
		Theta        float64
		Thetas       []float64
		GlobalSearch *struct {
			Lengths []int
			Theta   float64
		} `json:"global_search"`
	} `json:"algorithm_1"`
	SelectionBias struct {
		P, Q             []float64
		A1               float64
		C2               map[string]float64 `json:"c2_given_x1"`
		SPS              []float64
		Algorithm1Length int       `json:"algorithm_1_length"`
		GlobalSearchLaw  []float64 `json:"live_global_search_law"`
	} `json:"selection_bias"`
}

func readKnownAnswers(t *testing.T) (k knownAnswers) {
	fixtures.ReadJSON(t, fixtures.Golden(t, "spec", "kat.json"), &k)
	return k
}

func TestKnownHistoryToy(t *testing.T) {
	k := readKnownAnswers(t).HistoryToy
	model := func(table map[string][]float64) func([]int32) Row {
		return func(h []int32) Row {
			w, ok := table[strings.Trim(strings.ReplaceAll(fmt.Sprint(h), " ", ","), "[]")]
			if !ok {
				panic(fmt.Sprintf("no row after %v", h))
			}
			return weights(w...)
		}
	}
	m := toy{model(k.P), model(k.Q)}
	target := m.target(t, k.Horizon)
	for name, expected := range map[string]string{
		"rejection of a chain": k.Expected.TokenWise,
		"block":                k.Expected.Block,
	} {
		rule := rules[name](m)
		round := func(b *branches, text []int32, depth int) []int32 {
			return rule(b, text, min(depth, k.DraftLength))
		}
		if diff := generate(t, k.Horizon, round).Differs(target); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if got := expectedTokens(t, round, k.DraftLength).RatString(); got != expected {
			t.Errorf("%s: %s tokens a round, expected %s", name, got, expected)
		}
	}
}

func TestKnownNegativeControls(t *testing.T) {
	controls := map[string]control{
		"drop the sampled draft when its own q(x) < 0.4 and sample from p instead":          dropsByOwnProbability(0.4),
		"two siblings drawn without replacement, each tested against the un-renormalised q": siblingsNotRenormalised,
		"argmax draft tested with min(1, p/q)":                                              argmaxAsDrawn,
	}
	for _, k := range readKnownAnswers(t).NegativeControls {
		rule, ok := controls[k.Rule]
		if !ok {
			t.Errorf("no control for %q", k.Rule)
			continue
		}
		checkLaw(t, k.Rule, outcomes(t, func(b *branches) []int32 {
			return rule(b, weights(k.P...), weights(k.Q...))
		}), k.Law)
	}
}

func checkLaw(t *testing.T, name string, got law, want []float64) {
	t.Helper()
	for x, expected := range want {
		p, _ := got.Of(int32(x)).Float64()
		if math.Abs(p-expected) > 1e-6 {
			t.Errorf("%s: token %d has probability %v, expected %v", name, x, p, expected)
		}
	}
}

func TestKnownRecursiveRejection(t *testing.T) {
	k := readKnownAnswers(t).Recursive
	m := toy{
		func([]int32) Row { return weights(k.P...) },
		func([]int32) Row { return weights(k.Q...) },
	}
	for _, siblings := range k.Siblings {
		got := generate(t, 1, func(b *branches, text []int32, _ int) []int32 {
			d := m.drawTree(b, text, []int{siblings}, false)
			v, err := new(Verifier).Rejection(d, func(int) (Row, error) { return weights(k.P...), nil }, b)
			return verify(d, v, err)[:1]
		})
		if diff := got.Differs(m.target(t, 1)); diff != "" {
			t.Errorf("%d siblings: %s", siblings, diff)
		}
	}
}

func TestKnownAlgorithm1(t *testing.T) {
	formulas := map[string]func(rows int) float64{
		"1000/(10+0.5*B)": func(b int) float64 { return 1000 / (10 + 0.5*float64(b)) },
		"1000/(10+4*B)":   func(b int) float64 { return 1000 / (10 + 4*float64(b)) },
		"1000/10 if B<=4 else 1000/18 if B<=8 else 1000/26": func(b int) float64 {
			switch {
			case b <= 4:
				return 1000.0 / 10
			case b <= 8:
				return 1000.0 / 18
			}
			return 1000.0 / 26
		},
	}
	for i, k := range readKnownAnswers(t).Algorithm1 {
		var perSecond func(rows int) float64
		switch sps := k.SPS.(type) {
		case string:
			if perSecond = formulas[sps]; perSecond == nil {
				t.Fatalf("no formula %q", sps)
			}
		case []any:
			perSecond = func(rows int) float64 { return sps[rows-1].(float64) }
		}
		kept, theta := greedy(k.C, perSecond)
		if diff := cmp.Diff(k.Lengths, kept); diff != "" {
			t.Errorf("case %d: lengths (-want +got):\n%s", i, diff)
		}
		if k.Theta != 0 && math.Abs(theta-k.Theta) > 1e-3 {
			t.Errorf("case %d: theta %v, expected %v", i, theta, k.Theta)
		}
		tokens, p := 1.0, 1.0
		for n, expected := range k.Thetas { // one request: admitted one by one
			if n > 0 {
				p *= k.C[0][n-1]
				tokens += p
			}
			if got := tokens * perSecond(n+1); math.Abs(got-expected) > 0.05 {
				t.Errorf("case %d: theta with %d drafts is %v, expected %v", i, n, got, expected)
			}
			if n == kept[0] && theta != tokens*perSecond(n+1) {
				t.Errorf("case %d: theta %v, expected %v", i, theta, tokens*perSecond(n+1))
			}
		}
		if k.GlobalSearch != nil {
			kept, theta := search(k.C, perSecond)
			if diff := cmp.Diff(k.GlobalSearch.Lengths, kept); diff != "" || math.Abs(theta-k.GlobalSearch.Theta) > 0.01 {
				t.Errorf("case %d: global search has theta %v, expected %v; lengths (-want +got):\n%s", i, theta, k.GlobalSearch.Theta, diff)
			}
		}
	}
}

func TestKnownSelectionBias(t *testing.T) {
	k := readKnownAnswers(t).SelectionBias
	toy := biasToy{
		a1:        k.A1,
		c2:        func(x int32) float64 { return k.C2[strconv.Itoa(int(x))] },
		perSecond: func(rows int) float64 { return k.SPS[rows-1] },
	}
	for x := range k.P {
		c := [][]float64{{toy.a1, toy.c2(int32(x))}}
		if got := algorithm1(c, toy.perSecond); got != k.Algorithm1Length {
			t.Errorf("algorithm 1 keeps %d drafts after token %d, expected %d", got, x, k.Algorithm1Length)
		}
	}
	checkLaw(t, "live global search", outcomes(t, func(b *branches) []int32 {
		return toy.draw(globalSearch)(b, weights(k.P...), weights(k.Q...))
	}), k.GlobalSearchLaw)
}
