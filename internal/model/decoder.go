package model

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/attention"
	"github.com/foretoken/foretoken/internal/model/moe"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/tensor"
)

// decoder is the stack that all families share: embedding, layers on a
// residual stream, a final norm and a head.
type decoder struct {
	config     *Config
	embed      *tensor.Matrix // [vocab, hidden]
	embedScale float32
	ropes      []*nn.Rope
	layers     []Layer
	norm       *nn.Norm
	head       *nn.Linear
	cache      []kvcache.LayerSpec // of layers, then of modules of mtp
	mtp        []*MTP
	memory     *moe.Memory // of experts

	// Hyper-connections widen the residual stream to several; collapse makes
	// one of them, [rows, hidden], in workspace. nil: there is one.
	streams  int
	collapse func(st *nn.State, x []float32) []float32
}

// layer is a pre-norm decoder layer. The norms of sublayer outputs are nil
// except in Gemma.
type layer struct {
	attnNorm, attnOutNorm *nn.Norm
	attn                  attention.Design
	ffnNorm, ffnOutNorm   *nn.Norm
	ffn                   feedForward
}

// feedForward is the second part of a layer: a gated MLP or a mixture of experts.
type feedForward interface {
	// Forward maps x [rows, hidden] to [rows, hidden].
	Forward(step *nn.Step, st *nn.State, x []float32) []float32
}

// Cache says what the layer keeps.
func (l *layer) Cache() kvcache.LayerSpec { return l.attn.Cache() }

// Attention is x += norm(attn(norm(x))).
func (l *layer) Attention(step *nn.Step, st *nn.State) {
	mark := st.Mark()
	y := l.attn.Forward(step, st, l.attnNorm.Forward(st, st.X))
	l.attnOutNorm.InPlace(st, y)
	st.Pool.Add(st.X, y)
	st.Release(mark)
}

// FFN is x += norm(ffn(norm(x))).
func (l *layer) FFN(step *nn.Step, st *nn.State) {
	mark := st.Mark()
	y := l.ffn.Forward(step, st, l.ffnNorm.Forward(st, st.X))
	l.ffnOutNorm.InPlace(st, y)
	st.Pool.Add(st.X, y)
	st.Release(mark)
}

// builder loads one model.
type builder struct {
	*Config
	Options
	family
	weights         *nn.Loader
	memory          *moe.Memory // of experts
	rope, localRope *nn.Rope
	otherRopes      []*nn.Rope // made by ropeOf
}

func build(c *Config, f family, source *checkpoint.Checkpoint, o Options) (*decoder, error) {
	if o.RoundCache {
		if err := c.checkRounding(); err != nil {
			return nil, fmt.Errorf("%s: %w", configSource(source), err)
		}
	}
	w := nn.NewLoader(source, o.Packing, float32(c.NormEps))
	b := &builder{Config: c, Options: o, family: f, weights: w, memory: moe.NewMemory(o.Packer, o.ExpertMemory)}
	if err := b.ropes(); err != nil {
		return nil, fmt.Errorf("%s: %w", source.Files()[0], err)
	}
	d := &decoder{config: c, embedScale: 1, ropes: []*nn.Rope{b.rope}, memory: b.memory, streams: 1}
	if b.localRope != nil {
		d.ropes = append(d.ropes, b.localRope)
	}
	d.embed = w.Matrix("model.embed_tokens.weight", c.Vocab, c.Hidden)
	if f.embedScale != nil {
		d.embedScale = f.embedScale(c, w)
	}
	for i := range c.Layers {
		l := f.layer(b, i)
		d.layers = append(d.layers, l)
		d.cache = append(d.cache, l.Cache())
		if w.Err() != nil {
			return nil, w.Err()
		}
	}
	d.norm = b.normOf(w, "model.norm", c.Hidden)
	if c.TieEmbeddings {
		d.head = &nn.Linear{Weight: w.Pack(d.embed, 0)}
	} else {
		d.head = w.Linear("lm_head", c.Vocab, c.Hidden)
	}
	d.ropes = append(d.ropes, b.otherRopes...)
	if f.finish != nil {
		f.finish(b, d)
	}
	for _, m := range d.mtp {
		for _, l := range m.layers {
			d.cache = append(d.cache, l.Cache())
		}
	}
	if w.Err() != nil {
		return nil, w.Err()
	}
	if err := w.CheckUnused(c.Architecture); err != nil {
		return nil, err
	}
	if err := b.memory.Reserve(); err != nil {
		return nil, err
	}
	return d, nil
}

