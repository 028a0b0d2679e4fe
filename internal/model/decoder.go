package model

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/attention"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/tensor"
)

// decoder is the stack that all dense families share: embedding, layers on
// one residual stream, a final norm and a head.
type decoder struct {
	config     *Config
	embed      *tensor.Matrix // [vocab, hidden]
	embedScale float32
	ropes      []*nn.Rope
	layers     []Layer
	norm       *nn.Norm
	head       *nn.Linear
	cache      []kvcache.LayerSpec
}

// layer is a pre-norm decoder layer. The norms of sublayer outputs are nil
// except in Gemma.
type layer struct {
	attnNorm, attnOutNorm *nn.Norm
	attn                  *attention.GQA
	ffnNorm, ffnOutNorm   *nn.Norm
	ffn                   *nn.GatedMLP
}

// Attention is x += norm(attn(norm(x))).
func (l *layer) Attention(step *nn.Step, st *nn.State) {
	mark := st.Mark()
	y := l.attn.Forward(step, st, l.attnNorm.Forward(st, st.X))
	l.attnOutNorm.InPlace(st, y)
	st.Pool.Add(st.X, y)
	st.Release(mark)
}

// FFN is x += norm(ffn(norm(x))).
func (l *layer) FFN(_ *nn.Step, st *nn.State) {
	mark := st.Mark()
	y := l.ffn.Forward(st, l.ffnNorm.Forward(st, st.X))
	l.ffnOutNorm.InPlace(st, y)
	st.Pool.Add(st.X, y)
	st.Release(mark)
}

// builder loads one model.
type builder struct {
	*Config
	family
	weights         *nn.Loader
	rope, localRope *nn.Rope
}

func build(c *Config, f family, source *checkpoint.Checkpoint, p nn.Packing) (*decoder, error) {
	w := nn.NewLoader(source, p, float32(c.NormEps))
	b := &builder{Config: c, family: f, weights: w}
	if err := b.ropes(); err != nil {
		return nil, fmt.Errorf("%s: %w", source.Files()[0], err)
	}
	d := &decoder{config: c, embedScale: 1, ropes: []*nn.Rope{b.rope}}
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
		d.cache = append(d.cache, l.attn.Cache())
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
	if w.Err() != nil {
		return nil, w.Err()
	}
	if err := w.CheckUnused(c.Architecture); err != nil {
		return nil, err
	}
	return d, nil
}

// ropes makes the rotary embeddings of the configuration. GGUF files carry
// Llama 3's scaling as divisors of the frequencies.
func (b *builder) ropes() (err error) {
	var divisors []float32
	if b.weights.Has("rope_freqs.weight") {
		divisors = b.weights.Vector("rope_freqs.weight", b.HeadDim/2)
	}
	if b.rope, err = nn.NewRope(b.Rope, divisors); err != nil {
		return err
	}
	if b.LocalRope != nil {
		b.localRope, err = nn.NewRope(*b.LocalRope, nil)
	}
	return err
}

func (b *builder) normOf(w *nn.Loader, name string, n int) *nn.Norm {
	if b.norm != nil {
		return b.norm(w, name, n)
	}
	return w.Norm(name, n)
}

// attention loads the projections of layer i.
func (b *builder) attention(w *nn.Loader, i int) *attention.GQA {
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

func (d *decoder) Embed(step *nn.Step, st *nn.State) error {
	st.Begin(step, d.config.Hidden)
	for _, r := range d.ropes {
		r.Prepare(st, step.Positions)
	}
	for i, token := range step.Tokens {
		if token < 0 || int(token) >= d.embed.Rows {
			return fmt.Errorf("token %d is outside the vocabulary of %d", token, d.embed.Rows)
		}
		d.embed.Row(st.X[i*d.config.Hidden:], int(token))
	}
	if d.embedScale != 1 {
		st.Pool.Scale(st.X, d.embedScale)
	}
	return nil
}

func (d *decoder) Hidden(st *nn.State, rows []int, hidden []float32) {
	h := d.config.Hidden
	for i, row := range rows {
		copy(hidden[i*h:(i+1)*h], st.X[row*h:])
	}
	d.norm.InPlace(st, hidden[:len(rows)*h])
}

func (d *decoder) Logits(st *nn.State, hidden, logits []float32) {
	st.Pool.MatMul(hidden, len(hidden)/d.config.Hidden, kernel.Product{Y: logits, W: d.head.Weight, Bias: d.head.Bias})
}
