package attention

import (
	"fmt"
	"math"
	"slices"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// IndexerConfig is the shape of an indexer.
type IndexerConfig struct {
	Heads int // index_n_heads
	Dim   int // of queries and keys (index_head_dim)
	TopK  int // positions that a row attends to (index_topk)
}

// Validate reports a size that no model has, by its name in config.json. rope
// is how many values of queries and keys are rotated.
func (c *IndexerConfig) Validate(rope int) error {
	for _, f := range []struct {
		name       string
		value, max int
	}{
		{"index_n_heads", c.Heads, maxWidth},
		{"index_head_dim", c.Dim, maxWidth},
		{"index_topk", c.TopK, math.MaxInt32},
	} {
		if f.value < 1 || f.value > f.max {
			return fmt.Errorf("%s is %d, expected 1 to %d", f.name, f.value, f.max)
		}
	}
	if c.Dim < rope {
		return fmt.Errorf("index_head_dim is %d, expected at least qk_rope_head_dim %d", c.Dim, rope)
	}
	return nil
}

// An Indexer is the lightning indexer of DeepSeek sparse attention
// (DeepSeek-V3.2, section 2.1): each row attends to the TopK positions s, its
// own included, of the greatest score
//
//	I(t, s) = Σ_h w(t)_h · relu(q(t)_h · k(s))
//
// The first values of queries and keys are rotated in halves, where those of
// MLA are the last and interleaved.
type Indexer struct {
	IndexerConfig
	Q     *nn.Linear // [Heads·Dim, QueryRank], of MLA's normalised low-rank queries
	K     *nn.Linear // [Dim, hidden]
	W     *nn.Linear // [Heads, hidden], in float32
	KNorm []float32  // of keys: a LayerNorm
	KBias []float32
	Rope  *nn.Rope
	// RoundFP8 rounds queries and keys as DeepSeek's own kernels do: rotated by a
	// Hadamard matrix, which by itself changes no score, then to e4m3.
	RoundFP8 bool

	// Of the step at hand.
	keys   *kvcache.View
	q, w   []float32   // [rows, Heads, Dim], [rows, Heads]; nil: no row needs them
	scores [][]float32 // [rows]
	lists  [][]int32   // [rows]
}

// IndexEps is that of the norm of keys. config.json does not say it; GGUF files
// of another are refused.
const IndexEps = 1e-6

// scoreValues bounds the scores that exist at a time, beyond those of one row.
const scoreValues = 4 << 20

func (x *Indexer) store() kvcache.Store {
	return kvcache.Store{Kind: "index keys", Heads: 1, KeyDim: x.Dim}
}

// prepare stores the keys of the step's rows, hidden [rows, hidden], and makes
// the queries of low [rows, QueryRank] if some row has to choose.
func (x *Indexer) prepare(step *nn.Step, st *nn.State, keys *kvcache.View, hidden, low []float32) {
	k := x.K.Forward(st, hidden)
	st.Pool.LayerNorm(k, k, x.KNorm, x.KBias, IndexEps)
	x.turn(st, k, 1)
	st.Pool.StoreKeys(keys, keys.DType(), k, x.Dim, step.Seqs, step.Positions)

	x.keys, x.q, x.w = keys, nil, nil
	if slices.ContainsFunc(step.Positions, x.chooses) {
		x.q = x.Q.Forward(st, low)
		x.turn(st, x.q, x.Heads)
		x.w = x.W.Forward(st, hidden)
		st.Pool.Scale(x.w, float32(1/math.Sqrt(float64(x.Heads*x.Dim))))
	}
}

// turn rotates queries or keys [rows, heads, Dim].
func (x *Indexer) turn(st *nn.State, v []float32, heads int) {
	x.Rope.Rotate(st, v, heads, x.Dim)
	if x.RoundFP8 {
		st.Pool.Hadamard(v, x.Dim)
		st.Pool.RoundE4M3(v, x.Dim)
	}
}

// chooses reports whether a row at pos sees more positions than it attends to.
func (x *Indexer) chooses(pos int32) bool { return int(pos) >= x.TopK }

// selected returns for each of the rows [from, to) the positions that it attends
// to, ascending; none if these are all up to its own, nil if that is so of all
// rows. The lists are workspace. q are the queries with which the rows will
// attend; see spoil.
func (x *Indexer) selected(step *nn.Step, st *nn.State, q []float32, from, to int) [][]int32 {
	if !slices.ContainsFunc(step.Positions[from:to], x.chooses) {
		return nil
	}
	x.lists = x.lists[:0]
	for range to - from {
		x.lists = append(x.lists, st.TakeInts(x.TopK))
	}
	width := len(q) / (to - from)
	for row := from; row < to; {
		first, n := row, 0
		for row < to && (row == first || n+int(step.Positions[row]) < scoreValues) {
			n += int(step.Positions[row]) + 1
			row++
		}
		x.choose(step, st, q[(first-from)*width:(row-from)*width], first, row, x.lists[first-from:row-from])
	}
	return x.lists
}

// choose fills the lists of rows [from, to).
func (x *Indexer) choose(step *nn.Step, st *nn.State, q []float32, from, to int, lists [][]int32) {
	mark := st.Mark()
	defer st.Release(mark)
	ends := st.TakeInts(to - from)
	x.scores = x.scores[:0]
	for i, pos := range step.Positions[from:to] {
		ends[i] = 0
		if x.chooses(pos) {
			ends[i] = pos + 1
		}
		x.scores = append(x.scores, st.Take(int(ends[i])))
	}
	n := x.Heads * x.Dim
	st.Pool.IndexScores(kernel.Index{
		Heads: x.Heads, Dim: x.Dim, DType: x.keys.DType(), KV: x.keys,
		Q: x.q[from*n : to*n], W: x.w[from*x.Heads : to*x.Heads], Seqs: step.Seqs[from:to], To: ends, Scores: x.scores,
	})
	st.Pool.TopK(x.scores, x.TopK, lists)
	spoil(q, x.scores, lists)
}

// spoil makes the queries of a row, of q [rows, n], NaN if a score that chose its
// list is +Inf, as IndexScores writes what is no finite number. Such scores say
// nothing: TopK would take the first positions, and the row would answer from
// these as if nothing were wrong. A row whose list is of all that it sees did not
// choose, and stays.
func spoil(q []float32, scores [][]float32, lists [][]int32) {
	n := len(q) / len(lists)
	for row, list := range lists {
		if s := scores[row]; len(list) < len(s) && slices.ContainsFunc(list, func(i int32) bool { return s[i] > math.MaxFloat32 }) {
			for i := range n {
				q[row*n+i] = float32(math.NaN())
			}
		}
	}
}
