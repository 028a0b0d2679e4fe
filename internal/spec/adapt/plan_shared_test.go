//go:build shared

package adapt

import (
	"math"
	"testing"

	"github.com/foretoken/foretoken/internal/fixtures"
)

// The formula of chains in golden/spec/kat.json.
func TestKnownChainFormula(t *testing.T) {
	var known struct {
		Chains []struct {
			Alpha, Tokens float64
			Gamma         int
		} `json:"chain_formula"`
	}
	fixtures.ReadJSON(t, fixtures.Golden(t, "spec", "kat.json"), &known)
	if len(known.Chains) == 0 {
		t.Fatal("no known answers, expected some")
	}
	flat := profiled(t, []int{1, 1000}, 10*ms, 10*ms)
	for _, k := range known.Chains {
		if got := Plan([]float64{k.Alpha}, 0, false, flat, 1, k.Gamma)[k.Gamma].Tokens; math.Abs(got-k.Tokens) > 5e-4 {
			t.Errorf("α = %v, γ = %d: %v tokens, expected %v", k.Alpha, k.Gamma, got, k.Tokens)
		}
	}
}
