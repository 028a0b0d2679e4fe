package attention

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// MLAConfig is the shape of latent attention.
type MLAConfig struct {
	QueryRank int // of the projection of queries (q_lora_rank); 0: it has full rank
	Rank      int // values of a latent vector (kv_lora_rank)
	NopeDim   int // values of a query or key head that do not know positions (qk_nope_head_dim)
	RopeDim   int // and of those that do, which follow (qk_rope_head_dim)
	ValueDim  int // values of a value head (v_head_dim)
}

// HeadDim is the width of query and key heads.
func (c *MLAConfig) HeadDim() int { return c.NopeDim + c.RopeDim }

// Width is how many values are kept of a position.
func (c *MLAConfig) Width() int { return c.Rank + c.RopeDim }

const maxWidth = 1 << 20 // of any vector: far beyond published models

// Validate reports a size that no model has, by its name in config.json.
func (c *MLAConfig) Validate() error {
	for _, f := range []struct {
		name         string
		value, least int
	}{
		{"q_lora_rank", c.QueryRank, 0},
		{"kv_lora_rank", c.Rank, 1},
		{"qk_nope_head_dim", c.NopeDim, 1},
		{"qk_rope_head_dim", c.RopeDim, 2},
		{"v_head_dim", c.ValueDim, 1},
	} {
		if f.value < f.least || f.value > maxWidth {
			return fmt.Errorf("%s is %d, expected %d to %d", f.name, f.value, f.least, maxWidth)
		}
	}
	if c.RopeDim%2 != 0 {
		return fmt.Errorf("qk_rope_head_dim is %d, expected an even number: rotary embeddings turn pairs", c.RopeDim)
	}
	return nil
}

// MLA is multi-head latent attention (DeepSeek-V2, section 2.1). Keys and
// values of all heads are linear in one latent vector c, which is kept in their
// place beside a rotated key k_r that all heads share:
//
//	q_h = [q_n; q_r]    k_h = [K_h·c; k_r]    v_h = V_h·c
//
// Absorbed, heads attend to the latent vectors themselves, as in multi-query
// attention: q_h·k_h = (K_hᵀ·q_n)·c + q_r·k_r, and values are summed before they
// are expanded. Expanded, the keys and values of all positions are formed
// first. Both are the same but for rounding. Which it is, is said once for a
// process and never depends on a batch; what is kept after one of them is not
// bit for bit what the other would have kept.
type MLA struct {
	MLAConfig
	Heads int

	QA    *nn.Linear // [QueryRank, hidden]; nil: Q reads x
	QNorm *nn.Norm
	Q     *nn.Linear // [Heads·(NopeDim+RopeDim), QueryRank or hidden]
	KVA   *nn.Linear // [Rank+RopeDim, hidden]
	Norm  *nn.Norm   // of latent vectors
	K     nn.PerHead // K_hᵀ, [Rank, NopeDim] each; if Expanded, K_h
	V     nn.PerHead // [ValueDim, Rank] each
	O     *nn.Linear // [hidden, Heads·ValueDim]

	Rope     *nn.Rope // of the last values of query heads and of what is kept
	Scale    float32  // of q·k before softmax
	Expanded bool
	Indexer  *Indexer // chooses what rows attend to; nil: they attend to all before them
	Layer    int      // index in the cache

	sources [2]kernel.Source
	entries expandedEntries
}

// The stores of a layer.
const (
	latentStore = iota
	indexStore
)

// Cache says what the layer keeps.
func (a *MLA) Cache() kvcache.LayerSpec {
	spec := kvcache.LayerSpec{{Kind: "latent", Layout: kvcache.Rows, Heads: 1, KeyDim: a.Width()}}
	if a.Indexer != nil {
		spec = append(spec, a.Indexer.store())
	}
	return spec
}

// Trees says that drafts are chains: a row reads entries by their positions.
func (a *MLA) Trees() bool { return false }

// Forward maps x [rows, hidden] to [rows, hidden], reading the cached
// positions of each row's sequence and adding the row's own.
func (a *MLA) Forward(step *nn.Step, st *nn.State, x []float32) []float32 {
	q, latent, low := a.project(st, x)
	view := st.Store(a.Layer, latentStore)
	st.Pool.StoreEntries(view, view.DType(), latent, a.Width(), step.Seqs, step.Positions)
	if a.Indexer != nil {
		a.Indexer.prepare(step, st, st.Store(a.Layer, indexStore), x, low)
	}
	out := st.Take(step.Rows() * a.Heads * a.ValueDim)
	if a.Expanded {
		a.attendExpanded(step, st, view, q, out)
	} else {
		a.attendAbsorbed(step, st, view, q, out)
	}
	return a.O.Forward(st, out)
}

// project returns queries [rows, Heads, NopeDim+RopeDim] and what is kept of
// the rows [rows, Rank+RopeDim], both rotated, and what low-rank queries are
// made of [rows, QueryRank].
func (a *MLA) project(st *nn.State, x []float32) (q, latent, low []float32) {
	if a.QA == nil {
		y := nn.Project(st, x, a.Q, a.KVA)
		q, latent = y[0], y[1]
	} else {
		y := nn.Project(st, x, a.QA, a.KVA)
		low, latent = y[0], y[1]
		a.QNorm.InPlace(st, low)
		q = a.Q.Forward(st, low)
	}
	a.Rope.RotateLast(st, q, a.Heads, a.HeadDim())
	a.Rope.RotateLast(st, latent, 1, a.Width())

	mark, rows := st.Mark(), len(latent)/a.Width()
	c := st.Take(rows * a.Rank)
	st.Pool.Move(vectors(c, a.Rank, 0), vectors(latent, a.Width(), 0), rows, 1, a.Rank)
	a.Norm.InPlace(st, c)
	st.Pool.Move(vectors(latent, a.Width(), 0), vectors(c, a.Rank, 0), rows, 1, a.Rank)
	st.Release(mark)
	return q, latent, low
}

// reach says what rows [from, to) of the step read of entries, one for each
// position: all up to their own, or what the indexer selects. The result is
// valid until the next call, and while workspace is that is taken here. The
// rows' queries q become NaN where the indexer's scores are no finite numbers.
func (a *MLA) reach(step *nn.Step, st *nn.State, entries kernel.Entries, q []float32, from, to int) []kernel.Source {
	end := st.TakeInts(to - from)
	for i, pos := range step.Positions[from:to] {
		end[i] = pos + 1
	}
	a.sources[0] = kernel.Source{Entries: entries, To: end}
	if a.Indexer == nil {
		return a.sources[:1]
	}
	lists := a.Indexer.selected(step, st, q, from, to)
	if lists == nil {
		return a.sources[:1]
	}
	// A row with a list reads nothing of the first source, the others read
	// nothing of the second.
	for i, list := range lists {
		if len(list) > 0 {
			end[i] = 0
		}
	}
	a.sources[1] = kernel.Source{Entries: entries, Lists: lists}
	return a.sources[:2]
}
