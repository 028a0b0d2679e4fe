package attention

import (
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/tensor"
)

// LoadMLA reads the projections of a layer under their Hugging Face names or
// those that GGUF files add to them; w is at "model.layers.N.self_attn.".
func LoadMLA(w *nn.Loader, c *MLAConfig, heads, hidden int, expanded bool) *MLA {
	a := &MLA{MLAConfig: *c, Heads: heads, Expanded: expanded}
	if c.QueryRank == 0 {
		a.Q = w.Linear("q_proj", heads*c.HeadDim(), hidden)
	} else {
		a.QA = w.Linear("q_a_proj", c.QueryRank, hidden)
		a.QNorm = w.Norm("q_a_layernorm", c.QueryRank)
		a.Q = w.Linear("q_b_proj", heads*c.HeadDim(), c.QueryRank)
	}
	a.KVA = w.Linear("kv_a_proj_with_mqa", c.Width(), hidden)
	a.Norm = w.Norm("kv_a_layernorm", c.Rank)
	if w.Has("k_b_proj.weight") || w.Has("v_b_proj.weight") {
		a.loadSplit(w)
	} else {
		a.loadJoint(w)
	}
	a.O = w.SplitLinear("o_proj", hidden, heads*c.ValueDim, c.ValueDim)
	return a
}

// loadJoint reads kv_b_proj, which has for each head the rows of K_h and then
// those of V_h.
func (a *MLA) loadJoint(w *nn.Loader) {
	head := a.NopeDim + a.ValueDim
	m := w.Matrix("kv_b_proj.weight", a.Heads*head, a.Rank)
	if m == nil || w.Packer == nil {
		return
	}
	m = m.Sliceable(a.NopeDim, a.ValueDim)
	rows := func(from, to int) *tensor.Matrix {
		part, err := m.Slice(from, to)
		if err != nil {
			panic(err) // m is sliceable there
		}
		return part
	}
	for h := range a.Heads {
		k, v := rows(h*head, h*head+a.NopeDim), rows(h*head+a.NopeDim, (h+1)*head)
		if !a.Expanded {
			k = k.Transpose()
		}
		a.K, a.V = append(a.K, w.Pack(k, 0)), append(a.V, w.Pack(v, 0))
	}
}

// loadSplit reads what GGUF files have in place of kv_b_proj: K_hᵀ and V_h.
func (a *MLA) loadSplit(w *nn.Loader) {
	pack := func(m *tensor.Matrix) *kernel.Weight { return w.Pack(m, 0) }
	for _, k := range w.Stack("k_b_proj.weight", a.Heads, a.Rank, a.NopeDim) {
		if a.Expanded && w.Packer != nil {
			k = k.Transpose()
		}
		a.K = append(a.K, pack(k))
	}
	for _, v := range w.Stack("v_b_proj.weight", a.Heads, a.ValueDim, a.Rank) {
		a.V = append(a.V, pack(v))
	}
}

// LoadIndexer reads the indexer of a layer with queries of the given rank; w is
// at "model.layers.N.self_attn.indexer.".
func LoadIndexer(w *nn.Loader, c *IndexerConfig, rank, hidden int) *Indexer {
	return &Indexer{
		IndexerConfig: *c,
		Q:             w.Linear("wq_b", c.Heads*c.Dim, rank),
		K:             w.Linear("wk", c.Dim, hidden),
		W:             w.ExactLinear("weights_proj", c.Heads, hidden),
		KNorm:         w.Vector("k_norm.weight", c.Dim),
		KBias:         w.Vector("k_norm.bias", c.Dim),
	}
}
