package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
	"pgregory.net/rapid"
)

// newIndexKV makes room for n keys of each sequence. What is not stored is NaN.
func newIndexKV(d tensor.DType, dim, sequences, n int) *kvMemory {
	kv := &kvMemory{blockBytes: KVBlock * d.RowBytes(dim)}
	kv.reserve(sequences, max(n, 1))
	return kv
}

// indexKeys are the keys of a sequence, [n, dim].
func indexKeys(seq, n, dim int) []float32 { return random(uint64(100+seq), n*dim) }

// newIndex is an index of rows of seqs that score all of n keys.
func newIndex(d tensor.DType, heads, dim, n int, seqs []int32) Index {
	rows := len(seqs)
	x := Index{
		Heads: heads, Dim: dim, DType: d, Seqs: seqs, To: slices.Repeat([]int32{int32(n)}, rows),
		Q: random(1, rows*heads*dim), W: random(2, rows*heads),
	}
	sequences := 0
	for _, seq := range seqs {
		sequences = max(sequences, int(seq)+1)
		x.Scores = append(x.Scores, make([]float32, n))
	}
	x.KV = newIndexKV(d, dim, sequences, n)
	pool := NewPool(1)
	defer pool.Close()
	for seq := range sequences {
		pool.StoreKeys(x.KV, d, indexKeys(seq, n, dim), dim, slices.Repeat([]int32{int32(seq)}, n), int32s(n))
	}
	return x
}

func int32s(n int) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}

// Scores are those of the definition, of the keys as the cache holds them; in
// pairs, queries are rounded to bfloat16 too.
func TestIndexScoresAgainstFloat64(t *testing.T) {
	const n = 150
	eachAttention(t, func(t *testing.T) {
		for _, d := range cacheTypes {
			for _, shape := range []struct{ heads, dim int }{{64, 128}, {1, 32}, {4, 64}, {7, 96}, {3, 33}} {
				if d == tensor.Q8_0 && shape.dim%32 != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%v %dx%d", d, shape.heads, shape.dim), func(t *testing.T) {
					x := newIndex(d, shape.heads, shape.dim, n, []int32{0, 0, 1})
					x.To = []int32{0, 77, n}
					pool := NewPool(2)
					defer pool.Close()
					pool.IndexScores(x)
					if layoutOf(d, shape.dim, 0).kind == kvPairs {
						roundTrip(d, x.Q)
					}
					for row, to := range x.To {
						keys := indexKeys(int(x.Seqs[row]), n, shape.dim)
						roundTrip(d, keys)
						for s := range int(to) {
							want, size := indexScore(&x, row, keys[s*shape.dim:][:shape.dim])
							if got := float64(x.Scores[row][s]); !(math.Abs(got-want) <= 1e-5*size) {
								t.Fatalf("row %d, key %d: %v, want %v", row, s, got, want)
							}
						}
						if slices.ContainsFunc(x.Scores[row][to:], func(v float32) bool { return v != 0 }) {
							t.Errorf("row %d: scores of keys from %d on are written", row, to)
						}
					}
				})
			}
		}
	})
}

// indexScore is one score by its definition, and the size of what it sums.
func indexScore(x *Index, row int, key []float32) (score, size float64) {
	for h := range x.Heads {
		var s, abs float64
		for i, k := range key {
			product := float64(x.Q[(row*x.Heads+h)*x.Dim+i]) * float64(k)
			s += product
			abs += math.Abs(product)
		}
		w := float64(x.W[row*x.Heads+h])
		score += max(s, 0) * w
		size += abs * math.Abs(w)
	}
	return score, size
}

// The bits of a row's scores are those it has alone on one worker: whatever
// rows are beside it, how far they see and how many workers there are.
func TestIndexScoresRowIndependence(t *testing.T) {
	eachAttention(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			d := rapid.SampledFrom(cacheTypes).Draw(t, "dtype")
			heads, dim := rapid.IntRange(1, 9).Draw(t, "heads"), rapid.SampledFrom([]int{32, 64}).Draw(t, "dim")
			n := rapid.SampledFrom([]int{1, 31, 32, 33, 200, 3000}).Draw(t, "keys")
			seqs := rapid.SliceOfN(rapid.Int32Range(0, 2), 1, 20).Draw(t, "seqs")
			slices.Sort(seqs)
			x := newIndex(d, heads, dim, n, seqs)
			for row := range x.To {
				x.To[row] = rapid.Int32Range(0, int32(n)).Draw(t, "to")
			}
			pool := NewPool(rapid.SampledFrom([]int{1, 2, 5}).Draw(t, "workers"))
			defer pool.Close()
			pool.IndexScores(x)

			row := rapid.IntRange(0, len(seqs)-1).Draw(t, "row")
			alone := x
			alone.Q, alone.W = x.Q[row*heads*dim:][:heads*dim], x.W[row*heads:][:heads]
			alone.Seqs, alone.To = seqs[row:row+1], []int32{int32(n)}
			alone.Scores = [][]float32{make([]float32, n)}
			one := NewPool(1)
			one.IndexScores(alone)
			to := x.To[row]
			if got, want := x.Scores[row][:to], alone.Scores[0][:to]; !sameBits(got, want) {
				t.Fatalf("row %d: %v, alone %v", row, got, want)
			}
		})
	})
}

