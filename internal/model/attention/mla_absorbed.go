package attention

import (
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// pieceValues bounds the absorbed queries that exist at a time: they and the
// sums that they become stay close to the processor, and memory small, however
// many rows a step has.
const pieceValues = 4 << 20

// attendAbsorbed attends with q [rows, Heads, NopeDim+RopeDim] to the latent
// vectors of view and writes out [rows, Heads, ValueDim].
func (a *MLA) attendAbsorbed(step *nn.Step, st *nn.State, view *kvcache.View, q, out []float32) {
	heads, d, w, r, v := a.Heads, a.HeadDim(), a.Width(), a.Rank, a.ValueDim
	most := max(1, pieceValues/(heads*w))
	for from := 0; from < step.Rows(); from += most {
		mark, rows := st.Mark(), min(most, step.Rows()-from)
		q, out := q[from*heads*d:], out[from*heads*v:]

		nope := st.Take(heads * rows * a.NopeDim) // [heads, rows, NopeDim]
		st.Pool.Move(vectors(nope, a.NopeDim, rows*a.NopeDim), vectors(q, heads*d, d), rows, heads, a.NopeDim)
		absorbed := a.K.Forward(st, nope) // [heads, rows, Rank]
		query := st.Take(rows * heads * w)
		st.Pool.Move(vectors(query, heads*w, w), vectors(absorbed, r, rows*r), rows, heads, r)
		st.Pool.Move(vectors(query[r:], heads*w, w), vectors(q[a.NopeDim:], heads*d, d), rows, heads, a.RopeDim)

		sums := st.Take(rows * heads * r)
		st.Pool.AttendEntries(kernel.EntryAttention{
			Heads: heads, KVHeads: 1, KeyDim: w, ValueDim: r, Shared: true, Scale: a.Scale, DType: view.DType(),
			Q: query, Out: sums, Seqs: step.Seqs[from : from+rows], Sources: a.reach(step, st, view, query, from, from+rows),
		})
		byHead := absorbed
		st.Pool.Move(vectors(byHead, r, rows*r), vectors(sums, heads*r, r), rows, heads, r)
		values := a.V.Forward(st, byHead) // [heads, rows, ValueDim]
		st.Pool.Move(vectors(out, heads*v, v), vectors(values, v, rows*v), rows, heads, v)
		st.Release(mark)
	}
}