// ropes makes the rotary embeddings of the configuration. GGUF files carry
// Llama 3's scaling as divisors of the frequencies.
func (b *builder) ropes() (err error) {
	var divisors []float32
	if b.weights.Has("rope_freqs.weight") {
		divisors = b.weights.Vector("rope_freqs.weight", b.Rope.Dim/2)
	}
	if b.rope, err = nn.NewRope(b.Rope, divisors); err != nil {
		return err
	}
	if b.LocalRope != nil {
		b.localRope, err = nn.NewRope(*b.LocalRope, nil)
	}
	return err
}

// ropeOf returns the rotary embedding of a variant of the configuration's,
// which layers share.
func (b *builder) ropeOf(c nn.RopeConfig) *nn.Rope {
	for _, r := range b.otherRopes {
		if r.RopeConfig == c {
			return r
		}
	}
	r, err := nn.NewRope(c, nil)
	if err != nil {
		panic(err) // the configuration's is valid
	}
	b.otherRopes = append(b.otherRopes, r)
	return r
}

func (b *builder) normOf(w *nn.Loader, name string, n int) *nn.Norm {
	if b.norm != nil {
		return b.norm(w, name, n)
	}
	return w.Norm(name, n)
}

// attention loads the projections of layer i.
func (b *builder) attention(i int) *attention.GQA {
	w := b.weights.Sub("model.layers.%d.self_attn.", i)
	q, kv := b.Heads*b.HeadDim, b.KVHeads*b.HeadDim
	a := &attention.GQA{
		Q: w.Linear("q_proj", q, b.Hidden),
		K: w.Linear("k_proj", kv, b.Hidden),
		V: w.Linear("v_proj", kv, b.Hidden),
		O: w.SplitLinear("o_proj", b.Hidden, q, b.HeadDim),

		Rope:  b.rope,
		Heads: b.Heads, KVHeads: b.KVHeads, HeadDim: b.HeadDim,
		Scale: float32(b.QueryScale),
		Layer: i,
	}
	if b.Sliding != nil && b.Sliding[i] {
		a.Window = b.Window
		if b.localRope != nil {
			a.Rope = b.localRope
		}
	}
	return a
}

func (d *decoder) Config() *Config            { return d.config }
func (d *decoder) Layers() []Layer            { return d.layers }
func (d *decoder) Cache() []kvcache.LayerSpec { return d.cache }
func (d *decoder) MTP() []*MTP                { return d.mtp }
func (d *decoder) Idle(rows int) int64        { return d.memory.Idle(rows) }

func (d *decoder) Embed(step *nn.Step, st *nn.State) error {
	h := d.config.Hidden
	st.Begin(step, d.streams*h)
	for _, r := range d.ropes {
		r.Prepare(st, step.Positions)
	}
	for i, token := range step.Tokens {
		if token < 0 || int(token) >= d.embed.Rows {
			return fmt.Errorf("token %d is outside the vocabulary of %d", token, d.embed.Rows)
		}
		row := st.X[i*d.streams*h:][:d.streams*h]
		d.embed.Row(row, int(token))
		for s := 1; s < d.streams; s++ {
			copy(row[s*h:], row[:h])
		}
	}
	if d.embedScale != 1 {
		st.Pool.Scale(st.X, d.embedScale)
	}
	return nil
}

func (d *decoder) Hidden(st *nn.State, rows []int, hidden []float32) {
	if d.collapse == nil {
		d.copyRows(st, rows, hidden)
	} else {
		mark := st.Mark()
		x := st.Take(len(rows) * d.StateWidth())
		d.copyRows(st, rows, x)
		copy(hidden, d.collapse(st, x))
		st.Release(mark)
	}
	d.norm.InPlace(st, hidden[:len(rows)*d.config.Hidden])
}

func (d *decoder) States(st *nn.State, rows []int, states []float32) {
	if d.collapse == nil {
		d.Hidden(st, rows, states)
	} else {
		d.copyRows(st, rows, states)
	}
}

func (d *decoder) StateWidth() int { return d.streams * d.config.Hidden }

// copyRows copies rows of the residual stream, or of all streams.
func (d *decoder) copyRows(st *nn.State, rows []int, to []float32) {
	n := d.StateWidth()
	for i, row := range rows {
		copy(to[i*n:(i+1)*n], st.X[row*n:])
	}
}

func (d *decoder) Logits(st *nn.State, hidden, logits []float32) {
	st.Pool.MatMul(hidden, len(hidden)/d.config.Hidden, kernel.Product{Y: logits, W: d.head.Weight, Bias: d.head.Bias})
}
