package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
)

// kvMemory is a KV of some sequences. What was never stored is NaN.
type kvMemory struct {
	blockBytes int
	blocks     [][][]byte // [sequence][block]
}

func (m *kvMemory) Block(seq, b int) []byte {
	for seq >= len(m.blocks) {
		m.blocks = append(m.blocks, nil)
	}
	for b >= len(m.blocks[seq]) {
		block := make([]byte, m.blockBytes)
		for i := range block {
			block[i] = 0xff
		}
		m.blocks[seq] = append(m.blocks[seq], block)
	}
	return m.blocks[seq][b]
}

// reserve makes blocks for positions, so that workers need not.
func (m *kvMemory) reserve(sequences, positions int) {
	for s := range sequences {
		m.Block(s, (positions-1)/KVBlock)
	}
}

func newKV(a *Attention) *kvMemory {
	return &kvMemory{blockBytes: KVBlock * a.KVHeads * (a.DType.RowBytes(a.KeyDim) + a.DType.RowBytes(a.ValueDim))}
}

// eachAttention runs f on every tier, and in plain Go with the caches that
// AVX512_BF16 has.
func eachAttention(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	eachTier(t, f)
	t.Run("pairs in plain Go", func(t *testing.T) {
		saved := active
		t.Cleanup(func() { active = saved })
		active = kernelsFor(CPU{Tier: Generic, BF16: true})
		f(t)
	})
}

// In pairs, queries are rounded to bfloat16, and so are weights, which changes
// each by no more than 2⁻⁹ of it and their sum by as much.
func TestAttentionAgainstFloat64(t *testing.T) {
	type shape struct {
		name                             string
		heads, kvHeads, keyDim, valueDim int
		window                           int
	}
	shapes := []shape{
		{"one head to one", 4, 4, 12, 12, 0},
		{"three heads to one", 9, 3, 64, 64, 0},
		{"seven heads to one", 14, 2, 64, 64, 0},
		{"one key-value head", 4, 1, 96, 96, 0},
		{"window inside a block", 4, 2, 128, 128, 5},
		{"window of several blocks", 4, 2, 32, 32, 70},
		{"keys wider than values", 4, 2, 192, 128, 0},
		{"a narrow panel", 2, 1, 80, 80, 0},
		{"odd widths", 2, 2, 33, 7, 40},
		{"half a narrow panel", 2, 1, 72, 72, 0},
	}
	eachAttention(t, func(t *testing.T) {
		for _, d := range cacheTypes {
			for _, s := range shapes {
				if d == tensor.Q8_0 && (s.keyDim%32 != 0 || s.valueDim%32 != 0) {
					continue
				}
				t.Run(fmt.Sprintf("%v %s", d, s.name), func(t *testing.T) {
					const positions = 150
					k, v := random(1, positions*s.kvHeads*s.keyDim), random(2, positions*s.kvHeads*s.valueDim)
					a := Attention{
						Heads: s.heads, KVHeads: s.kvHeads, KeyDim: s.keyDim, ValueDim: s.valueDim, Scale: 0.3, Window: s.window, DType: d,
						K: k, V: v, Seqs: make([]int32, positions), Q: random(3, positions*s.heads*s.keyDim), Out: make([]float32, positions*s.heads*s.valueDim),
					}
					for i := range int32(positions) {
						a.Positions = append(a.Positions, i)
					}
					kv := newKV(&a)
					kv.reserve(1, positions)
					a.KV = kv
					pool := NewPool(2)
					defer pool.Close()
					pool.Attend(a)
					roundTrip(d, k)
					roundTrip(d, v)
					bound := 2e-5
					if layoutOf(d, s.keyDim, s.valueDim).kind == kvPairs {
						roundTrip(d, a.Q)
						bound += 0x1p-8 * float64(slices.Max(magnitudes(v)))
					}
					for row := range positions {
						for h := range s.heads {
							q := a.Q[(row*s.heads+h)*s.keyDim:][:s.keyDim]
							want := definition(q, k, v, h/(s.heads/s.kvHeads), s.kvHeads, s.valueDim, row, s.window, 0.3)
							for i, w := range want {
								if got := float64(a.Out[(row*s.heads+h)*s.valueDim+i]); !(math.Abs(got-w) <= bound) {
									t.Fatalf("row at %d, head %d, dimension %d: %v, want %v", row, h, i, got, w)
								}
							}
						}
					}
				})
			}
		}
	})
}

