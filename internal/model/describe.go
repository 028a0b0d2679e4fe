package model

import (
	"fmt"
	"slices"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/attention"
	"github.com/foretoken/foretoken/internal/tensor"
)

// A Description is a Config in the words of the literature.
type Description struct {
	Attention   AttentionDescription   `json:"attention"`
	FeedForward FeedForwardDescription `json:"feed_forward"`
	Residual    ResidualDescription    `json:"residual"`
	MTPLayers   int                    `json:"mtp_layers,omitempty"` // modules of multi-token prediction
	Equations   []string               `json:"equations"`
	Cache       []StoreDescription     `json:"cache"`
}

// An AttentionDescription says how layers attend. What is 0 there is not.
type AttentionDescription struct {
	Design    string `json:"design"`
	Heads     int    `json:"heads"` // of queries
	KVHeads   int    `json:"kv_heads"`
	KeyDim    int    `json:"key_dim"` // of queries and keys
	ValueDim  int    `json:"value_dim"`
	RotaryDim int    `json:"rotary_dim"` // of KeyDim, the values that know positions

	Window          int `json:"window,omitempty"` // positions, the row's own included
	WindowLayers    int `json:"window_layers,omitempty"`
	UnrotatedLayers int `json:"unrotated_layers,omitempty"`

	QueryRank    int `json:"query_rank,omitempty"`
	LatentDim    int `json:"latent_dim,omitempty"` // of the vector that keys and values are made of
	OutputGroups int `json:"output_groups,omitempty"`
	OutputRank   int `json:"output_rank,omitempty"` // of each group

	Compressed []CompressedDescription `json:"compressed,omitempty"`
	Index      *IndexDescription       `json:"index,omitempty"`
	Blocks     *BlockDescription       `json:"blocks,omitempty"`
}

// A CompressedDescription is of layers whose rows read, beside a window,
// entries that stand for several positions each.
type CompressedDescription struct {
	Positions int  `json:"positions"` // of an entry
	Layers    int  `json:"layers"`
	Indexed   bool `json:"indexed"` // rows read those that an indexer chooses, not all
}

// An IndexDescription is of what chooses positions or entries.
type IndexDescription struct {
	Heads int `json:"heads"`
	Dim   int `json:"dim"`
	TopK  int `json:"top_k"`
}

// A BlockDescription is of layers that read compressed and selected blocks.
type BlockDescription struct {
	Compressed int `json:"compressed"` // positions of a block that is one entry
	Stride     int `json:"stride"`     // from one of these to the next
	Selected   int `json:"selected"`   // positions of a block that is read in full
	Count      int `json:"count"`      // of blocks that a row selects
	Forced     int `json:"forced"`     // of them, those that it always does
}

// A FeedForwardDescription says what follows attention in layers.
type FeedForwardDescription struct {
	DenseLayers int                `json:"dense_layers"`
	Width       int                `json:"width,omitempty"` // of dense layers
	Experts     *ExpertDescription `json:"experts,omitempty"`
}

// An ExpertDescription is of layers with mixtures of experts.
type ExpertDescription struct {
	Layers      int `json:"layers"`
	Count       int `json:"count"` // of routed experts
	Active      int `json:"active"`
	Width       int `json:"width"`
	SharedWidth int `json:"shared_width,omitempty"` // of the expert that works on every token

	Scoring      string  `json:"scoring"`
	Bias         bool    `json:"bias,omitempty"` // takes part in choosing
	Groups       int     `json:"groups,omitempty"`
	ActiveGroups int     `json:"active_groups,omitempty"`
	GroupTop     int     `json:"group_top,omitempty"` // of a group's scores, those that make its own
	Normalized   bool    `json:"normalized"`
	Scale        float64 `json:"scale"`
	Limit        float64 `json:"limit,omitempty"`       // of activations
	HashLayers   int     `json:"hash_layers,omitempty"` // the first layers, whose experts are chosen by token
}

