package model

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/attention"
	"github.com/foretoken/foretoken/internal/model/moe"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/model/residual"
)

// deepseek4 is DeepSeek V4 (DeepSeek-AI 2026): four residual streams joined by
// manifold-constrained hyper-connections, attention over a window and compressed
// entries, and mixtures of experts in every layer, the first of which choose
// experts by token.
//
//	X  = [embed(token)]×4
//	X += Attn(RMSNorm(pre(X)))      X += MoE(RMSNorm(pre(X)))      as mHC mixes them
//	logits = W·RMSNorm(collapse(X))
var deepseek4 = family{
	layer: deepseek4Layer, finish: deepseek4Finish, experts: true,
	defaults: deepseek4Defaults, adapt: deepseek4Config, headsGGUF: deepseek4Heads, adaptGGUF: deepseek4GGUF,
}

// hyperLayer is a layer whose parts read and write several residual streams.
type hyperLayer struct {
	attnHyper, ffnHyper *residual.Hyper
	attnNorm, ffnNorm   *nn.Norm
	attn                attention.Design
	ffn                 feedForward
}

func (l *hyperLayer) Attention(step *nn.Step, st *nn.State) {
	mark := st.Mark()
	x, mix := l.attnHyper.Pre(st, st.X)
	l.attnNorm.InPlace(st, x)
	l.attnHyper.Post(st, st.X, l.attn.Forward(step, st, x), mix)
	st.Release(mark)
}

func (l *hyperLayer) FFN(step *nn.Step, st *nn.State) {
	mark := st.Mark()
	x, mix := l.ffnHyper.Pre(st, st.X)
	l.ffnNorm.InPlace(st, x)
	l.ffnHyper.Post(st, st.X, l.ffn.Forward(step, st, x), mix)
	st.Release(mark)
}

func (l *hyperLayer) Cache() kvcache.LayerSpec { return l.attn.Cache() }

func deepseek4Layer(b *builder, i int) Layer {
	return b.hyperLayer(b.weights.Sub("model.layers.%d.", i), i, i < b.V4.HashLayers)
}

// hyperLayer loads the layer at w, index i in the cache.
func (b *builder) hyperLayer(w *nn.Loader, i int, hash bool) *hyperLayer {
	experts := *b.MoE
	experts.Hash, experts.Bias = hash, !hash
	return &hyperLayer{
		attnHyper: residual.Load(w.Sub("attn_hc."), b.V4.Hyper),
		attnNorm:  w.Norm("input_layernorm", b.Hidden),
		attn:      b.compressedAttention(w.Sub("self_attn."), i),
		ffnHyper:  residual.Load(w.Sub("ffn_hc."), b.V4.Hyper),
		ffnNorm:   w.Norm("post_attention_layernorm", b.Hidden),
		ffn:       moe.Load(w.Sub("mlp."), &experts, b.Hidden, b.memory),
	}
}

func deepseek4Finish(b *builder, d *decoder) {
	d.streams, d.collapse = residual.Streams, b.hyperHead(b.weights.Sub("model.")).Collapse
	if b.weights.GGUF() {
		b.refuseMTP()
		return
	}
	for i := range b.MTPLayers {
		w := b.weights.Sub("model.mtp.%d.", i)
		if b.MTP {
			d.mtp = append(d.mtp, b.hyperMTP(d, w, b.Layers+i))
		} else {
			w.Ignore("")
		}
	}
}

// refuseMTP leaves modules of multi-token prediction out that GGUF files have
// behind the layers: the files lack the weights that collapse their streams.
func (b *builder) refuseMTP() {
	for i := b.Layers; i < b.Layers+b.MTPLayers; i++ {
		b.weights.Sub("model.layers.%d.", i).Ignore("")
		b.weights.Sub("blk.%d.", i).Ignore("")
	}
	if b.MTP && b.MTPLayers > 0 {
		b.weights.Fail(fmt.Errorf("multi-token prediction of %s is read from safetensors only", b.Architecture))
	}
}

// hyperHead loads what makes one stream of several.
func (b *builder) hyperHead(w *nn.Loader) *residual.HyperHead {
	return residual.LoadHead(w.Sub("hc_head."), b.V4.Hyper)
}

