package kernel

import (
	"math"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
	"pgregory.net/rapid"
)

// blockScoresDefinition is a row's scores of count blocks for a key-value head,
// straight from the definition.
func blockScoresDefinition(s *BlockScores, row, head, count int) []float64 {
	group, n := s.Heads/s.KVHeads, int(s.To[row])
	p := make([]float64, n)
	entry := make([]float32, s.KVHeads*(s.KeyDim+s.ValueDim))
	for h := head * group; h < (head+1)*group; h++ {
		var x []float64
		for i := range n {
			tensor.Decode(s.DType, entry, s.Entries.Entry(int(s.Seqs[row]), i))
			var dot float64
			for d, k := range entry[head*(s.KeyDim+s.ValueDim):][:s.KeyDim] {
				dot += float64(k) * float64(s.Q[(row*s.Heads+h)*s.KeyDim+d])
			}
			x = append(x, dot*float64(s.Scale))
		}
		if n == 0 {
			break
		}
		high, total := slices.Max(x), 0.0
		for i := range x {
			x[i] = math.Exp(x[i] - high)
			total += x[i]
		}
		for i := range x {
			p[i] += x[i] / total
		}
	}
	scores := make([]float64, count)
	for j := range scores {
		for m := range s.Block {
			for n := range s.Width {
				if i := s.Block*j + m - n; i >= 0 && i < len(p) {
					scores[j] += p[i]
				}
			}
		}
	}
	return scores
}

// randomScores is BlockScores of rows that read 37·row entries of one sequence
// or the other, but of one that reads a whole block.
func randomScores(d tensor.DType, heads, kvHeads, keyDim, valueDim, rows int) BlockScores {
	s := BlockScores{
		Heads: heads, KVHeads: kvHeads, KeyDim: keyDim, ValueDim: valueDim, Scale: 0.5, DType: d, Block: 4, Width: 2,
		Q: random(3, rows*heads*keyDim),
	}
	for row := range rows {
		s.Seqs, s.To = append(s.Seqs, int32(2*row/rows)), append(s.To, int32(37*row))
	}
	if rows > 1 {
		s.To[1] = KVBlock
	}
	s.Entries = randomEntries(s.entries(), 1, 37*rows, 37*rows)
	return s
}

// entries is attention to the same entries.
func (s *BlockScores) entries() *EntryAttention {
	return &EntryAttention{KVHeads: s.KVHeads, KeyDim: s.KeyDim, ValueDim: s.ValueDim, DType: s.DType}
}

// scoreBlocks runs s on a pool of its own.
func scoreBlocks(s BlockScores, workers int) [][]float32 {
	pool := NewPool(workers)
	defer pool.Close()
	s.Scores = nil
	for _, to := range s.To {
		for range s.KVHeads {
			s.Scores = append(s.Scores, slices.Repeat([]float32{float32(math.NaN())}, int(to)/s.Block+2))
		}
	}
	pool.ScoreBlocks(s)
	return s.Scores
}

// In pairs, queries are rounded to bfloat16.
func TestBlockScoresAgainstFloat64(t *testing.T) {
	for _, shape := range []struct{ heads, kvHeads, keyDim, valueDim, block, width int }{
		{16, 1, 64, 32, 1, 1},
		{8, 2, 96, 64, 4, 2},
		{6, 2, 12, 8, 4, 2},
		{12, 4, 33, 7, 3, 3},
		{128, 1, 32, 32, 2, 1},
	} {
		eachAttention(t, func(t *testing.T) {
			for _, d := range cacheTypes {
				if d == tensor.Q8_0 && (shape.keyDim%32 != 0 || shape.valueDim%32 != 0) {
					continue
				}
				s := randomScores(d, shape.heads, shape.kvHeads, shape.keyDim, shape.valueDim, 9)
				s.Block, s.Width = shape.block, shape.width
				got := scoreBlocks(s, 2)
				if layoutOf(d, s.KeyDim, 0).kind == kvPairs {
					roundTrip(d, s.Q)
				}
				for i, scores := range got {
					want := blockScoresDefinition(&s, i/s.KVHeads, i%s.KVHeads, len(scores))
					for j, w := range want {
						if !(math.Abs(float64(scores[j])-w) <= 2e-5*float64(shape.heads)) {
							t.Fatalf("%+v, %v, row %d, head %d, block %d: %v, want %v", shape, d, i/s.KVHeads, i%s.KVHeads, j, scores[j], w)
						}
					}
				}
			}
		})
	}
}