// A ResidualDescription says what layers read and write.
type ResidualDescription struct {
	Design     string `json:"design"`
	Streams    int    `json:"streams"`
	Iterations int    `json:"iterations,omitempty"` // of Sinkhorn–Knopp
}

// A StoreDescription is what several layers alike keep of a sequence. It grows
// by BytesPerToken, or does not grow and is BytesPerSequence.
type StoreDescription struct {
	Kind             string  `json:"kind"`
	Layers           int     `json:"layers"`
	EntryBytes       int     `json:"entry_bytes"` // of one layer
	TokensPerEntry   int     `json:"tokens_per_entry"`
	BytesPerToken    float64 `json:"bytes_per_token,omitempty"` // of all layers
	BytesPerSequence int     `json:"bytes_per_sequence,omitempty"`
}

// Describe describes c. Caches are those of a pool of type d.
func (c *Config) Describe(d tensor.DType) Description {
	return Description{
		Attention:   c.describeAttention(),
		FeedForward: c.describeFeedForward(),
		Residual:    c.describeResidual(),
		MTPLayers:   c.MTPLayers,
		Equations:   c.equations(),
		Cache:       describeCache(c.Cache(), d),
	}
}

// Cache says what each layer keeps of a sequence, as Model.Cache does for a
// loaded model; modules of multi-token prediction are not counted.
func (c *Config) Cache() []kvcache.LayerSpec {
	specs := make([]kvcache.LayerSpec, c.Layers)
	for i := range specs {
		specs[i] = c.design(i).Cache()
	}
	return specs
}

// Trees returns why rows of the model cannot be of trees of drafts
// (nn.Step.Draft), nil if they can. All models take chains.
func (c *Config) Trees() error {
	for i := range c.Layers {
		if !c.design(i).Trees() {
			return fmt.Errorf("%s takes drafts as chains, not as trees", c.describeAttention().Design)
		}
	}
	return nil
}

// design is the attention of layer i without weights: it can say what it keeps.
func (c *Config) design(i int) attention.Design {
	switch {
	case c.V4 != nil:
		a := &attention.Compressed{Dim: c.HeadDim, Window: c.Window}
		ratio := c.V4.Ratios[i]
		compressor := func(dim int) *attention.Compressor {
			return &attention.Compressor{Ratio: ratio, Dim: dim, Overlap: ratio == overlapping}
		}
		if ratio > 0 {
			a.Compressor = compressor(c.HeadDim)
		}
		if ratio == overlapping {
			a.Indexer = &attention.EntryIndexer{Dim: c.V4.IndexDim, Compressor: compressor(c.V4.IndexDim)}
		}
		return a
	case c.MLA != nil:
		a := &attention.MLA{MLAConfig: *c.MLA}
		if c.Indexer != nil {
			a.Indexer = &attention.Indexer{IndexerConfig: *c.Indexer}
		}
		return a
	case c.NSA != nil:
		return &attention.NSA{NSAConfig: *c.NSA, KVHeads: c.KVHeads, KeyDim: c.HeadDim, ValueDim: c.HeadDim}
	}
	return &attention.GQA{KVHeads: c.KVHeads, HeadDim: c.HeadDim}
}

// describeCache adds up stores that are alike, in the order in which layers
// have them.
func describeCache(layers []kvcache.LayerSpec, d tensor.DType) (list []StoreDescription) {
	for _, l := range layers {
		for _, s := range l {
			one := StoreDescription{Kind: s.Kind, EntryBytes: s.EntryBytes(d), TokensPerEntry: max(s.Every, 1)}
			i := slices.IndexFunc(list, func(other StoreDescription) bool {
				return other.Kind == one.Kind && other.EntryBytes == one.EntryBytes && other.TokensPerEntry == one.TokensPerEntry &&
					(other.BytesPerSequence > 0) == (s.Ring > 0)
			})
			if i < 0 {
				i, list = len(list), append(list, one)
			}
			list[i].Layers++
			if s.Ring > 0 {
				list[i].BytesPerSequence += (s.Ring + kvcache.Slack) * one.EntryBytes
			} else {
				list[i].BytesPerToken += float64(one.EntryBytes) / float64(one.TokensPerEntry)
			}
		}
	}
	return list
}

