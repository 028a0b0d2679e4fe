package kernel

import (
	"math"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
	"pgregory.net/rapid"
)

// A token is what a row brings to attention.
type token struct{ q, k, v []float32 }

// drawAttention draws a configuration and a way to make tokens for it.
func drawAttention(t *rapid.T) (a Attention, newToken func() token) {
	a.KVHeads = rapid.IntRange(1, 3).Draw(t, "kvHeads")
	a.Heads = a.KVHeads * rapid.IntRange(1, 5).Draw(t, "group")
	a.DType = rapid.SampledFrom(cacheTypes).Draw(t, "dtype")
	widths := []int{16, 32, 48, 64, 80, 3}
	if a.DType == tensor.Q8_0 {
		widths = []int{32, 64}
	}
	a.KeyDim, a.ValueDim = rapid.SampledFrom(widths).Draw(t, "keyDim"), rapid.SampledFrom(widths).Draw(t, "valueDim")
	a.Scale = 0.4
	if rapid.Bool().Draw(t, "windowed") {
		a.Window = rapid.IntRange(1, 80).Draw(t, "window")
	}
	seed := uint64(0)
	return a, func() token {
		seed++
		return token{random(3*seed, a.Heads*a.KeyDim), random(3*seed+1, a.KVHeads*a.KeyDim), random(3*seed+2, a.KVHeads*a.ValueDim)}
	}
}

// A batch is the rows of one step.
type batch struct {
	Attention
	rows []*[]float32 // where each row's output goes
}

func (b *batch) add(tok token, seq, pos, slot int, path []int32, out *[]float32) {
	b.Q, b.K, b.V = append(b.Q, tok.q...), append(b.K, tok.k...), append(b.V, tok.v...)
	b.Seqs, b.Positions = append(b.Seqs, int32(seq)), append(b.Positions, int32(pos))
	b.Slots, b.Paths = append(b.Slots, int32(slot)), append(b.Paths, path)
	b.rows = append(b.rows, out)
}

// run attends on a pool of its own.
func (b *batch) run(workers int) {
	pool := NewPool(workers)
	defer pool.Close()
	b.attend(pool)
}

// attend attends and empties the batch.
func (b *batch) attend(pool *Pool) {
	b.Out = make([]float32, len(b.rows)*b.Heads*b.ValueDim)
	pool.Attend(b.Attention)
	for i, out := range b.rows {
		*out = b.Out[i*b.Heads*b.ValueDim:][:b.Heads*b.ValueDim]
	}
	b.Q, b.K, b.V, b.Seqs, b.Positions, b.Slots, b.Paths, b.rows = nil, nil, nil, nil, nil, nil, nil, nil
}

// alone attends to one sequence row by row.
func alone(a Attention, tokens []token) [][]float32 {
	out := make([][]float32, len(tokens))
	b := batch{Attention: a}
	b.KV = newKV(&a)
	for pos, tok := range tokens {
		b.add(tok, 0, pos, pos, nil, &out[pos])
		b.run(1)
	}
	return out
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// The bits of a row are those it has when its sequence is decoded alone, on
// one worker: whatever the chunks in which its sequence comes, the rows of
// other sequences in the step, and the number of workers.
func TestAttentionRowIndependence(t *testing.T) {
	eachAttention(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			a, newToken := drawAttention(t)
			sequences := make([][]token, rapid.IntRange(1, 3).Draw(t, "sequences"))
			want, got := make([][][]float32, len(sequences)), make([][][]float32, len(sequences))
			for s := range sequences {
				for range rapid.IntRange(1, 100).Draw(t, "length") {
					sequences[s] = append(sequences[s], newToken())
				}
				want[s], got[s] = alone(a, sequences[s]), make([][]float32, len(sequences[s]))
			}
			b := batch{Attention: a}
			kv := newKV(&a)
			kv.reserve(len(sequences), 100)
			b.KV = kv
			for done := make([]int, len(sequences)); ; {
				for s := range sequences {
					n := min(rapid.SampledFrom([]int{0, 1, 2, 5, 40, 100}).Draw(t, "chunk"), len(sequences[s])-done[s])
					for range n {
						b.add(sequences[s][done[s]], s, done[s], done[s], nil, &got[s][done[s]])
						done[s]++
					}
				}
				if len(b.rows) > 0 {
					b.run(rapid.SampledFrom([]int{1, 2, 16}).Draw(t, "workers"))
				} else if !slices.ContainsFunc(sequences, func(tokens []token) bool { return len(tokens) > 0 }) {
					break
				}
				left := 0
				for s := range sequences {
					left += len(sequences[s]) - done[s]
				}
				if left == 0 {
					break
				}
			}
			for s := range sequences {
				for pos := range sequences[s] {
					if !sameBits(got[s][pos], want[s][pos]) {
						t.Fatalf("sequence %d, position %d: %v, alone %v", s, pos, got[s][pos], want[s][pos])
					}
				}
			}
		})
	})
}

