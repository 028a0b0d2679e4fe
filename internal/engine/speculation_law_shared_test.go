//go:build shared

package engine

import (
	"testing"

	"github.com/foretoken/foretoken/internal/fixtures"
)

// The same of golden models: of grouped queries, and of latent attention with
// experts.
func TestSpeculationKeepsTheLawOfGolden(t *testing.T) {
	for _, of := range []struct{ model, drafter string }{{"llama", "self:layers=0"}, {"deepseek2", "self:q4"}} {
		path := fixtures.Golden(t, "models", of.model, "model.gguf")
		for _, o := range []Speculation{
			{Method: draftModel, Model: of.drafter, Tokens: 3, Verify: rejection, Fixed: true},
			{Method: draftModel, Model: "self:q4", Tokens: 3, Verify: rejection}, // as much as pays
			{Method: draftModel, Model: of.drafter, Tokens: 3, Verify: block, Fixed: true},
			{Method: draftModel, Model: of.drafter, Tokens: 3, Verify: coupled, Fixed: true},
			{Method: suffix, Tokens: 3, Verify: rejection, Fixed: true},
		} {
			t.Run(of.model+" "+o.Method+" "+o.Model+" "+o.Verify, func(t *testing.T) { keepsTheLaw(t, path, o) })
		}
	}
}