// What is NaN or infinite in a key raises the key's own score to +Inf, in a query
// or weight those of its row: it cannot be missed by who takes the greatest.
func TestIndexScoresOfNonFinite(t *testing.T) {
	const heads, dim, n, bad = 5, 64, 70, 40
	inf := float32(math.Inf(1))
	eachAttention(t, func(t *testing.T) {
		pool := NewPool(2)
		defer pool.Close()
		for _, d := range cacheTypes {
			for _, value := range []float32{float32(math.NaN()), inf} {
				for _, test := range []struct {
					name  string
					spoil func(x *Index)
					where func(row, s int) bool
				}{
					{"key", func(x *Index) {
						pool.StoreKeys(x.KV, d, slices.Repeat([]float32{value}, dim), dim, []int32{0}, []int32{bad})
					}, func(_, s int) bool { return s == bad }},
					{"query", func(x *Index) { copy(x.Q[(heads+2)*dim:], slices.Repeat([]float32{value}, dim)) }, func(row, _ int) bool { return row == 1 }},
					{"weight", func(x *Index) { x.W[heads+4] = value }, func(row, _ int) bool { return row == 1 }},
					{"weight below", func(x *Index) { x.W[heads+4] = -value }, func(row, _ int) bool { return row == 1 }},
				} {
					x := newIndex(d, heads, dim, n, []int32{0, 0, 0})
					keys := indexKeys(0, n, dim)
					for _, values := range [][]float32{x.Q, keys} {
						for i, v := range values {
							values[i] = max(v, -v) // the relu of -Inf is 0, as of all below
						}
					}
					pool.StoreKeys(x.KV, d, keys, dim, make([]int32, n), int32s(n))
					test.spoil(&x)
					pool.IndexScores(x)
					for row, scores := range x.Scores {
						for s, v := range scores {
							if finite := v-v == 0; finite == test.where(row, s) || !finite && v != inf {
								t.Fatalf("%v, %v in a %s: row %d scores key %d with %v", d, value, test.name, row, s, v)
							}
						}
					}
				}
			}
		}
	})
}

// A key is found where it is stored, whatever is stored around it and in
// whatever order and by how many workers.
func TestStoreKeys(t *testing.T) {
	eachAttention(t, func(t *testing.T) {
		for _, d := range cacheTypes {
			const dim, n = 64, 2*KVBlock + 5
			slots := make([]int32, n)
			for i := range slots {
				slots[i] = int32(i * 7 % n)
			}
			keys := random(7, n*dim)
			kv := newIndexKV(d, dim, 2, n)
			seqs := slices.Repeat([]int32{1}, n)
			pool := NewPool(3)
			defer pool.Close()
			pool.StoreKeys(kv, d, keys, dim, seqs, slots)
			roundTrip(d, keys)
			for i := range dim {
				x := Index{Heads: 1, Dim: dim, DType: d, Q: make([]float32, dim), W: []float32{1}, Seqs: []int32{1}, To: []int32{n}, KV: kv}
				x.Q[i] = 1
				x.Scores = [][]float32{make([]float32, n)}
				pool.IndexScores(x)
				for row, slot := range slots {
					if got, want := x.Scores[0][slot], max(0, keys[row*dim+i]); got != want {
						t.Fatalf("%v: dimension %d of the key in slot %d is %v, want %v", d, i, slot, got, want)
					}
				}
			}
		}
	})
}

func TestIndexDoesNotAllocate(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for _, d := range cacheTypes {
			pool := NewPool(3)
			defer pool.Close()
			const n, dim = 600, 64
			x := newIndex(d, 4, dim, n, []int32{0, 0, 1})
			keys, seqs, slots := indexKeys(0, n, dim), make([]int32, n), int32s(n)
			top := pool.TopK(x.Scores, 64, nil)
			// A worker's memory grows when it first comes in time for a task, which on
			// a busy machine may take many calls.
			allocs := 1.0
			for i := 0; i < 200 && allocs != 0; i++ {
				allocs = testing.AllocsPerRun(20, func() {
					pool.StoreKeys(x.KV, d, keys, dim, seqs, slots)
					pool.IndexScores(x)
					top = pool.TopK(x.Scores, 64, top)
					pool.Hadamard(keys, dim)
					pool.RoundE4M3(keys, dim)
					pool.RoundE2M1(keys, 32)
					pool.LayerNorm(keys, keys, keys[:dim], keys[:dim], 1e-6)
					pool.ClampedSwiGLU(keys, keys, 10)
				})
			}
			if allocs != 0 {
				t.Errorf("%v: %v allocations", d, allocs)
			}
		}
	})
}