// More workers than tiles and heads cut a long context into ranges.
func TestAttentionOfRanges(t *testing.T) {
	eachAttention(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			a, newToken := drawAttention(t)
			if a.Window > 0 {
				a.Window *= 10
			}
			length := rapid.IntRange(1, 900).Draw(t, "length")
			rows := rapid.IntRange(1, 4).Draw(t, "rows")
			kv := newKV(&a)
			kv.reserve(1, length+rows)
			b := batch{Attention: a}
			b.KV = kv
			var ignored []float32
			tok := newToken()
			for pos := range length { // cheaply: what came before attends to itself alone
				b.add(tok, 0, pos, pos, nil, &ignored)
				if pos%100 == 0 {
					tok = newToken()
				}
			}
			b.Window = 1
			b.run(1)
			b.Window = a.Window
			tokens := make([]token, rows)
			for r := range tokens {
				tokens[r] = newToken()
			}
			want, got := make([][]float32, rows), make([][]float32, rows)
			attend := func(pool *Pool, rows int, out [][]float32) {
				for r, tok := range tokens[:rows] {
					b.add(tok, 0, length+r, length+r, nil, &out[r])
				}
				b.attend(pool)
			}
			one, many := NewPool(1), NewPool(rapid.IntRange(2, 9).Draw(t, "workers"))
			defer one.Close()
			defer many.Close()
			attend(one, rows, want)
			for _, n := range []int{rows, 1} { // the second in memory that was used for another shape
				attend(many, n, got)
				for r := range n {
					if !sameBits(got[r], want[r]) {
						t.Fatalf("position %d: %v, on one worker %v", length+r, got[r], want[r])
					}
				}
			}
		})
	})
}

// A row of a tree of drafts has the bits of the last row of its path decoded
// as a chain, in whatever slots its ancestors lie and whatever others hold.
func TestAttentionOfTrees(t *testing.T) {
	eachAttention(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			a, newToken := drawAttention(t)
			prefix := make([]token, rapid.IntRange(0, 70).Draw(t, "prefix"))
			for i := range prefix {
				prefix[i] = newToken()
			}
			// Nodes come after their parents, as in a verification step. Slots follow
			// the prefix, in an order of their own.
			nodes := rapid.IntRange(1, 40).Draw(t, "nodes")
			offsets := rapid.Permutation(upTo(nodes)).Draw(t, "slots")
			if rapid.Bool().Draw(t, "in order") {
				offsets = upTo(nodes)
			}
			paths, chains := make([][]int32, nodes), make([][]token, nodes)
			got := make([][]float32, nodes)
			nan, bad := float32(math.NaN()), rapid.IntRange(-1, nodes-1).Draw(t, "bad")
			b := batch{Attention: a}
			kv := newKV(&a)
			kv.reserve(1, len(prefix)+2*nodes)
			b.KV = kv
			var ignored []float32
			for pos, tok := range prefix {
				b.add(tok, 0, pos, pos, nil, &ignored)
			}
			if len(prefix) > 0 {
				b.run(2)
			}
			for n := range nodes {
				parent := rapid.IntRange(max(-1, n-4), n-1).Draw(t, "parent")
				chain := prefix
				if parent >= 0 {
					paths[n], chain = slices.Clone(paths[parent]), chains[parent]
				}
				tok := newToken()
				if n == bad {
					tok.k, tok.v = slices.Repeat([]float32{nan}, len(tok.k)), slices.Repeat([]float32{nan}, len(tok.v))
				}
				slot := len(prefix) + offsets[n]
				paths[n] = append(paths[n], int32(slot))
				chains[n] = append(slices.Clip(chain), tok)
				b.add(tok, 0, len(chains[n])-1, slot, paths[n], &got[n])
			}
			b.run(rapid.SampledFrom([]int{1, 2, 16}).Draw(t, "workers"))
			for n := range nodes {
				if bad >= 0 && slices.Contains(paths[n], int32(len(prefix)+offsets[bad])) {
					continue
				}
				want := alone(a, chains[n])
				if !sameBits(got[n], want[len(want)-1]) {
					t.Fatalf("node %d with path %v: %v, alone %v", n, paths[n], got[n], want[len(want)-1])
				}
			}
		})
	})
}

func upTo(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// What is not a number stays in its row and in the rows that see its key and
// value.
func TestAttentionKeepsNaNApart(t *testing.T) {
	eachAttention(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			a, newToken := drawAttention(t)
			const length, sequences = 70, 2
			var tokens [sequences][]token
			var want, got [sequences][][]float32
			for s := range sequences {
				for range length {
					tokens[s] = append(tokens[s], newToken())
				}
				want[s], got[s] = alone(a, tokens[s]), make([][]float32, length)
			}
			bad := rapid.IntRange(0, length-1).Draw(t, "position")
			part := rapid.IntRange(0, 2).Draw(t, "of q, k or v")
			broken := &[]*[]float32{&tokens[0][bad].q, &tokens[0][bad].k, &tokens[0][bad].v}[part]
			**broken = slices.Clone(**broken)
			for i := range **broken {
				(**broken)[i] = float32(math.NaN())
			}
			b := batch{Attention: a}
			kv := newKV(&a)
			kv.reserve(sequences, length)
			b.KV = kv
			for s := range sequences {
				for pos := range length {
					b.add(tokens[s][pos], s, pos, pos, nil, &got[s][pos])
				}
			}
			b.run(2)
			for s := range sequences {
				for pos := range length {
					sees := s == 0 && (pos == bad || part > 0 && pos > bad && (a.Window == 0 || pos-bad < a.Window))
					switch {
					case !sees && !sameBits(got[s][pos], want[s][pos]):
						t.Fatalf("sequence %d, position %d changes with position %d of sequence 0", s, pos, bad)
					case sees && slices.ContainsFunc(got[s][pos], func(x float32) bool { return x == x }):
						t.Fatalf("sequence 0, position %d does not notice that position %d is NaN", pos, bad)
					}
				}
			}
		})
	})
}