// hyperMTP loads a module of multi-token prediction, whose layer is index i in
// the cache. It reads all streams:
//
//	X[k] = W_e·RMSNorm(embed(t)) + W_h·RMSNorm(H[k])
func (b *builder) hyperMTP(d *decoder, w *nn.Loader, i int) *MTP {
	next, state := w.Norm("enorm", b.Hidden), w.Norm("hnorm", b.Hidden)
	fromNext, fromState := w.Linear("e_proj", b.Hidden, b.Hidden), w.Linear("h_proj", b.Hidden, b.Hidden)
	return &MTP{
		decoder: &decoder{
			config: b.Config, embed: d.embed, embedScale: 1, ropes: d.ropes, head: d.head,
			layers: []Layer{b.hyperLayer(w, i, false)}, norm: w.Norm("norm", b.Hidden),
			streams: residual.Streams, collapse: b.hyperHead(w).Collapse,
		},
		join: func(st *nn.State, states []float32) {
			// The embedding is the same in all streams, and is projected in all.
			copy(st.X, fromNext.Forward(st, next.Forward(st, st.X)))
			st.Pool.Add(st.X, fromState.Forward(st, state.Forward(st, states)))
		},
	}
}

func (b *builder) compressedAttention(w *nn.Loader, i int) *attention.Compressed {
	v, n := b.V4, b.Heads*b.HeadDim
	ratio, rope := 0, b.localRope
	if i < len(v.Ratios) && v.Ratios[i] > 0 {
		ratio, rope = v.Ratios[i], b.rope
	}
	a := &attention.Compressed{
		QDown:    w.Linear("q_a_proj", v.QueryRank, b.Hidden),
		QNorm:    w.Norm("q_a_norm", v.QueryRank),
		QUp:      w.Linear("q_b_proj", n, v.QueryRank),
		HeadNorm: nn.PlainNorm(b.HeadDim, float32(b.NormEps)),
		KV:       w.Linear("kv_proj", b.HeadDim, b.Hidden),
		KVNorm:   w.Norm("kv_norm", b.HeadDim),
		Rope:     rope,
		Sinks:    w.Vector("sinks", b.Heads),
		OutDown:  w.PerHead("o_a_proj", v.OutGroups, v.OutRank, n/v.OutGroups),
		OutUp:    w.SplitLinear("o_b_proj", b.Hidden, v.OutGroups*v.OutRank, v.OutRank),
		Heads:    b.Heads, Dim: b.HeadDim, Window: b.Window, Scale: float32(b.QueryScale), RoundFP8: b.RoundCache, Layer: i,
	}
	if ratio > 0 {
		a.Compressor = compressor(w.Sub("compressor."), b.Hidden, b.HeadDim, ratio, rope)
	}
	if ratio == overlapping {
		w := w.Sub("compressor.indexer.")
		a.Indexer = &attention.EntryIndexer{
			Q:          w.Linear("q_b_proj", v.IndexHeads*v.IndexDim, v.QueryRank),
			Weights:    w.Linear("weights_proj", v.IndexHeads, b.Hidden),
			Compressor: compressor(w, b.Hidden, v.IndexDim, ratio, rope),
			Rope:       rope,
			Heads:      v.IndexHeads, Dim: v.IndexDim, TopK: v.IndexTopK, RoundFP4: b.RoundCache,
		}
	}
	return a
}

// The ratios of compressors: positions that an entry stands for.
const (
	overlapping = 4   // windows overlap, and an indexer chooses (compressed sparse attention)
	heavy       = 128 // rows read all entries (heavily compressed attention)
)

func compressor(w *nn.Loader, hidden, dim, ratio int, rope *nn.Rope) *attention.Compressor {
	width := dim
	if ratio == overlapping {
		width = 2 * dim
	}
	return &attention.Compressor{
		KV:    w.Linear("kv_proj", width, hidden),
		Gate:  w.Linear("gate_proj", width, hidden),
		Bias:  w.Floats("position_bias", ratio, width),
		Norm:  w.Norm("kv_norm", dim),
		Rope:  rope,
		Ratio: ratio, Dim: dim, Overlap: ratio == overlapping,
	}
}
