package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A term is what an expert made of a row.
type term struct {
	expert int32
	weight float32
	x      []float32
}

// sumShards adds the terms of shards [from, to) as a balanced binary tree.
func sumShards(terms []term, experts, from, to, width int) []float32 {
	sum := make([]float32, width)
	if to-from > 1 {
		middle := (from + to) / 2
		left, right := sumShards(terms, experts, from, middle, width), sumShards(terms, experts, middle, to, width)
		for i := range sum {
			sum[i] = left[i] + right[i]
		}
		return sum
	}
	for _, t := range terms {
		if int(t.expert)*8/experts == from {
			for i, v := range t.x {
				sum[i] += float32(v * t.weight)
			}
		}
	}
	return sum
}

// combineCase draws rows of terms and lays them out for Combine, in a random order.
func combineCase(r *rand.Rand, rows, width, experts, chosen int, weighed bool) (c Combination, terms [][]term) {
	c = Combination{
		Y: make([]float32, rows*width), X: make([]float32, rows*chosen*width), Width: width, Experts: experts, Active: chosen,
	}
	for i := range c.Y {
		c.Y[i] = float32(math.NaN())
	}
	places := r.Perm(rows * chosen)
	for row := range rows {
		picked := r.Perm(experts)[:chosen]
		slices.Sort(picked)
		var list []term
		for i, e := range picked {
			t := term{expert: int32(e), weight: 1}
			if weighed {
				t.weight = r.Float32()
				c.Weights = append(c.Weights, t.weight)
			}
			for range width {
				t.x = append(t.x, float32(r.NormFloat64()))
			}
			place := places[row*chosen+i]
			c.Chosen, c.Places = append(c.Chosen, t.expert), append(c.Places, int32(place))
			copy(c.X[place*width:], t.x)
			list = append(list, t)
		}
		terms = append(terms, list)
	}
	return c, terms
}

// Combine sums in the order of experts and shards, to the bit, and that order
// differs from others.
func TestCombine(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		r := rand.New(rand.NewPCG(1, 2))
		inOrder := 0
		for _, experts := range []int{1, 2, 6, 8, 9, 64, 130} {
			for _, rows := range []int{1, 3, 40} {
				for _, shared := range []bool{false, true} {
					const width = 67
					c, terms := combineCase(r, rows, width, experts, min(experts, 6), r.IntN(2) == 0)
					if shared {
						c.Shared = make([]float32, rows*width)
						for i := range c.Shared {
							c.Shared[i] = float32(r.NormFloat64())
						}
					}
					p.Combine(c)
					for row, list := range terms {
						want := sumShards(list, experts, 0, 8, width)
						for i, got := range c.Y[row*width : (row+1)*width] {
							plain := float32(0)
							for _, term := range list {
								plain += float32(term.x[i] * term.weight)
							}
							if plain != want[i] {
								inOrder++
							}
							if shared {
								want[i] += c.Shared[row*width+i]
							}
							if math.Float32bits(got) != math.Float32bits(want[i]) {
								t.Fatalf("%d experts, row %d of %d, value %d: %v, want %v", experts, row, rows, i, got, want[i])
							}
						}
					}
				}
			}
		}
		if inOrder == 0 {
			t.Error("summed one after the other, terms give the same bits")
		}
	})
}

// Whatever the signs of zeros, their sum is +0: a rank without experts adds that.
func TestCombineZeros(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	minus := float32(math.Copysign(0, -1))
	c := Combination{
		Y: make([]float32, 1), X: []float32{minus, minus}, Width: 1,
		Experts: 8, Active: 2, Chosen: []int32{1, 5}, Places: []int32{0, 1},
	}
	p.Combine(c)
	if math.Signbit(float64(c.Y[0])) {
		t.Error("the sum is -0")
	}
}

// What is not a number in one row stays there.
func TestCombineNaN(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	c, _ := combineCase(rand.New(rand.NewPCG(3, 4)), 3, 40, 8, 2, true)
	c.Weights[2], c.Weights[3] = float32(math.NaN()), float32(math.NaN())
	p.Combine(c)
	for i, v := range c.Y {
		if (v != v) != (i/40 == 1) {
			t.Fatalf("value %d of row %d is %v", i%40, i/40, v)
		}
	}
}

func TestScaleRows(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		const n = 3000
		x, a := make([]float32, 50*n), make([]float32, 50)
		for i := range x {
			x[i] = float32(i)
		}
		for i := range a {
			a[i] = float32(i) / 8
		}
		p.ScaleRows(x, n, a)
		for i, v := range x {
			if v != float32(i)*a[i/n] {
				t.Fatalf("value %d is %v, want %v", i, v, float32(i)*a[i/n])
			}
		}
	})
}

func TestEach(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	for _, n := range []int{0, 1, 5, 100} {
		calls := make([]int, n)
		p.Each(n, 4, func(i int) { calls[i]++ })
		if slices.ContainsFunc(calls, func(c int) bool { return c != 1 }) {
			t.Errorf("of %d: called %v times", n, calls)
		}
	}
}
