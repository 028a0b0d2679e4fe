package kernel

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestClampedSwiGLU(t *testing.T) {
	pool := NewPool(1)
	silu := func(x float64) float32 { return float32(x / (1 + math.Exp(-x))) }
	nan := float32(math.NaN())
	eachTier(t, func(t *testing.T) {
		gate := []float32{1, 3, -20, 1, 1, 100, nan, 1}
		up := []float32{1, 1, 1, 5, -5, -100, 1, nan}
		pool.ClampedSwiGLU(gate, up, 2)
		near(t, "gate", gate[:6], []float32{silu(1), silu(2), silu(-20), 2 * silu(1), -2 * silu(1), -2 * silu(2)}, 1e-6)
		near(t, "up", up[:7], []float32{1, 1, 1, 2, -2, -2, 1}, 0)
		if gate[6] == gate[6] || gate[7] == gate[7] {
			t.Errorf("NaN became %v", gate[6:])
		}
	})
}

// It is SwiGLU where nothing is clamped, wherever a value lies and on any
// number of workers.
func TestClampedSwiGLUIsSwiGLU(t *testing.T) {
	pool := NewPool(3)
	defer pool.Close()
	eachTier(t, func(t *testing.T) {
		gate, up := random(1, 3*rowGrain+5), random(2, 3*rowGrain+5)
		want := slices.Clone(gate)
		NewPool(1).SwiGLU(want, up)
		pool.ClampedSwiGLU(gate, up, 100)
		if !sameBits(gate, want) {
			t.Error("the results differ")
		}
	})
}

func TestClampAgainstTwin(t *testing.T) {
	eachTier(t, rapidCheck(func(t *rapid.T) {
		x, check := guarded[float32](rapid.IntRange(0, 150).Draw(t, "n"), 7)
		fill(drawRand(t), x, rapid.Bool().Draw(t, "wild"))
		low := rapid.SampledFrom([]float32{negInf, -10, -0.5}).Draw(t, "low")
		want := slices.Clone(x)
		clampGeneric(want, low, 0.7)
		active.indexer.clamp(x, low, 0.7)
		for _, err := range []error{within(0, x, want), check()} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}))
}
