package attention

import (
	"math"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// EntryIndexer is the lightning indexer of DeepSeek V4: it scores compressed
// entries by keys of its own, and rows read the TopK with the highest scores.
//
//	I[t,s] = Σ_h w[t,h]·relu(q[t,h]·k[s])
type EntryIndexer struct {
	Q          *nn.Linear  // low rank of queries → Heads·Dim
	Weights    *nn.Linear  // hidden → Heads
	Compressor *Compressor // of keys
	Rope       *nn.Rope

	Heads, Dim, TopK int
	RoundFP4         bool // round queries and keys as training did

	q, w   []float32 // of the step's rows
	scores [][]float32
	lists  [][]int32
}

// project computes queries and weights of the step's rows from x and the low
// rank of their queries.
func (n *EntryIndexer) project(st *nn.State, x, low []float32) {
	if n == nil {
		return
	}
	n.Compressor.project(st, x)
	n.q = n.Q.Forward(st, low)
	n.Rope.RotateLast(st, n.q, n.Heads, n.Dim)
	n.round(st, n.q)
	n.w = n.Weights.Forward(st, x)
	st.Pool.Scale(n.w, float32(1/math.Sqrt(float64(n.Dim)*float64(n.Heads))))
}

// round rotates vectors by Hadamard's matrix, which spreads outliers and
// changes no products, and rounds them to fp4.
func (n *EntryIndexer) round(st *nn.State, x []float32) {
	if n.RoundFP4 {
		st.Pool.Hadamard(x, n.Dim)
		st.Pool.RoundE2M1(x, FP4Block)
	}
}

// FP4Block is how many values of a query or key share a scale.
const FP4Block = 32

// store adds the keys of the entries that rows [from, to) complete.
func (n *EntryIndexer) store(step *nn.Step, st *nn.State, keys, inputs *kvcache.View, from, to int) {
	mark := st.Mark()
	if e := n.Compressor.complete(step, st, inputs, from, to); len(e.slots) > 0 {
		n.round(st, e.values)
		st.Pool.StoreKeys(keys, keys.DType(), e.values, n.Dim, e.seqs, e.slots)
	}
	st.Release(mark)
}

// choose returns which of the first visible entries each of rows [from, to)
// reads, in ascending order. q are the queries with which the rows will attend;
// see spoil.
func (n *EntryIndexer) choose(step *nn.Step, st *nn.State, keys *kvcache.View, q []float32, visible []int32, from, to int) [][]int32 {
	n.scores = n.scores[:0]
	for _, v := range visible {
		n.scores = append(n.scores, st.Take(int(v)))
	}
	st.Pool.IndexScores(kernel.Index{
		Heads: n.Heads, Dim: n.Dim, DType: keys.DType(),
		Q: n.q[from*n.Heads*n.Dim : to*n.Heads*n.Dim], W: n.w[from*n.Heads : to*n.Heads],
		Seqs: step.Seqs[from:to], To: visible, KV: keys, Scores: n.scores,
	})
	n.lists = st.Pool.TopK(n.scores, n.TopK, n.lists)
	spoil(q, n.scores, n.lists)
	return n.lists
}