// The bits of a row's scores are those it has alone on one worker, whatever the
// rows beside it, the number of workers and the memory there is for weights.
func TestBlockScoresRowIndependence(t *testing.T) {
	eachAttention(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			a := drawEntryAttention(t, 9, 400)
			s := BlockScores{
				Heads: a.Heads, KVHeads: a.KVHeads, KeyDim: a.KeyDim, ValueDim: a.ValueDim, Scale: a.Scale, DType: a.DType,
				Block: rapid.IntRange(1, 4).Draw(t, "block"), Q: a.Q, Seqs: a.Seqs,
			}
			s.Width = rapid.IntRange(1, s.Block).Draw(t, "width")
			longest := rapid.SampledFrom([]int{3, 70, 3000}).Draw(t, "longest")
			for range a.Seqs {
				s.To = append(s.To, int32(rapid.IntRange(0, longest).Draw(t, "to")))
			}
			s.Entries = randomEntries(s.entries(), 5, slices.Repeat([]int{longest}, 3)...)
			var want [][]float32
			for row := range s.Seqs {
				alone := s
				n := s.Heads * s.KeyDim
				alone.Q, alone.Seqs, alone.To = s.Q[row*n:][:n], s.Seqs[row:][:1], s.To[row:][:1]
				want = append(want, scoreBlocks(alone, 1)...)
			}
			for _, workers := range []int{1, 2, 5} {
				got := scoreBlocks(s, workers)
				for i := range want {
					if !sameBits(got[i], want[i]) {
						t.Fatalf("%d workers, row %d, head %d: %v, alone %v", workers, i/s.KVHeads, i%s.KVHeads, got[i], want[i])
					}
				}
			}
		})
	})
}

// More rows than there is memory for weights are taken in pieces.
func TestBlockScoresInPieces(t *testing.T) {
	const rows, entries = 32, 2000
	s := BlockScores{
		Heads: 128, KVHeads: 1, KeyDim: 4, ValueDim: 4, Scale: 1, DType: tensor.F32, Block: 2, Width: 1,
		Q: random(1, rows*128*4), Seqs: make([]int32, rows), To: slices.Repeat([]int32{entries}, rows),
	}
	if lines := rows * s.Heads * entries / KVBlock; lines < 3*scoreMemory/2 {
		t.Fatalf("%d blocks of weights make no two pieces", lines)
	}
	s.Entries = randomEntries(s.entries(), 1, entries)
	got := scoreBlocks(s, 2)
	for row := range rows {
		alone := s
		alone.Q, alone.Seqs, alone.To = s.Q[row*128*4:][:128*4], s.Seqs[row:][:1], s.To[row:][:1]
		if want := scoreBlocks(alone, 1)[0]; !sameBits(got[row], want) {
			t.Errorf("row %d differs from what it has alone", row)
		}
	}
}

// What is not a number stays in the rows that read it.
func TestBlockScoresOfNonFiniteEntries(t *testing.T) {
	eachAttention(t, func(t *testing.T) {
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
			s := randomScores(tensor.F32, 8, 2, 32, 32, 6)
			for row := range s.Seqs {
				s.Seqs[row] = 0
			}
			want := scoreBlocks(s, 2)
			entry := make([]float32, 2*64)
			for d := range entry {
				entry[d] = bad
			}
			const at = 3 * 37 // the first entry that row 3 does not read
			if err := tensor.Encode(tensor.F32, s.Entries.Entry(0, at), entry); err != nil {
				t.Fatal(err)
			}
			copy(s.Q[5*8*32:], slices.Repeat([]float32{bad}, 8*32))
			got := scoreBlocks(s, 2)
			for i := range 4 * s.KVHeads {
				if !sameBits(got[i], want[i]) {
					t.Errorf("%v: row %d changed", bad, i/s.KVHeads)
				}
			}
		}
	})
}

