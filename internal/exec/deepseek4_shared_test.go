//go:build shared

package exec

import (
	"path/filepath"
	"testing"
)

// The reference agrees with the oracle of the golden model, and with any one
// mistake it does not: so the mistakes of a model under test would be seen.
func TestGoldenCompressedMistakes(t *testing.T) {
	g := openGolden(t, "deepseek4")
	check := g.meta.Checks[0]
	all := readFloats(t, filepath.Join(g.dir, check.File))
	r := goldenReference(t, g)
	vocab := r.tensors["lm_head.weight"].Shape[0]
	expected := map[int][]float32{}
	for i, tokens := range g.sequences {
		expected[i], all = all[:len(tokens)*vocab], all[len(tokens)*vocab:]
		if worst := largest(expected[i], r.logProbs(tokens)); !(worst <= check.Tolerance) {
			t.Errorf("sequence %d: largest difference %.2g, tolerance %.2g", i, worst, check.Tolerance)
		}
	}
	const sequence = 2
	for _, r.wrong = range compressedMistakes {
		worst := largest(expected[sequence], r.logProbs(g.sequences[sequence]))
		// Few gates are clamped from above, and by little.
		if few := r.wrong == "silu clamped" || r.wrong == "gate clamped from below"; !few && !(worst >= 50*check.Tolerance) {
			t.Errorf("%q: largest difference %.2g, tolerance %.2g", r.wrong, worst, check.Tolerance)
		}
	}
}