// Weights are divided by their sum, as they are after all rounding: the average
// of equal values is their value.
func TestAttentionOfEqualValues(t *testing.T) {
	eachAttention(t, func(t *testing.T) {
		for _, d := range cacheTypes {
			const positions, dim = 75, 64
			a := Attention{
				Heads: 1, KVHeads: 1, KeyDim: dim, ValueDim: dim, Scale: 0.3, DType: d,
				Q: random(1, positions*dim), K: random(2, positions*dim), V: slices.Repeat([]float32{1.3}, positions*dim),
				Out: make([]float32, positions*dim), Seqs: make([]int32, positions),
			}
			for i := range int32(positions) {
				a.Positions = append(a.Positions, i)
			}
			a.KV = newKV(&a)
			pool := NewPool(1)
			pool.Attend(a)
			pool.Close()
			roundTrip(d, a.V)
			if i := unequal(a.Out, a.V, func(int) float64 { return 2e-6 }); i >= 0 {
				t.Errorf("%v: %v at %d, want %v", d, a.Out[i], i/dim, a.V[i])
			}
		}
	})
}

// definition is one query's attention, straight from the definition.
func definition(q, k, v []float32, head, heads, valueDim, pos, window int, scale float64) []float64 {
	first := 0
	if window > 0 {
		first = max(0, pos-window+1)
	}
	var scores []float64
	high := math.Inf(-1)
	for p := first; p <= pos; p++ {
		var s float64
		for i, x := range q {
			s += float64(x) * float64(k[(p*heads+head)*len(q)+i])
		}
		scores = append(scores, s*scale)
		high = max(high, s*scale)
	}
	var sum float64
	out := make([]float64, valueDim)
	for i, s := range scores {
		w := math.Exp(s - high)
		sum += w
		for d := range out {
			out[d] += w * float64(v[((first+i)*heads+head)*valueDim+d])
		}
	}
	for d := range out {
		out[d] /= sum
	}
	return out
}

// Decoding allocates nothing once memory has grown, with or without ranges.
func TestAttendDoesNotAllocate(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for _, workers := range []int{1, 3} {
			for _, d := range cacheTypes {
				pool := NewPool(workers)
				defer pool.Close()
				a := Attention{
					Heads: 4, KVHeads: 2, KeyDim: 64, ValueDim: 64, Scale: 0.1, DType: d,
					Q: random(1, 2*4*64), Out: make([]float32, 2*4*64), K: random(2, 2*2*64), V: random(3, 2*2*64),
					Positions: []int32{1000, 1000}, Seqs: []int32{0, 0}, Slots: []int32{1000, 1001},
					Paths: [][]int32{{1000}, {1001}},
				}
				kv := newKV(&a)
				kv.reserve(1, 1002)
				a.KV = kv
				// A worker's memory grows when it first comes in time for a task,
				// which on a busy machine may take many calls.
				n := 1.0
				for i := 0; i < 200 && n != 0; i++ {
					n = testing.AllocsPerRun(20, func() { pool.Attend(a) })
				}
				if n != 0 {
					t.Errorf("%v, %d workers: %v allocations", d, workers, n)
				}
			}
		}
	})
}

// A score that is no number spoils the row that has it, and one that is
// infinitely low weighs nothing.
func TestAttentionOfInfiniteScores(t *testing.T) {
	eachAttention(t, func(t *testing.T) {
		inf, nan := float32(math.Inf(1)), float32(math.NaN())
		for _, test := range []struct {
			name string
			keys []float32 // of positions 0, 1, …, in their first dimension; the query is 1, 0
			want float32   // values are 1, 2, …
		}{
			{"all equal", []float32{3, 3, 3}, 2},
			{"one infinitely low", []float32{3, -inf, 3}, 2},
			{"the first block infinitely low", append(slices.Repeat([]float32{-inf}, KVBlock), 0), KVBlock + 1},
			{"the last infinitely low", append(slices.Repeat([]float32{0}, KVBlock-1), -inf, -inf), KVBlock / 2},
			{"one infinitely high", []float32{3, inf, 3}, nan},
			{"one NaN", []float32{3, nan, 3}, nan},
			{"one NaN among infinitely low ones", []float32{-inf, nan, -inf}, nan},
			{"a block with NaN first", append(slices.Repeat([]float32{nan}, KVBlock), 0), nan},
			{"lower than any", []float32{-3e38, -3e38}, 1.5},
		} {
			for _, d := range []tensor.DType{tensor.F32, tensor.BF16} {
				a := Attention{
					Heads: 1, KVHeads: 1, KeyDim: 2, ValueDim: 16, Scale: 1, DType: d,
					Positions: make([]int32, len(test.keys)), Seqs: make([]int32, len(test.keys)),
					Q: slices.Repeat([]float32{1, 0}, len(test.keys)), Out: make([]float32, 16*len(test.keys)),
				}
				for i := range test.keys {
					a.Positions[i] = int32(i)
					a.K = append(a.K, test.keys[i], 0)
					a.V = append(a.V, slices.Repeat([]float32{float32(i + 1)}, 16)...)
				}
				a.KV = newKV(&a)
				pool := NewPool(1)
				pool.Attend(a)
				pool.Close()
				got := a.Out[len(a.Out)-1]
				if !(math.Abs(float64(got-test.want)) <= 1e-4) && (got == got || test.want == test.want) {
					t.Errorf("%v, %s: %v, want %v", d, test.name, got, test.want)
				}
			}
		}
	})
}
