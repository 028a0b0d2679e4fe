package attention

import (
	"math"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// nsaPiece is how many rows have their lists of positions made at a time.
const nsaPiece = 64

// selected is attention to the positions of selected blocks, up to a row's own.
func (a *NSA) selected(step *nn.Step, st *nn.State, q []float32) []float32 {
	out := st.Take(step.Rows() * a.Heads * a.ValueDim)
	for from := 0; from < step.Rows(); from += nsaPiece {
		to := min(from+nsaPiece, step.Rows())
		mark := st.Mark()
		seqs, positions := step.Seqs[from:to], step.Positions[from:to]
		q, out := q[from*a.Heads*a.KeyDim:to*a.Heads*a.KeyDim], out[from*a.Heads*a.ValueDim:to*a.Heads*a.ValueDim]
		a.score(st, q, seqs, positions)
		a.choose(st, positions)
		a.list(st, positions)
		a.read(st, q, out, seqs, kernel.Source{Entries: st.Store(a.Layer, nsaPositions), Lists: a.lists})
		st.Release(mark)
	}
	return out
}

// score gives every block up to a row's own its share of the row's attention to
// compressed entries (section 3.3.2): scores [rows·KVHeads], in workspace.
func (a *NSA) score(st *nn.State, q []float32, seqs, positions []int32) {
	a.scores = a.scores[:0]
	for _, pos := range positions {
		for range a.KVHeads {
			a.scores = append(a.scores, st.Take(int(pos)/a.SelectBlock+1))
		}
	}
	entries := st.Store(a.Layer, nsaCompressed)
	st.Pool.ScoreBlocks(kernel.BlockScores{
		Heads: a.Heads, KVHeads: a.KVHeads, KeyDim: a.KeyDim, ValueDim: a.ValueDim, Scale: a.Scale, DType: entries.DType(),
		Block: a.SelectBlock / a.Stride, Width: a.CompressBlock / a.Stride,
		Q: q, Seqs: seqs, To: a.visible(st, positions), Entries: entries, Scores: a.scores,
	})
}

// choose selects blocks, [rows·KVHeads]: the first Initial and the last Local,
// and of the others those with the highest scores, the lower where scores are
// equal. Scores are overwritten.
func (a *NSA) choose(st *nn.State, positions []int32) {
	for i, scores := range a.scores {
		own := int(positions[i/a.KVHeads]) / a.SelectBlock
		for block := range scores {
			if block < a.Initial || block > own-a.Local {
				scores[block] = float32(math.Inf(1))
			}
		}
	}
	a.blocks = st.Pool.TopK(a.scores, a.Select, a.blocks)
}

// list makes lists of positions of selected blocks, [rows·KVHeads], in
// workspace.
func (a *NSA) list(st *nn.State, positions []int32) {
	a.lists = a.lists[:0]
	for i, blocks := range a.blocks {
		end := int(positions[i/a.KVHeads]) + 1
		list := st.TakeInts(min(len(blocks)*a.SelectBlock, end))[:0]
		for _, block := range blocks {
			from := int(block) * a.SelectBlock
			for pos := from; pos < min(from+a.SelectBlock, end); pos++ {
				list = append(list, int32(pos))
			}
		}
		a.lists = append(a.lists, list)
	}
}
