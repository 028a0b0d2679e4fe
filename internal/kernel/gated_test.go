package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestGatedMeans(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	vector := func(n int, scale float64) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(scale * random.NormFloat64())
		}
		return v
	}
	const dim = 37
	windows := make([]GatedWindow, 60)
	for i := range windows {
		for range 1 + i%9 {
			windows[i].Values = append(windows[i].Values, vector(dim, 1))
			windows[i].Gates = append(windows[i].Gates, vector(dim, math.Pow(10, float64(i%4)-1)))
		}
	}
	one, three := NewPool(1), NewPool(3)
	defer one.Close()
	defer three.Close()
	got, alone := make([]float32, len(windows)*dim), make([]float32, dim)
	three.GatedMeans(got, dim, windows)
	for i, w := range windows {
		for c := range dim {
			var high, sum, total float64 = math.Inf(-1), 0, 0
			for _, g := range w.Gates {
				high = max(high, float64(g[c]))
			}
			for t, g := range w.Gates {
				e := math.Exp(float64(g[c]) - high)
				total, sum = total+e, sum+e*float64(w.Values[t][c])
			}
			if want := sum / total; !(math.Abs(float64(got[i*dim+c])-want) <= 1e-5) {
				t.Fatalf("window %d of %d positions, channel %d: %v, want %v", i, len(w.Gates), c, got[i*dim+c], want)
			}
		}
		if one.GatedMeans(alone, dim, windows[i:i+1]); !slices.Equal(alone, got[i*dim:][:dim]) {
			t.Fatalf("window %d: other bits than alone", i)
		}
	}
}
