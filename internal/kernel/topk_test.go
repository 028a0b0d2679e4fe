package kernel

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTopK(t *testing.T) {
	nan, inf, zero := float32(math.NaN()), float32(math.Inf(1)), float32(math.Copysign(0, -1))
	for _, test := range []struct {
		name   string
		scores []float32
		k      int
		want   []int32
	}{
		{"the greatest, in order of indices", []float32{3, 1, 9, 4, -2}, 3, []int32{0, 2, 3}},
		{"all of a short row", []float32{3, nan, 1}, 5, []int32{0, 1, 2}},
		{"all of a row of k", []float32{3, nan, 1}, 3, []int32{0, 1, 2}},
		{"none", []float32{3, 1}, 0, nil},
		{"an empty row", nil, 2, nil},
		{"the first of equal ones", []float32{1, 2, 1, 1, 1}, 3, []int32{0, 1, 2}},
		{"zero has no sign", []float32{zero, 0, zero, 0}, 2, []int32{0, 1}},
		{"zero is above what is negative", []float32{-1e-45, zero, -1, 0}, 2, []int32{1, 3}},
		{"infinities are numbers", []float32{-inf, 1, inf, 2, -inf}, 4, []int32{0, 1, 2, 3}},
		{"numbers before NaN", []float32{nan, -inf, nan, 1, nan}, 2, []int32{1, 3}},
		{"the first NaN if need be", []float32{nan, -inf, nan, 1, nan}, 4, []int32{0, 1, 2, 3}},
		{"nothing but NaN", []float32{nan, nan, -nan, nan}, 2, []int32{0, 1}},
	} {
		pool := NewPool(1)
		got := pool.TopK([][]float32{test.scores}, test.k, nil)
		if diff := gocmp.Diff([][]int32{test.want}, got, gocmp.Transformer("empty", func(s []int32) []int32 { return append([]int32{-1}, s...) })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// topKBySorting is what TopK computes, by its definition.
func topKBySorting(x []float32, k int) []int32 {
	indices := int32s(len(x))
	slices.SortStableFunc(indices, func(a, b int32) int {
		return cmp.Compare(x[b], x[a]) // a NaN is less than all numbers
	})
	top := indices[:min(k, len(x))]
	slices.Sort(top)
	return top
}

// Rows of any kind and length, several at a time: the memory of the result and
// of the workers is used again.
func TestTopKAgainstSorting(t *testing.T) {
	pools := []*Pool{NewPool(1), NewPool(3)}
	for _, p := range pools {
		defer p.Close()
	}
	eachTier(t, func(t *testing.T) {
		var out [][]int32
		rapid.Check(t, func(t *rapid.T) {
			r := drawRand(t)
			k := rapid.SampledFrom([]int{0, 1, 2, 5, 64, 511, 2048}).Draw(t, "k")
			rows := make([][]float32, rapid.IntRange(0, 5).Draw(t, "rows"))
			for i := range rows {
				n := rapid.SampledFrom([]int{0, 1, 5, 64, 65, 600, 4 * topKSample, 5000, 9000}).Draw(t, "n")
				rows[i] = drawScores(t, r, n)
			}
			out = rapid.SampledFrom(pools).Draw(t, "pool").TopK(rows, k, out)
			if len(out) != len(rows) {
				t.Fatalf("%d rows, want %d", len(out), len(rows))
			}
			for i, x := range rows {
				if want := topKBySorting(x, k); !slices.Equal(out[i], want) {
					t.Fatalf("row %d, %d of %d: %v, want %v", i, k, len(x), out[i], want)
				}
			}
		})
	})
}

func drawScores(t *rapid.T, r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	switch rapid.SampledFrom([]string{"normal", "wild", "few values", "rising", "sample on top", "sample of NaN"}).Draw(t, "scores") {
	case "normal":
		fill(r, x, false)
	case "wild":
		fill(r, x, true)
	case "few values":
		for i := range x {
			x[i] = float32(r.IntN(4)) - 2
		}
	case "rising":
		for i := range x {
			x[i] = float32(i)
		}
	case "sample on top": // what is looked at first tells nothing
		fill(r, x, false)
		for i := range min(n, topKSample) {
			x[i*n/topKSample] = 100 + float32(i)
		}
	case "sample of NaN":
		fill(r, x, false)
		for i := range min(n, topKSample) {
			x[i*n/topKSample] = float32(math.NaN())
		}
	}
	return x
}

// Keys have the order of their numbers and lead back to them.
func TestKeys(t *testing.T) {
	ordered := []float32{float32(math.NaN()), float32(math.Inf(-1)), -math.MaxFloat32, -1, -1e-45, 0, 1e-45, 1, math.MaxFloat32, float32(math.Inf(1))}
	for i, v := range ordered {
		if got := keyValue(sortKey(v)); got != v && (got == got || v == v) {
			t.Errorf("the key of %v leads to %v", v, got)
		}
		if i > 0 && sortKey(v) <= sortKey(ordered[i-1]) {
			t.Errorf("the key of %v is not above that of %v", v, ordered[i-1])
		}
	}
	if sortKey(float32(math.Copysign(0, -1))) != sortKey(0) {
		t.Error("-0 and 0 have different keys")
	}
	if sortKey(math.Float32frombits(0xffc00001)) != 0 {
		t.Error("a NaN with a sign has another key")
	}
}
