//go:build shared

package model

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foretoken/foretoken/internal/fixtures"
	"github.com/foretoken/foretoken/internal/tensor"
)

// Both files of every golden model are described alike, and keep what they are
// described to keep.
func TestGoldenDescriptions(t *testing.T) {
	for _, name := range fixtures.Models {
		var descriptions []Description
		for _, file := range []string{"model.safetensors", "model.gguf"} {
			m, err := open(t, filepath.Join(fixtures.Golden(t, "models", name), file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(m.Cache(), m.Config().Cache()); diff != "" {
				t.Errorf("%s, %s: model and configuration (-, +):\n%s", name, file, diff)
			}
			descriptions = append(descriptions, m.Config().Describe(tensor.BF16))
		}
		if diff := cmp.Diff(descriptions[0], descriptions[1]); diff != "" {
			t.Errorf("%s: safetensors and GGUF (-, +):\n%s", name, diff)
		}
	}
}
