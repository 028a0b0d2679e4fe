package model

import "github.com/foretoken/foretoken/internal/model/attention"

// deepseekV2 and deepseekV3 are DeepSeek-V2 (2024), V3 and R1 (2024): latent
// attention, and after some dense layers mixtures of experts of which some are
// always active. They differ in how experts are chosen, which their
// configurations say.
//
//	x += MLA(RMSNorm(x))
//	x += MoE(RMSNorm(x))
//
// V3.2 (2025) attends to the positions that an indexer selects.
var (
	deepseekV2 = family{layer: deepseekLayer, adapt: deepseekConfig, finish: deepseekMTP}
	deepseekV3 = deepseekV2

	// GGUF has one name for V2 and V3, and one for V3.2.
	deepseekGGUF = family{
		layer: deepseekLayer, finish: deepseekMTP,
		headsGGUF: deepseekHeadsGGUF, adaptGGUF: deepseekConfigGGUF, experts: true,
	}
)

func deepseekLayer(b *builder, i int) Layer {
	return b.preNorm(i, b.latentAttention(i), b.ffn(i))
}

// latentAttention loads the attention of layer i.
func (b *builder) latentAttention(i int) *attention.MLA {
	w := b.weights.Sub("model.layers.%d.self_attn.", i)
	a := attention.LoadMLA(w, b.MLA, b.Heads, b.Hidden, b.MLAExpanded)
	a.Rope, a.Scale, a.Layer = b.rope, float32(b.QueryScale), i
	if b.Indexer != nil {
		a.Indexer = attention.LoadIndexer(w.Sub("indexer."), b.Indexer, b.MLA.QueryRank, b.Hidden)
		a.Indexer.RoundFP8 = b.RoundCache
		halves := b.Rope // the frequencies are the same, the pairs are not
		halves.Interleaved = false
		a.Indexer.Rope = b.ropeOf(halves)
	}
	return a
}
