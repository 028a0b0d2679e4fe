//go:build shared

package exec

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"
)

// The reference agrees with the oracle of the golden mixtures, and with any one
// mistake it does not: so the mistakes of a model under test would be seen.
func TestGoldenExpertMistakes(t *testing.T) {
	for _, name := range []string{"mixtral", "qwen3moe"} {
		g := openGolden(t, name)
		check := g.meta.Checks[0]
		r := goldenReference(t, g)
		if r.LocalExperts > 0 { // the reference reads Mixtral's own names
			own := strings.NewReplacer(".mlp.", ".block_sparse_moe.", "gate_proj", "w1", "up_proj", "w3", "down_proj", "w2")
			for name, tensor := range maps.Clone(r.tensors) {
				r.tensors[own.Replace(name)] = tensor
			}
		}
		for _, r.wrong = range []string{
			"", "second best", "one expert too few", "sigmoid", "gate for up", "weights before the activation", "no weights", "not normalised",
		} {
			want, worst := readFloats(t, filepath.Join(g.dir, check.File)), 0.0
			for _, tokens := range g.sequences {
				rows := r.logProbs(tokens)
				n := len(rows) * len(rows[0])
				worst = max(worst, largest(want[:n], rows))
				want = want[n:]
			}
			if (worst <= check.Tolerance) != (r.wrong == "") {
				t.Errorf("%s, %q: largest difference %.2g, tolerance %.2g", name, r.wrong, worst, check.Tolerance)
			}
		}
	}
}
