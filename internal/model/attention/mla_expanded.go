package attention

import (
	"unsafe"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/tensor"
)

const (
	// expandedValues bounds the keys and values that exist at a time. They are
	// those of one head at least, of all positions of a sequence.
	expandedValues = 16 << 20
	// expandedPositions are expanded together.
	expandedPositions = 256
)

// expandedEntries are the keys and values of some heads, of one position after
// the other: [positions, heads, (key, value)], in F32.
type expandedEntries struct {
	values []float32
	size   int       // values of an entry
	lists  [][]int32 // [rows, heads]
}

// Entry returns entry i of the one sequence.
func (e *expandedEntries) Entry(_, i int) []byte {
	entry := e.values[i*e.size : (i+1)*e.size]
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(entry))), 4*len(entry))
}

// attendExpanded attends with q [rows, Heads, NopeDim+RopeDim] to keys and
// values that it forms of the latent vectors of view, and writes out [rows,
// Heads, ValueDim].
func (a *MLA) attendExpanded(step *nn.Step, st *nn.State, view *kvcache.View, q, out []float32) {
	d, v := a.HeadDim(), a.ValueDim
	for _, s := range step.Spans {
		mark, rows := st.Mark(), s.To-s.From
		q, out := q[s.From*a.Heads*d:], out[s.From*a.Heads*v:]
		positions := int(step.Positions[s.To-1]) + 1
		sources := a.reach(step, st, &a.entries, q[:rows*a.Heads*d], s.From, s.To)

		most := max(1, min(expandedValues/(positions*(d+v)), a.Heads))
		for first := 0; first < a.Heads; first += most {
			mark, heads := st.Mark(), min(most, a.Heads-first)
			a.expand(st, view, int(step.Seqs[s.From]), positions, first, heads)
			query, sums := st.Take(rows*heads*d), st.Take(rows*heads*v)
			st.Pool.Move(vectors(query, heads*d, 0), vectors(q[first*d:], a.Heads*d, 0), rows, 1, heads*d)
			st.Pool.AttendEntries(kernel.EntryAttention{
				Heads: heads, KVHeads: heads, KeyDim: d, ValueDim: v, Scale: a.Scale, DType: tensor.F32,
				Q: query, Out: sums, Seqs: step.Seqs[s.From:s.To], Sources: a.perHead(sources, heads),
			})
			st.Pool.Move(vectors(out[first*v:], a.Heads*v, 0), vectors(sums, heads*v, 0), rows, 1, heads*v)
			st.Release(mark)
		}
		st.Release(mark)
	}
}

// expand fills a.entries with what all positions of a sequence have of heads
// [first, first+heads).
func (a *MLA) expand(st *nn.State, view *kvcache.View, seq, positions, first, heads int) {
	d, v, w, r := a.HeadDim(), a.ValueDim, a.Width(), a.Rank
	size := heads * (d + v)
	a.entries.values, a.entries.size = st.Take(positions*size), size
	keys, values := a.K[first:first+heads], a.V[first:first+heads]
	for from := 0; from < positions; from += expandedPositions {
		mark, n := st.Mark(), min(expandedPositions, positions-from)
		latent, c := st.Take(n*w), st.Take(n*r)
		for i := range n {
			tensor.Decode(view.DType(), latent[i*w:(i+1)*w], view.Entry(seq, from+i))
			copy(c[i*r:(i+1)*r], latent[i*w:])
		}
		to := func(offset int) kernel.Vectors {
			return vectors(a.entries.values[from*size+offset:], size, d+v)
		}
		st.Pool.Move(to(0), vectors(keys.Broadcast(st, c), a.NopeDim, n*a.NopeDim), n, heads, a.NopeDim)
		st.Pool.Move(to(a.NopeDim), vectors(latent[r:], w, 0), n, heads, a.RopeDim)
		st.Pool.Move(to(d), vectors(values.Broadcast(st, c), v, n*v), n, heads, v)
		st.Release(mark)
	}
}

// perHead repeats the lists of sources for each head.
func (a *MLA) perHead(sources []kernel.Source, heads int) []kernel.Source {
	if len(sources) == 2 {
		lists := a.entries.lists[:0]
		for _, list := range a.Indexer.lists {
			for range heads {
				lists = append(lists, list)
			}
		}
		a.entries.lists, sources[1].Lists = lists, lists
	}
	return sources
}
