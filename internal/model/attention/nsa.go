package attention

import (
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// NSAConfig says what a row of native sparse attention reads, in positions.
// Stride divides CompressBlock and SelectBlock, and CompressBlock is no longer
// than SelectBlock.
type NSAConfig struct {
	CompressBlock int // positions of which one compressed entry is made (l)
	Stride        int // from one of these to the next (d)
	SelectBlock   int // positions of a selected block (l')
	Select        int // blocks that a row selects (n), of which
	Initial       int // the first of the sequence
	Local         int // and the last up to the row are always taken
	Window        int // positions of the window, the row's own included (w); 0: there is no such branch
}

// NSA is native sparse attention (Yuan et al. 2025, arXiv 2502.11089): three
// attentions with the same queries, keys and values, of which each head has a
// gate for each (section 3.2, equation 5).
//
//	o = g_cmp·Attn(q, compressed blocks) + g_slc·Attn(q, selected blocks) + g_win·Attn(q, window)
//
// Compressed blocks are CompressBlock positions each, made into one key and one
// value, and visible once the last of these positions is. Their attention says
// which blocks of SelectBlock positions are read in full, the same for all
// query heads that share a key-value head.
type NSA struct {
	Q, K, V, O *nn.Linear
	Gates      *nn.Linear // [Heads, kernel.Branches], before the sigmoid
	Rope       *nn.Rope   // compressed keys are made of rotated ones

	// How a compressed block is made of its keys and of its values; nil: it is
	// their mean.
	KeyMLP, ValueMLP *BlockMLP

	NSAConfig
	Heads, KVHeads   int
	KeyDim, ValueDim int
	Scale            float32 // of q·k before softmax
	Layer            int     // index in the cache

	// Memory that calls share.
	sources [1]kernel.Source
	scores  [][]float32
	blocks  [][]int32
	lists   [][]int32
}

// The stores of a layer.
const (
	nsaPositions = iota
	nsaCompressed
)

// Cache says what the layer keeps. Compressed entry i is that of the block from
// position i·Stride on; until the block is complete it holds anything.
func (a *NSA) Cache() kvcache.LayerSpec {
	positions := kvcache.Store{Kind: "keys and values", Layout: kvcache.Rows, Heads: a.KVHeads, KeyDim: a.KeyDim, ValueDim: a.ValueDim}
	compressed := positions
	compressed.Kind, compressed.Every = "compressed keys and values", a.Stride
	return kvcache.LayerSpec{nsaPositions: positions, nsaCompressed: compressed}
}

// Trees says that drafts are chains: blocks are of consecutive positions.
func (a *NSA) Trees() bool { return false }

// Forward maps x [rows, hidden] to [rows, hidden], reading the cached
// positions of each row's sequence and adding the row's own.
func (a *NSA) Forward(step *nn.Step, st *nn.State, x []float32) []float32 {
	y := nn.Project(st, x, a.Q, a.K, a.V, a.Gates)
	q, k, v, gates := y[0], y[1], y[2], y[3]
	a.Rope.Rotate(st, q, a.Heads, a.KeyDim)
	a.Rope.Rotate(st, k, a.KVHeads, a.KeyDim)
	st.Pool.Sigmoid(gates)
	return a.O.Forward(st, a.attend(step, st, q, k, v, gates))
}

// attend adds the branches up: q [rows, Heads, KeyDim], k [rows, KVHeads,
// KeyDim], v [rows, KVHeads, ValueDim], gates [rows, Heads, Branches].
func (a *NSA) attend(step *nn.Step, st *nn.State, q, k, v, gates []float32) []float32 {
	out := st.Take(step.Rows() * a.Heads * a.ValueDim)
	mark := st.Mark()
	a.keep(step, st, k, v)
	branches := [kernel.Branches][]float32{a.compressed(step, st, q), a.selected(step, st, q)}
	if a.Window > 0 {
		branches[2] = a.windowed(step, st, q)
	}
	st.Pool.GatedSum(out, branches, gates, a.ValueDim)
	st.Release(mark)
	return out
}

// keep stores the step's keys and values, and the compressed entries of blocks
// that they complete.
func (a *NSA) keep(step *nn.Step, st *nn.State, k, v []float32) {
	mark, positions := st.Mark(), st.Store(a.Layer, nsaPositions)
	head := a.KeyDim + a.ValueDim
	entry := a.KVHeads * head
	entries := st.Take(step.Rows() * entry)
	move := func(x []float32, width, at int) {
		st.Pool.Move(vectors(entries[at:], entry, head), vectors(x, a.KVHeads*width, width),
			step.Rows(), a.KVHeads, width)
	}
	move(k, a.KeyDim, 0)
	move(v, a.ValueDim, a.KeyDim)
	st.Pool.StoreEntries(positions, positions.DType(), entries, entry, step.Seqs, step.Positions)
	a.compress(step, st)
	st.Release(mark)
}

// compressed is attention to the compressed blocks that a row sees.
func (a *NSA) compressed(step *nn.Step, st *nn.State, q []float32) []float32 {
	out := st.Take(step.Rows() * a.Heads * a.ValueDim)
	mark := st.Mark()
	a.read(st, q, out, step.Seqs, kernel.Source{Entries: st.Store(a.Layer, nsaCompressed), To: a.visible(st, step.Positions)})
	st.Release(mark)
	return out
}

// windowed is attention to the last Window positions.
func (a *NSA) windowed(step *nn.Step, st *nn.State, q []float32) []float32 {
	out := st.Take(step.Rows() * a.Heads * a.ValueDim)
	mark := st.Mark()
	from, to := st.TakeInts(step.Rows()), st.TakeInts(step.Rows())
	for row, pos := range step.Positions {
		from[row], to[row] = max(0, pos+1-int32(a.Window)), pos+1
	}
	a.read(st, q, out, step.Seqs, kernel.Source{Entries: st.Store(a.Layer, nsaPositions), From: from, To: to})
	st.Release(mark)
	return out
}

// read attends to one source.
func (a *NSA) read(st *nn.State, q, out []float32, seqs []int32, source kernel.Source) {
	a.sources[0] = source
	st.Pool.AttendEntries(kernel.EntryAttention{
		Heads: a.Heads, KVHeads: a.KVHeads, KeyDim: a.KeyDim, ValueDim: a.ValueDim, Scale: a.Scale,
		DType: st.Store(a.Layer, nsaPositions).DType(),
		Q:     q, Out: out, Seqs: seqs, Sources: a.sources[:],
	})
}

// visible is how many compressed entries a row sees: those of blocks that end
// at its position or before.
func (a *NSA) visible(st *nn.State, positions []int32) []int32 {
	n := st.TakeInts(len(positions))
	for row, pos := range positions {
		n[row] = 0
		if begins := int(pos) + 1 - a.CompressBlock; begins >= 0 {
			n[row] = int32(begins/a.Stride + 1)
		}
	}
	return n
}
