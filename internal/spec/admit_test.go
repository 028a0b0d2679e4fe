package spec

import (
	"fmt"
	"hash/fnv"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// offer lets an admission have chains of these confidences.
func offer(c [][]float64) *Admission {
	a := new(Admission)
	a.Begin(0)
	for _, chain := range c {
		a.Add(&Draft{Tree: Tree{Tokens: make([]int32, len(chain))}}, chain, 0)
	}
	return a
}

// kept are the numbers of tokens that an admission keeps of chains.
func kept(a *Admission, chains int) []int {
	n := make([]int, chains)
	for r := range n {
		for _, keep := range a.Keep(r) {
			if keep {
				n[r]++
			}
		}
	}
	return n
}

func greedy(c [][]float64, perSecond func(int) float64) ([]int, float64) {
	a := offer(c)
	theta := a.Greedy(perSecond)
	return kept(a, len(c)), theta
}

func top(c [][]float64, budget int) []int {
	a := offer(c)
	a.Top(budget)
	return kept(a, len(c))
}

// search is the best of all budgets, for the drafts at hand.
func search(c [][]float64, perSecond func(int) float64) ([]int, float64) {
	a := offer(c)
	budget, theta := a.Best(perSecond)
	a.Top(budget)
	return kept(a, len(c)), theta
}

// Cutting drafts by algorithm 1, or by a budget that was there before, keeps
// the law of all requests of a batch together, whatever confidences and costs
// are, as long as a confidence reads only the tokens before its own.
func TestAdmissionIsLossless(t *testing.T) {
	for name, admit := range map[string]func(c [][]float64, budget int, perSecond func(int) float64) []int{
		"algorithm 1": func(c [][]float64, _ int, perSecond func(int) float64) []int {
			kept, _ := greedy(c, perSecond)
			return kept
		},
		"stale budget, live top": func(c [][]float64, budget int, _ func(int) float64) []int {
			return top(c, budget)
		},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				seed := rapid.Uint64().Draw(t, "seed")
				number := func(n int, of ...any) int {
					h := fnv.New64a()
					fmt.Fprint(h, seed, of)
					return int(h.Sum64() % uint64(n))
				}
				models := []toy{randomToy(seed, 2, 9), randomToy(seed+1, 2, 9)}
				budget := rapid.IntRange(0, 4).Draw(t, "budget")
				perSecond := func(rows int) float64 { return 1 + float64(number(4, rows)) }
				got := outcomes(t, func(b *branches) (text []int32) {
					var drafts []*Draft
					var c [][]float64
					for r, m := range models {
						d := m.drawChain(b, nil, 2)
						drafts = append(drafts, d)
						chain := make([]float64, d.Len())
						for i := range chain {
							chain[i] = float64(number(5, r, d.Tokens[:i])) / 4
						}
						c = append(c, chain)
					}
					for r, n := range admit(c, budget, perSecond) {
						d := drafts[r]
						d.Truncate(n)
						v, err := new(Verifier).Rejection(d, models[r].rows(nil, d), b)
						out := verify(d, v, err)
						for len(out) < 3 {
							out = append(out, b.Pick(0, models[r].p(out)))
						}
						text = append(text, out[:3]...)
					}
					return text
				})
				want := outcomes(t, func(b *branches) (text []int32) {
					for _, m := range models {
						var out []int32
						for range 3 {
							out = append(out, b.Pick(0, m.p(out)))
						}
						text = append(text, out...)
					}
					return text
				})
				if diff := got.Differs(want); diff != "" {
					t.Fatal(diff)
				}
			})
		})
	}
}

func TestGreedyAdmission(t *testing.T) {
	three := [][]float64{{.95, .9, .8}, {.6, .5, .4}, {.99, .98, .3}}
	for _, c := range []struct {
		name       string
		confidence [][]float64
		perSecond  func(rows int) float64
		kept       []int
		theta      string
	}{
		{"rows are cheap", three, func(b int) float64 { return 1000 / (10 + 0.5*float64(b)) }, []int{3, 2, 3}, "557.436"},
		{"rows are dear", three, func(b int) float64 { return 1000 / (10 + 4*float64(b)) }, []int{2, 0, 2}, "178.032"},
		{"a step that does not pay ends it", three, func(b int) float64 {
			switch {
			case b <= 4:
				return 100
			case b <= 8:
				return 1000. / 18
			}
			return 1000. / 26
		}, []int{0, 0, 1}, "399.000"},
		{"one request", [][]float64{{.95, .92, .85, .3}}, func(b int) float64 {
			return []float64{0, 1000, 520, 400, 340, 280}[b]
		}, []int{3}, "1212.746"},
		{"what does not raise theta is not admitted", [][]float64{{1}}, func(b int) float64 { return 1 / float64(b) }, []int{0}, "1.000"},
		{"no drafts", [][]float64{{}, nil}, func(int) float64 { return 10 }, []int{0, 0}, "20.000"},
		{"no requests", nil, func(int) float64 { return 10 }, []int{}, "0.000"},
	} {
		kept, theta := greedy(c.confidence, c.perSecond)
		if !slices.Equal(kept, c.kept) || fmt.Sprintf("%.3f", theta) != c.theta {
			t.Errorf("%s: kept %v, theta %.3f, expected %v, %s", c.name, kept, theta, c.kept, c.theta)
		}
	}
}

func TestTopAdmission(t *testing.T) {
	for budget, want := range [][]int{
		{0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {1, 0, 2}, {2, 0, 2}, {3, 0, 2}, {3, 1, 2}, {3, 2, 2}, {3, 2, 3}, {3, 3, 3}, {3, 3, 3},
	} {
		got := top([][]float64{{.95, .9, .8}, {.6, .5, .4}, {.99, .98, .3}}, budget)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("budget %d (-want +got):\n%s", budget, diff)
		}
	}
	// Ties: the earlier position, then the earlier request.
	for budget, want := range [][]int{{0, 0}, {1, 0}, {1, 1}, {2, 1}, {2, 2}} {
		if diff := cmp.Diff(want, top([][]float64{{1, 1}, {1, 1}}, budget)); diff != "" {
			t.Errorf("ties, budget %d (-want +got):\n%s", budget, diff)
		}
	}
}
