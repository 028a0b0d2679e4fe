package kernel

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Sylvester's matrix: entry i, j is -1 to the number of ones in i & j.
func TestHadamardAgainstMatrix(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for n := 1; n <= 512; n *= 2 {
			pool := NewPool(2)
			defer pool.Close()
			const rows = 3
			x := random(uint64(n), rows*n)
			got := slices.Clone(x)
			pool.Hadamard(got, n)
			for row := range rows {
				for i := range n {
					var want, size float64
					for j, v := range x[row*n:][:n] {
						sign := 1 - 2*float64(bits.OnesCount(uint(i&j))%2)
						want += sign * float64(v)
						size += math.Abs(float64(v))
					}
					want /= math.Sqrt(float64(n))
					if g := float64(got[row*n+i]); !(math.Abs(g-want) <= 1e-6*size) {
						t.Fatalf("%d values, row %d: value %d is %v, want %v", n, row, i, g, want)
					}
				}
			}
		}
	})
}

// The matrix is its own inverse.
func TestHadamardTwice(t *testing.T) {
	pool := NewPool(1)
	eachTier(t, func(t *testing.T) {
		for _, n := range []int{1, 2, 64, 128, 256} {
			x := random(1, 2*n)
			got := slices.Clone(x)
			pool.Hadamard(got, n)
			pool.Hadamard(got, n)
			near(t, "twice", got, x, 2e-6)
		}
	})
}

func TestHadamardAgainstTwin(t *testing.T) {
	eachTier(t, rapidCheck(func(t *rapid.T) {
		r := drawRand(t)
		n := 1 << rapid.IntRange(0, 9).Draw(t, "log n")
		x, check := guarded[float32](n, 7)
		fill(r, x, rapid.Bool().Draw(t, "wild"))
		want := slices.Clone(x)
		hadamardGeneric(want)
		active.indexer.hadamard(x)
		for _, err := range []error{within(0, x, want), check()} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}))
}

func TestHadamardRefusesOtherSizes(t *testing.T) {
	for _, n := range []int{0, -2, 3, 96} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d rows are accepted", n)
				}
			}()
			NewPool(1).Hadamard(make([]float32, 96), n)
		}()
	}
}