func (c *Config) describeAttention() AttentionDescription {
	d := AttentionDescription{
		Heads: c.Heads, KVHeads: c.KVHeads, KeyDim: c.HeadDim, ValueDim: c.HeadDim, RotaryDim: c.Rope.Dim,
		WindowLayers: marked(c.Sliding), UnrotatedLayers: marked(c.NoRope),
	}
	if d.WindowLayers > 0 {
		d.Window = c.Window
	}
	switch {
	case c.V4 != nil:
		d.Design = "window and compressed entries"
		d.Window, d.WindowLayers, d.QueryRank = c.Window, c.Layers, c.V4.QueryRank
		d.OutputGroups, d.OutputRank = c.V4.OutGroups, c.V4.OutRank
		for _, ratio := range []int{overlapping, heavy} {
			if n := count(c.V4.Ratios[:c.Layers], ratio); n > 0 {
				d.Compressed = append(d.Compressed, CompressedDescription{Positions: ratio, Layers: n, Indexed: ratio == overlapping})
			}
		}
		if len(d.Compressed) > 0 && d.Compressed[0].Indexed {
			d.Index = &IndexDescription{c.V4.IndexHeads, c.V4.IndexDim, c.V4.IndexTopK}
		}
	case c.MLA != nil:
		d.Design = "multi-head latent attention"
		d.ValueDim, d.QueryRank, d.LatentDim = c.MLA.ValueDim, c.MLA.QueryRank, c.MLA.Rank
		if c.Indexer != nil {
			d.Design = "sparse latent attention"
			d.Index = &IndexDescription{c.Indexer.Heads, c.Indexer.Dim, c.Indexer.TopK}
		}
	case c.NSA != nil:
		n := c.NSA
		d.Design = "native sparse attention"
		d.Blocks = &BlockDescription{n.CompressBlock, n.Stride, n.SelectBlock, n.Select, n.Initial + n.Local}
		if n.Window > 0 {
			d.Window, d.WindowLayers = n.Window, c.Layers
		}
	case c.KVHeads == c.Heads:
		d.Design = "multi-head attention"
	case c.KVHeads == 1:
		d.Design = "multi-query attention"
	default:
		d.Design = "grouped-query attention"
	}
	return d
}

func (c *Config) describeFeedForward() FeedForwardDescription {
	m := c.MoE
	if m == nil {
		return FeedForwardDescription{DenseLayers: c.Layers, Width: c.Intermediate}
	}
	var d FeedForwardDescription
	if c.Dense != nil {
		d.DenseLayers = marked(c.Dense[:c.Layers])
	}
	if d.DenseLayers > 0 {
		d.Width = c.Intermediate
	}
	d.Experts = &ExpertDescription{
		Layers: c.Layers - d.DenseLayers,
		Count:  m.Experts, Active: m.Active, Width: m.Inner, SharedWidth: m.Shared,
		Scoring: string(m.Scoring), Bias: m.Bias || c.V4 != nil, Normalized: m.Normalize, Scale: m.Scale, Limit: m.Limit,
	}
	if m.Groups > 1 {
		d.Experts.Groups, d.Experts.ActiveGroups, d.Experts.GroupTop = m.Groups, m.ActiveGroups, m.GroupTop
	}
	if c.V4 != nil {
		d.Experts.HashLayers = c.V4.HashLayers
	}
	return d
}

func (c *Config) describeResidual() ResidualDescription {
	if c.V4 != nil {
		return ResidualDescription{Design: "manifold-constrained hyper-connections", Streams: c.V4.Hyper.Streams, Iterations: c.V4.Hyper.Iterations}
	}
	return ResidualDescription{Design: "one stream", Streams: 1}
}

// marked counts the layers that flags mark.
func marked(flags []bool) int { return count(flags, true) }

func count[T comparable](list []T, value T) (n int) {
	for _, v := range list {
		if v == value {
			n++
		}
	}
	return n
}
