package kernel

import (
	"math"
	"slices"
	"testing"
)

func TestLayerNorm(t *testing.T) {
	pool := NewPool(1)
	w, b := []float32{1, 2, 1, 1}, []float32{0, 1, 0, 0}
	for _, test := range []struct {
		name    string
		x       []float32
		eps     float32
		want    []float32
		bounded float64
	}{
		{"mean 3, variance 4", []float32{1, 1, 5, 5}, 0, []float32{-1, -1, 1, 1}, 0},
		{"eps is under the root", []float32{0, 2, 4, 6}, 4, []float32{-1, 1 - 2.0/3, 1.0 / 3, 1}, 2e-7},
		{"equal values", []float32{7, 7, 7, 7}, 1e-6, b, 0},
		{"far from zero", []float32{1e6 - 1, 1e6 + 1, 1e6 - 1, 1e6 + 1}, 0, []float32{-1, 3, -1, 1}, 2e-7},
		{"two rows", []float32{7, 7, 7, 7, 0, 2, 4, 6}, 4, []float32{0, 1, 0, 0, -1, 1 - 2.0/3, 1.0 / 3, 1}, 2e-7},
	} {
		y := make([]float32, len(test.x))
		pool.LayerNorm(y, test.x, w, b, test.eps)
		near(t, test.name, y, test.want, test.bounded)
		pool.LayerNorm(test.x, test.x, w, b, test.eps)
		near(t, test.name+", in place", test.x, y, 0)
	}
	pool.LayerNorm(nil, nil, nil, nil, 0) // a width of nothing
}

// The same row alone and among others, on any number of workers.
func TestLayerNormRowIndependence(t *testing.T) {
	const n, rows = 128, 3 * rowGrain / 128
	pool := NewPool(3)
	defer pool.Close()
	x, w, b := random(1, rows*n), random(2, n), random(3, n)
	x[5*n] = float32(math.NaN())
	y, alone := make([]float32, rows*n), make([]float32, n)
	pool.LayerNorm(y, x, w, b, 1e-6)
	for _, row := range []int{0, 4, 5, 6, rows - 1} {
		NewPool(1).LayerNorm(alone, slices.Clone(x[row*n:][:n]), w, b, 1e-6)
		if err := within(0, y[row*n:][:n], alone); err != nil {
			t.Errorf("row %d: %v", row, err)
		}
		if spoiled := alone[0] != alone[0]; spoiled != (row == 5) {
			t.Errorf("row %d is NaN: %v", row, spoiled)
		}
	}
}
