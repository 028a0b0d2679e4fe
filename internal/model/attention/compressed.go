package attention

import (
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// Compressed is the attention of DeepSeek V4: all query heads share one
// vector of a position, which is key and value at once. A row reads those of a
// sliding window and, where the layer has a compressor, entries that each
// stand for Ratio positions: all of them (heavily compressed attention) or
// those that an indexer chooses (compressed sparse attention). A sink in every
// head's softmax lets it read nothing.
//
//	q  = rope(norm(norm(x·W_qa)·W_qb)) per head      kv = rope(norm(x·W_kv))
//	o  = rope⁻¹(softmax(q·[kv of the window; entries], sink)·[kv; entries])
//	y  = [o₁·W_oa₁ … o_g·W_oa_g]·W_ob
type Compressed struct {
	QDown, QUp *nn.Linear // hidden → low rank → Heads·Dim
	QNorm      *nn.Norm   // of the low rank
	HeadNorm   *nn.Norm   // of each head, without weights
	KV         *nn.Linear // hidden → Dim
	KVNorm     *nn.Norm
	Rope       *nn.Rope   // of the last values of a head
	Sinks      []float32  // [Heads]
	OutDown    nn.PerHead // of each group of heads
	OutUp      *nn.Linear // of all groups' results

	Compressor *Compressor   // nil: the window is all
	Indexer    *EntryIndexer // nil: all entries are read

	Heads, Dim int
	Window     int // positions that a row sees, its own included
	Scale      float32
	// RoundFP8 rounds vectors and entries, but for their rotated values, as
	// training did: to fp8 with a scale for 64 values.
	RoundFP8 bool
	Layer    int // index in the cache

	visible ranges
	sources [2]kernel.Source
}

// The stores of a layer.
const (
	storeWindow = iota
	storeEntries
	storeInputs
	storeIndexKeys
	storeIndexInputs
)

// ranges are what the rows of a piece read.
type ranges struct {
	first, end []int32 // positions of the window
	entries    []int32 // how many entries are complete
}

// Cache says what the layer keeps.
func (a *Compressed) Cache() kvcache.LayerSpec {
	spec := kvcache.LayerSpec{{Kind: "window", Layout: kvcache.Rows, Heads: 1, KeyDim: a.Dim, Ring: a.Window}}
	if a.Compressor != nil {
		spec = append(spec,
			kvcache.Store{Kind: "compressed entries", Layout: kvcache.Rows, Heads: 1, KeyDim: a.Dim, Every: a.Compressor.Ratio},
			a.Compressor.inputStore("compressor inputs"))
	}
	if a.Indexer != nil {
		spec = append(spec,
			kvcache.Store{Kind: "index keys", Heads: 1, KeyDim: a.Indexer.Dim, Every: a.Compressor.Ratio},
			a.Indexer.Compressor.inputStore("index compressor inputs"))
	}
	return spec
}

// Trees says that drafts are chains: compressed entries are of consecutive
// positions.
func (a *Compressed) Trees() bool { return false }

// Forward maps x [rows, hidden] to [rows, hidden].
func (a *Compressed) Forward(step *nn.Step, st *nn.State, x []float32) []float32 {
	down := nn.Project(st, x, a.QDown, a.KV)
	low, kv := down[0], down[1]
	a.QNorm.InPlace(st, low)
	q := a.QUp.Forward(st, low)
	a.HeadNorm.InPlace(st, q)
	a.Rope.RotateLast(st, q, a.Heads, a.Dim)
	a.KVNorm.InPlace(st, kv)
	a.Rope.RotateLast(st, kv, 1, a.Dim)
	if a.RoundFP8 {
		roundEntries(st, kv, a.Dim, a.Rope.Dim)
	}

	a.Compressor.project(st, x)
	a.Indexer.project(st, x, low)
	out := st.Take(len(q))
	n := a.Heads * a.Dim
	for from, to := range step.Pieces(kvcache.Slack) {
		a.store(step, st, kv, from, to)
		a.attend(step, st, q[from*n:to*n], out[from*n:to*n], from, to)
	}
	a.Rope.UnrotateLast(st, out, a.Heads, a.Dim)
	return a.output(st, out, step.Rows())
}

// store adds rows [from, to) of the step to the cache, and the entries that
// they complete.
func (a *Compressed) store(step *nn.Step, st *nn.State, kv []float32, from, to int) {
	window := st.Store(a.Layer, storeWindow)
	st.Pool.StoreEntries(window, window.DType(), kv[from*a.Dim:to*a.Dim], a.Dim, step.Seqs[from:to], step.Positions[from:to])
	if a.Compressor == nil {
		return
	}
	mark := st.Mark()
	if e := a.Compressor.complete(step, st, st.Store(a.Layer, storeInputs), from, to); len(e.slots) > 0 {
		if a.RoundFP8 {
			roundEntries(st, e.values, a.Dim, a.Rope.Dim)
		}
		entries := st.Store(a.Layer, storeEntries)
		st.Pool.StoreEntries(entries, entries.DType(), e.values, a.Dim, e.seqs, e.slots)
	}
	if a.Indexer != nil {
		a.Indexer.store(step, st, st.Store(a.Layer, storeIndexKeys), st.Store(a.Layer, storeIndexInputs), from, to)
	}
	st.Release(mark)
}

func (a *Compressed) attend(step *nn.Step, st *nn.State, q, out []float32, from, to int) {
	mark := st.Mark()
	v := &a.visible
	v.first, v.end, v.entries = v.first[:0], v.end[:0], v.entries[:0]
	for _, p := range step.Positions[from:to] {
		v.first, v.end = append(v.first, max(p+1-int32(a.Window), 0)), append(v.end, p+1)
		if a.Compressor != nil {
			v.entries = append(v.entries, (p+1)/int32(a.Compressor.Ratio))
		}
	}
	window := st.Store(a.Layer, storeWindow)
	a.sources[0] = kernel.Source{Entries: window, From: v.first, To: v.end}
	sources := a.sources[:1]
	switch {
	case a.Indexer != nil:
		lists := a.Indexer.choose(step, st, st.Store(a.Layer, storeIndexKeys), q, v.entries, from, to)
		sources = append(sources, kernel.Source{Entries: st.Store(a.Layer, storeEntries), Lists: lists})
	case a.Compressor != nil:
		sources = append(sources, kernel.Source{Entries: st.Store(a.Layer, storeEntries), To: v.entries})
	}
	st.Pool.AttendEntries(kernel.EntryAttention{
		Heads: a.Heads, KVHeads: 1, KeyDim: a.Dim, ValueDim: a.Dim, Shared: true,
		Scale: a.Scale, DType: window.DType(), Q: q, Out: out, Seqs: step.Seqs[from:to],
		Sinks: a.Sinks, Sources: sources,
	})
	st.Release(mark)
}

// output projects the heads' results o [rows, Heads, Dim] group by group, and
// all groups' results together.
func (a *Compressed) output(st *nn.State, o []float32, rows int) []float32 {
	groups := len(a.OutDown)
	in, out := a.OutDown[0].Cols, a.OutDown[0].Rows
	grouped := st.Take(len(o))
	st.Pool.Move(vectors(grouped, in, rows*in), vectors(o, groups*in, in), rows, groups, in)
	y := a.OutDown.Forward(st, grouped)
	low := st.Take(len(y))
	st.Pool.Move(vectors(low, groups*out, out), vectors(y, out, rows*out), rows, groups, out)
	return a.OutUp.Forward(st, low)
}

// FP8Block is how many values of a vector share a scale.
const FP8Block = 64

// roundEntries rounds all but the last rotated values of vectors of dim.
func roundEntries(st *nn.State, x []float32, dim, rotated int) {
	mark, n, rows := st.Mark(), dim-rotated, len(x)/dim
	plain := st.Take(rows * n)
	st.Pool.Move(vectors(plain, n, 0), vectors(x, dim, 0), rows, 1, n)
	st.Pool.RoundE4M3(plain, FP8Block)
	st.Pool.Move(vectors(x, dim, 0), vectors(plain, n, 0), rows, 1, n)
	st.Release(mark)
}
