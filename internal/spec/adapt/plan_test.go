package adapt

import (
	"fmt"
	"math"
	"testing"
)

// With steps that cost the same whatever their rows, a plan is Leviathan's
// theorem 3.8: α 0.8 and 7 drafts give 4.161 tokens, α 0.9 and 15 8.147.
func TestPlanOfConstantSteps(t *testing.T) {
	flat := profiled(t, []int{1, 1000}, 10*ms, 10*ms)
	for _, c := range []struct {
		alpha  float64
		gamma  int
		tokens string
	}{{0.8, 7, "4.161"}, {0.9, 15, "8.147"}} {
		o := Plan([]float64{c.alpha}, 0.05, false, flat, 1, 16)[c.gamma]
		if got := fmt.Sprintf("%.3f", o.Tokens); got != c.tokens || o.Gamma != c.gamma {
			t.Errorf("α %v, %d drafts: %s tokens of %d drafts, expected %s", c.alpha, c.gamma, got, o.Gamma, c.tokens)
		}
		if want := o.Tokens / (1 + 0.05*float64(c.gamma)); math.Abs(o.Speedup-want) > 1e-12 {
			t.Errorf("α %v, %d drafts: speed-up %v, expected %v", c.alpha, c.gamma, o.Speedup, want)
		}
	}
}

func TestPlan(t *testing.T) {
	// Four rows take what one does, then each adds as much as the first.
	steps := profiled(t, []int{1, 4, 5, 64}, 10*ms, 10*ms, 20*ms, 610*ms)
	for _, c := range []struct {
		name        string
		alpha       []float64
		c           float64
		block       bool
		concurrency int
		gamma       int
		speedup     string
	}{
		{"what the rows allow", []float64{0.9}, 0.1, false, 1, 3, "2.645"},
		{"a pass for each token is too much", []float64{0.3, 0.1}, 0.35, false, 1, 0, "1.000"},
		{"a block costs once", []float64{0.9}, 0.35, true, 1, 3, "2.547"},
		{"no room for two at once", []float64{0.9}, 0.1, false, 4, 0, "1.000"},
		{"two at once", []float64{0.9, 0.5}, 0.1, false, 2, 1, "1.727"},
		{"nothing is known", nil, 0.1, false, 1, 0, "1.000"},
	} {
		best := BestOption(Plan(c.alpha, c.c, c.block, steps, c.concurrency, 8))
		if got := fmt.Sprintf("%.3f", best.Speedup); best.Gamma != c.gamma || got != c.speedup {
			t.Errorf("%s: %d drafts give %s, expected %d and %s", c.name, best.Gamma, got, c.gamma, c.speedup)
		}
	}
}
