package kernel

import (
	"math"
	"testing"
)

func near(t *testing.T, what string, got, want []float32, tolerance float64) {
	t.Helper()
	for i := range want {
		if !(math.Abs(float64(got[i])-float64(want[i])) <= tolerance) {
			t.Errorf("%s: got %v, want %v", what, got, want)
			return
		}
	}
}

func TestRMSNorm(t *testing.T) {
	x := []float32{3, 4, 0, 0, 1, 1, 1, 1}
	y := make([]float32, 8)
	RMSNorm(y, x, []float32{1, 2, 1, 1}, 0)
	near(t, "two rows", y, []float32{3 / 2.5, 8 / 2.5, 0, 0, 1, 2, 1, 1}, 1e-6)
	RMSNorm(x, x, []float32{1, 2, 1, 1}, 0)
	near(t, "in place", x, y, 0)
}

func TestActivations(t *testing.T) {
	gate := []float32{0, 1, -1, 20, -100}
	SwiGLU(gate, []float32{5, 2, 1, 1, 1})
	near(t, "silu", gate, []float32{0, 2 * 0.7310586, -0.26894143, 20, 0}, 1e-6)
	gate = []float32{0, 1, -1, 20, -100}
	GeGLU(gate, []float32{5, 2, 1, 1, 1})
	near(t, "gelu", gate, []float32{0, 2 * 0.841192, -0.158808, 20, 0}, 1e-6)
}

// A quarter turn of each pair, in both layouts; values beyond 2·half stay.
func TestRotate(t *testing.T) {
	x := []float32{1, 2, 3, 4, 9}
	Rotate(x, 1, 5, []float32{0, 1}, []float32{1, 0}, 2, false)
	near(t, "half-split", x, []float32{-3, 2, 1, 4, 9}, 0)
	x = []float32{1, 2, 3, 4, 9}
	Rotate(x, 1, 5, []float32{0, 1}, []float32{1, 0}, 2, true)
	near(t, "interleaved", x, []float32{-2, 1, 3, 4, 9}, 0)
}
