package attention

import (
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/tensor"
)

// A Compressor makes one entry of Ratio positions (DeepSeek V4): a mean of
// their values, weighted channel by channel by a softmax over their gates.
//
//	v = x·W_kv      g = x·W_gate + bias[position mod Ratio]
//	C = rope(norm(Σ_t softmax_t(g_t) ∘ v_t)), rotated as the first position
//
// Where windows overlap, v and g have two halves: an entry takes the first of
// the Ratio positions before and the second of its own.
type Compressor struct {
	KV, Gate *nn.Linear // hidden → Dim, or 2·Dim where windows overlap
	Bias     []float32  // [Ratio, width of KV]
	Norm     *nn.Norm
	Rope     *nn.Rope

	Ratio, Dim int
	Overlap    bool

	v, g    []float32 // of the step's rows
	windows []kernel.GatedWindow
	done    entries
	at      []int32
}

// entries are those that some rows complete.
type entries struct {
	values      []float32 // [n, Dim]
	seqs, slots []int32
}

// width is that of a position's values, and of its gates.
func (c *Compressor) width() int {
	if c.Overlap {
		return 2 * c.Dim
	}
	return c.Dim
}

// reach is how many positions an entry is made of.
func (c *Compressor) reach() int {
	if c.Overlap {
		return 2 * c.Ratio
	}
	return c.Ratio
}

// inputStore keeps values and gates of the last positions, unrounded, for the
// entries that are not complete: rewinding finds them again.
func (c *Compressor) inputStore(kind string) kvcache.Store {
	return kvcache.Store{Kind: kind, Layout: kvcache.Rows, Heads: 1, KeyDim: c.width(), ValueDim: c.width(), DType: tensor.F32, Ring: c.reach()}
}

// project computes values and gates of the step's rows.
func (c *Compressor) project(st *nn.State, x []float32) {
	if c != nil {
		y := nn.Project(st, x, c.KV, c.Gate)
		c.v, c.g = y[0], y[1]
	}
}

// complete stores the inputs of rows [from, to) and returns the entries that
// they complete, in workspace. At most kvcache.Slack rows of a sequence may be
// given at a time.
func (c *Compressor) complete(step *nn.Step, st *nn.State, inputs *kvcache.View, from, to int) entries {
	w := c.width()
	e := &c.done
	e.seqs, e.slots, c.at = e.seqs[:0], e.slots[:0], c.at[:0]
	for row := from; row < to; row++ {
		pos, seq := int(step.Positions[row]), int(step.Seqs[row])
		in := inputs.Float(seq, pos)
		copy(in, c.v[row*w:][:w])
		bias := c.Bias[pos%c.Ratio*w:][:w]
		for i, g := range c.g[row*w:][:w] {
			in[w+i] = g + bias[i]
		}
		if (pos+1)%c.Ratio == 0 {
			e.seqs, e.slots = append(e.seqs, int32(seq)), append(e.slots, int32(pos/c.Ratio))
			c.at = append(c.at, int32(pos+1-c.Ratio))
		}
	}
	if len(e.slots) == 0 {
		return *e
	}
	for len(c.windows) < len(e.slots) {
		c.windows = append(c.windows, kernel.GatedWindow{})
	}
	for i := range e.slots {
		c.gather(&c.windows[i], inputs, int(e.seqs[i]), int(c.at[i]))
	}
	e.values = st.Take(len(e.slots) * c.Dim)
	st.Pool.GatedMeans(e.values, c.Dim, c.windows[:len(e.slots)])
	c.Norm.InPlace(st, e.values)
	c.Rope.RotateLastAt(st, e.values, 1, c.Dim, c.at)
	return *e
}

// gather lists what an entry whose first position is first is made of.
func (c *Compressor) gather(w *kernel.GatedWindow, inputs *kvcache.View, seq, first int) {
	w.Values, w.Gates = w.Values[:0], w.Gates[:0]
	add := func(pos, half int) {
		in := inputs.Float(seq, pos)
		w.Values = append(w.Values, in[half*c.Dim:][:c.Dim])
		w.Gates = append(w.Gates, in[c.width()+half*c.Dim:][:c.Dim])
	}
	own := 0
	if c.Overlap {
		own = 1
		for pos := max(first-c.Ratio, 0); pos < first; pos++ {
			add(pos, 0)
		}
	}
	for pos := first; pos < first+c.Ratio; pos++ {
		add(pos, own)
	}
}
