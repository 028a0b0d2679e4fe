package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foretoken/foretoken/internal/testmodel"
)

// Broken weights are an error, not a perplexity of null and a file of NaN.
func TestScoreRefusesWhatIsNotFinite(t *testing.T) {
	for _, value := range []float64{math.NaN(), math.Inf(1), 3e38} {
		m := testmodel.New(testmodel.Family("llama"))
		norm := m.Tensor("model.norm.weight")
		for i := range norm.Values {
			norm.Values[i] = float32(value)
		}
		dir := t.TempDir()
		if err := m.WriteSafetensors(dir); err != nil {
			t.Fatal(err)
		}
		tokens, out := filepath.Join(dir, "tokens.json"), filepath.Join(dir, "out.f32")
		if err := os.WriteFile(tokens, []byte("[1, 2, 3]"), 0o644); err != nil {
			t.Fatal(err)
		}
		c := scoreCmd{Model: dir, Tokens: tokens, LogProbs: out, DType: "float32", KVCacheDType: "f32"}
		err := c.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "sequence 0: row 0: the logits are not finite") {
			t.Errorf("weights of %v: %v", value, err)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("weights of %v: log-probabilities were written", value)
		}
	}
}