func TestScoreBlocksDoesNotAllocate(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for _, workers := range []int{1, 3} {
			pool := NewPool(workers)
			defer pool.Close()
			s := randomScores(tensor.BF16, 16, 2, 64, 64, 1)
			s.To[0], s.Entries = 1000, randomEntries(s.entries(), 1, 1000)
			s.Scores = [][]float32{make([]float32, 251), make([]float32, 251)}
			n := 1.0
			for i := 0; i < 200 && n != 0; i++ { // a worker's memory grows when it first comes in time for a task
				n = testing.AllocsPerRun(20, func() { pool.ScoreBlocks(s) })
			}
			if n != 0 {
				t.Errorf("%d workers: %v allocations", workers, n)
			}
		}
	})
}

// LoadEntries gives back what the type of the cache keeps.
func TestLoadEntries(t *testing.T) {
	for _, d := range cacheTypes {
		const rows, n = 300, 576
		x := random(1, rows*n)
		m := newEntryMemory(d.RowBytes(n), rows, 2*rows)
		var seqs, slots []int32
		for row := range int32(rows) {
			seqs, slots = append(seqs, row%2), append(slots, (row*7)%rows)
		}
		pool := NewPool(3)
		pool.StoreEntries(m, d, x, n, seqs, slots)
		got := make([]float32, len(x))
		pool.LoadEntries(got, m, d, n, seqs, slots)
		pool.Close()
		for row := range rows {
			roundTrip(d, x[row*n:][:n])
		}
		if !slices.Equal(got, x) {
			t.Errorf("%v: what was stored differs from what is loaded", d)
		}
	}
}

func TestMeans(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		const n = 37
		for _, count := range []int{1, 3, 64} {
			x := random(2, 50*count*n)
			y, alone := make([]float32, 50*n), make([]float32, n)
			pool, one := NewPool(3), NewPool(1)
			pool.Means(y, x, count, n)
			for i := range 50 {
				for c := range n {
					var sum float64
					for r := range count {
						sum += float64(x[(i*count+r)*n+c])
					}
					if got := float64(y[i*n+c]); !(math.Abs(got-sum/float64(count)) <= 1e-6) {
						t.Fatalf("mean %d of %d, value %d: %v, want %v", i, count, c, got, sum/float64(count))
					}
				}
				if one.Means(alone, x[i*count*n:][:count*n], count, n); !sameBits(alone, y[i*n:][:n]) {
					t.Fatalf("mean %d of %d: other bits than alone", i, count)
				}
			}
			pool.Close()
			one.Close()
		}
	})
}

func TestSigmoid(t *testing.T) {
	pool := NewPool(3)
	defer pool.Close()
	x := append(random(1, 20000), float32(math.Inf(1)), float32(math.Inf(-1)), 0, 200, -200, float32(math.NaN()))
	y := slices.Clone(x)
	pool.Sigmoid(y)
	for i, v := range x {
		want := 1 / (1 + math.Exp(-float64(v)))
		if d := math.Abs(float64(y[i]) - want); !(d <= 1e-6) && v == v {
			t.Errorf("sigmoid(%v) is %v, want %v", v, y[i], want)
		}
	}
	if last := y[len(y)-1]; last == last {
		t.Errorf("sigmoid(NaN) is %v", last)
	}
}

func TestGatedSum(t *testing.T) {
	const vectors, n = 700, 24
	gates := random(1, vectors*Branches)
	for _, branches := range [][Branches][]float32{
		{random(2, vectors*n), random(3, vectors*n), random(4, vectors*n)},
		{random(2, vectors*n), random(3, vectors*n), nil},
	} {
		y, alone := random(5, vectors*n), make([]float32, n)
		pool, one := NewPool(3), NewPool(1)
		pool.GatedSum(y, branches, gates, n)
		for i := range vectors {
			part := branches
			for d := range n {
				var want float64
				for c, x := range branches {
					if x != nil {
						want += float64(gates[i*Branches+c]) * float64(x[i*n+d])
						part[c] = x[i*n:][:n]
					}
				}
				if got := float64(y[i*n+d]); !(math.Abs(got-want) <= 1e-5) {
					t.Fatalf("vector %d, value %d: %v, want %v", i, d, got, want)
				}
			}
			if one.GatedSum(alone, part, gates[i*Branches:][:Branches], n); !sameBits(alone, y[i*n:][:n]) {
				t.Fatalf("vector %d: other bits than alone", i)
			}
		}
		pool.Close()
		one.Close()
	}
}
