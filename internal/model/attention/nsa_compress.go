package attention

import (
	"github.com/foretoken/foretoken/internal/model/nn"
)

// BlockMLP makes one vector of the vectors of a block, for all heads alike
// (section 3.3.1): Second(silu(First(x + Positions))), where x is a block's
// vectors one after the other.
type BlockMLP struct {
	Positions     []float32 // [CompressBlock, dim]
	First, Second *nn.Linear
}

// Forward maps x [blocks, CompressBlock·dim], which it changes, to [blocks, dim].
func (m *BlockMLP) Forward(st *nn.State, x []float32) []float32 {
	for at, n := 0, len(m.Positions); at < len(x); at += n {
		st.Pool.Add(x[at:at+n], m.Positions)
	}
	h := m.First.Forward(st, x)
	ones := st.Take(len(h))
	for i := range ones {
		ones[i] = 1
	}
	st.Pool.SwiGLU(h, ones)
	return m.Second.Forward(st, h)
}

// compress stores the compressed entries of blocks that the step completes. It
// reads what the cache holds of them, which is the same however their positions
// came to be there.
func (a *NSA) compress(step *nn.Step, st *nn.State) {
	l, n := a.CompressBlock, a.KVHeads*(a.KeyDim+a.ValueDim)
	seqs, slots := st.TakeInts(step.Rows())[:0], st.TakeInts(step.Rows())[:0]
	for row, pos := range step.Positions {
		if begins := int(pos) + 1 - l; begins >= 0 && begins%a.Stride == 0 {
			seqs, slots = append(seqs, step.Seqs[row]), append(slots, int32(begins/a.Stride))
		}
	}
	if len(slots) == 0 {
		return
	}
	blockSeqs, positions := st.TakeInts(l * len(slots))[:0], st.TakeInts(l * len(slots))[:0]
	for i, slot := range slots {
		for t := range l {
			blockSeqs, positions = append(blockSeqs, seqs[i]), append(positions, slot*int32(a.Stride)+int32(t))
		}
	}
	from, to := st.Store(a.Layer, nsaPositions), st.Store(a.Layer, nsaCompressed)
	blocks, entries := st.Take(len(positions)*n), st.Take(len(slots)*n)
	st.Pool.LoadEntries(blocks, from, from.DType(), n, blockSeqs, positions)
	if a.KeyMLP == nil {
		st.Pool.Means(entries, blocks, l, n)
	} else {
		a.compressPart(st, entries, blocks, a.KeyMLP, 0, a.KeyDim)
		a.compressPart(st, entries, blocks, a.ValueMLP, a.KeyDim, a.ValueDim)
	}
	st.Pool.StoreEntries(to, to.DType(), entries, n, seqs, slots)
}

// compressPart makes the keys, or the values, of entries [blocks, KVHeads,
// KeyDim+ValueDim]: dim values of each head from the given one on. x is
// [blocks, CompressBlock, KVHeads, KeyDim+ValueDim].
func (a *NSA) compressPart(st *nn.State, entries, x []float32, mlp *BlockMLP, at, dim int) {
	l, head := a.CompressBlock, a.KeyDim+a.ValueDim
	n := a.KVHeads * head
	blocks := len(entries) / n
	parts := st.Take(blocks * a.KVHeads * l * dim)
	for h := range a.KVHeads {
		st.Pool.Move(vectors(parts[h*l*dim:], a.KVHeads*l*dim, dim), vectors(x[h*head+at:], l*n, n),
			blocks, l, dim)
	}
	y := mlp.Forward(st, parts)
	st.Pool.Move(vectors(entries[at:], n, head), vectors(y, a.KVHeads*dim, dim), blocks, a.KVHeads, dim)
}
