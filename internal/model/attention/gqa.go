package attention

import (
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// GQA is grouped-query attention (Ainslie et al. 2023): Heads/KVHeads query
// heads share a key-value head. With as many key-value heads as query heads
// it is multi-head attention (Vaswani et al. 2017), with one multi-query
// attention (Shazeer 2019).
type GQA struct {
	Q, K, V, O   *nn.Linear
	QNorm, KNorm *nn.Norm // over each head, before rotation; nil in most families
	Rope         *nn.Rope // nil: the layer does not know positions

	Heads, KVHeads, HeadDim int
	Scale                   float32 // of q·k before softmax
	Window                  int     // positions a row sees, its own included; 0: all
	Layer                   int     // index in the cache
}

// Cache says what the layer keeps.
func (a *GQA) Cache() kvcache.LayerSpec {
	return kvcache.LayerSpec{{Kind: "keys and values", Heads: a.KVHeads, KeyDim: a.HeadDim, ValueDim: a.HeadDim}}
}

// Trees says that rows may be of trees of drafts.
func (a *GQA) Trees() bool { return true }

// Forward maps x [rows, hidden] to [rows, hidden], reading the cached
// positions of each row's sequence and adding the row's own.
func (a *GQA) Forward(step *nn.Step, st *nn.State, x []float32) []float32 {
	qkv := nn.Project(st, x, a.Q, a.K, a.V)
	q, k, v := qkv[0], qkv[1], qkv[2]
	a.QNorm.InPlace(st, q)
	a.KNorm.InPlace(st, k)
	a.Rope.Rotate(st, q, a.Heads, a.HeadDim)
	a.Rope.Rotate(st, k, a.KVHeads, a.HeadDim)

	out, kv := st.Take(len(q)), st.Store(a.Layer, 0)
	st.Pool.Attend(kernel.Attention{
		Heads: a.Heads, KVHeads: a.KVHeads, KeyDim: a.HeadDim, ValueDim: a.HeadDim,
		Scale: a.Scale, Window: a.Window, DType: kv.DType(),
		Q: q, K: k, V: v, Out: out,
		Positions: step.Positions, Seqs: step.Seqs, Slots: step.Slots, Paths: step.Paths, KV: kv,
	})
	return a.O.Forward(st, out)
}
