//go:build shared

package exec

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// goldenReference is the reference of a golden model.
func goldenReference(t *testing.T, g *golden) *reference {
	t.Helper()
	m := new(testmodel.Model)
	data, err := os.ReadFile(filepath.Join(g.dir, "config.json"))
	if err == nil {
		err = json.Unmarshal(data, &m.Config)
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(filepath.Join(g.dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, name := range c.Names() {
		info, _ := c.Info(name)
		w := testmodel.Tensor{Name: name, Shape: info.Shape}
		if len(info.Shape) == 1 {
			w.Values, err = c.Vector(name)
		} else {
			matrix, matrixErr := c.Matrix(name)
			if err = matrixErr; err == nil {
				w.Values = make([]float32, matrix.Rows*matrix.Cols)
				for r := range matrix.Rows {
					matrix.Row(w.Values[r*matrix.Cols:], r)
				}
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		m.Tensors = append(m.Tensors, w)
	}
	return newReference(t, m)
}

// The reference agrees with the oracle of the golden models, and with any one
// mistake it does not: so the mistakes of a model under test would be seen.
func TestGoldenDeepseekMistakes(t *testing.T) {
	golden := map[string]string{"deepseek_v2": "deepseek2-lite", "deepseek_v3": "deepseek2", "deepseek_v32": "deepseek32"}
	for _, tc := range append([]mistake{{"", "deepseek_v2"}, {"", "deepseek_v3"}, {"", "deepseek_v32"}}, deepseekMistakes...) {
		g := openGolden(t, golden[tc.family])
		r := goldenReference(t, g)
		r.wrong = tc.wrong
		check := g.meta.Checks[0]
		want, last := readFloats(t, filepath.Join(g.dir, check.File)), g.sequences[len(g.sequences)-1]
		got := r.logProbs(last)
		want = want[len(want)-len(last)*len(got[0]):]
		worst := 0.0
		for i, v := range want {
			worst = max(worst, math.Abs(got[i/len(got[0])][i%len(got[0])]-float64(v)))
		}
		if (worst <= check.Tolerance) != (tc.wrong == "") {
			t.Errorf("%s, %q: largest difference %.2g, tolerance %.2g", tc.family, tc.wrong, worst, check.Tolerance)
		}
	}
}

// Golden models with expanded keys and values.
func TestGoldenExpanded(t *testing.T) {
	for _, name := range []string{"deepseek2", "deepseek2-lite", "deepseek32"} {
		for _, file := range []string{"model.gguf", "model.safetensors"} {
			g := openGolden(t, name)
			s := openWith(t, filepath.Join(g.dir, file), 2, exactMode, model.Options{MLAExpanded: true})
			want := readFloats(t, filepath.Join(g.dir, g.meta.Checks[0].File))
			for _, tokens := range g.sequences {
				var table kvcache.Table
				logits := s.logits(t, &table, 0, tokens, 16)
				s.cache.Release(&table)
				for range tokens {
					for i, p := range logSoftmax(logits[:s.vocab]) {
						if diff := math.Abs(p - float64(want[i])); !(diff <= g.meta.Checks[0].Tolerance) {
							t.Fatalf("%s/%s: log-probability %v, want %v", name, file, p, want[i])
						}
					}
					logits, want = logits[s.vocab:], want[s.vocab:]
				}
			}
		}
	}
}
