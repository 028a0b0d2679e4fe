// Package residual has the designs of residual streams beyond x + f(x).
package residual

import (
	"fmt"
	"math"

	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/model/nn"
)

// Streams is how many streams replace the one of x + f(x).
const Streams = kernel.Streams

// Of the projection of a connection: weights of reading, of writing, and of
// mixing, [from, to].
const (
	preAt  = 0
	postAt = Streams
	combAt = 2 * Streams
	mixes  = 2*Streams + Streams*Streams
)

// Config describes the hyper-connections of a model.
type Config struct {
	Hidden     int // values of a stream
	Streams    int
	Iterations int     // of Sinkhorn–Knopp
	Eps        float32 // of weights and of Sinkhorn–Knopp
	NormEps    float32
}

// Validate reports what is not supported or cannot be.
func (c Config) Validate() error {
	switch {
	case c.Streams != Streams:
		return fmt.Errorf("hyper-connections have %d streams, expected %d", c.Streams, Streams)
	case c.Hidden <= 0 || c.Hidden%8 != 0:
		return fmt.Errorf("hidden size with hyper-connections is %d, expected a multiple of 8", c.Hidden)
	case c.Iterations < 1 || c.Iterations > MaxIterations:
		return fmt.Errorf("hyper-connections have %d Sinkhorn iterations, expected 1 to %d", c.Iterations, MaxIterations)
	}
	for _, e := range []struct {
		name  string
		value float32
	}{{"hyper-connection", c.Eps}, {"norm", c.NormEps}} {
		if !(e.value > 0 && e.value < 1) {
			return fmt.Errorf("%s epsilon is %v, expected a number between 0 and 1", e.name, e.value)
		}
	}
	return nil
}

// MaxIterations bounds the time of a row; Sinkhorn–Knopp converges in a few.
const MaxIterations = 1000

// Hyper connects a sublayer f to the streams x as manifold-constrained
// hyper-connections do (mHC, arXiv 2512.24880):
//
//	x[k] = post[k]·f(Σ pre[j]·x[j]) + Σ comb[j][k]·x[j]
//
// with weights that depend on the streams of the row, and comb near a doubly
// stochastic matrix, so that mixing neither amplifies streams nor loses any.
type Hyper struct {
	Config
	Fn    *kernel.Weight // [24, Streams·Hidden]
	Base  []float32      // [24]
	Scale []float32      // [3]: of pre, post and comb
}

// Mix is how a sublayer's output is written to the streams, in workspace.
type Mix struct {
	Post []float32 // [rows, Streams]
	Comb []float32 // [rows, Streams, Streams], from stream j to stream k
}

// Load reads the projection [24, Streams·Hidden], base [24] and scale [3] of the
// connection at w.
func Load(w *nn.Loader, c Config) *Hyper {
	return &Hyper{
		Config: c,
		Fn:     loadFn(w, c, "fn", mixes),
		Base:   w.Vector("base", mixes),
		Scale:  w.Vector("scale", 3),
	}
}

// loadFn keeps a projection exact and cuts it for NormProduct: a few thousandths
// of a model's weights steer all others.
func loadFn(w *nn.Loader, c Config, name string, out int) *kernel.Weight {
	return w.PackExact(w.Matrix(name, out, Streams*c.Hidden), kernel.NormProductUnit)
}

// Pre reads the streams x [rows, Streams, Hidden]: the sublayer's input y
// [rows, Hidden] and the weights of its output are workspace.
func (h *Hyper) Pre(st *nn.State, x []float32) (y []float32, mix Mix) {
	rows := len(x) / (Streams * h.Hidden)
	y = st.Take(rows * h.Hidden)
	mix = Mix{Post: st.Take(rows * Streams), Comb: st.Take(rows * Streams * Streams)}
	mark := st.Mark()
	defer st.Release(mark)

	m, pre := st.Take(rows*mixes), st.Take(rows*Streams)
	st.Pool.NormProduct(m, x, h.Fn, h.NormEps)
	for r := range rows {
		m := m[r*mixes:][:mixes]
		affine(m[preAt:postAt], h.Scale[0], h.Base[preAt:])
		affine(m[postAt:combAt], h.Scale[1], h.Base[postAt:])
		affine(m[combAt:], h.Scale[2], h.Base[combAt:])
		for j := range Streams {
			pre[r*Streams+j] = sigmoid(m[preAt+j]) + h.Eps
			mix.Post[r*Streams+j] = 2 * sigmoid(m[postAt+j])
		}
		copy(mix.Comb[r*Streams*Streams:], m[combAt:])
	}
	st.Pool.Sinkhorn(mix.Comb, h.Iterations, h.Eps)
	st.Pool.SumStreams(y, x, pre)
	return y, mix
}

// Post writes the sublayer's output y [rows, Hidden] to the streams x
// [rows, Streams, Hidden].
func (h *Hyper) Post(st *nn.State, x, y []float32, mix Mix) {
	st.Pool.MixStreams(x, y, mix.Post, mix.Comb)
}

// HyperHead makes one stream of the last layer's.
type HyperHead struct {
	Config
	Fn    *kernel.Weight // [Streams, Streams·Hidden]
	Base  []float32      // [Streams]
	Scale []float32      // [1]
}

// LoadHead reads the projection [Streams, Streams·Hidden], base [Streams] and
// scale [1] of the head at w.
func LoadHead(w *nn.Loader, c Config) *HyperHead {
	return &HyperHead{
		Config: c,
		Fn:     loadFn(w, c, "hc_fn", Streams),
		Base:   w.Vector("hc_base", Streams),
		Scale:  w.Vector("hc_scale", 1),
	}
}

// Collapse sums the streams x [rows, Streams, Hidden], weighted as by Pre; the
// result [rows, Hidden] is workspace.
func (h *HyperHead) Collapse(st *nn.State, x []float32) []float32 {
	rows := len(x) / (Streams * h.Hidden)
	y := st.Take(rows * h.Hidden)
	mark := st.Mark()
	defer st.Release(mark)

	pre := st.Take(rows * Streams)
	st.Pool.NormProduct(pre, x, h.Fn, h.NormEps)
	for r := range rows {
		p := pre[r*Streams:][:Streams]
		affine(p, h.Scale[0], h.Base)
		for j, v := range p {
			p[j] = sigmoid(v) + h.Eps
		}
	}
	st.Pool.SumStreams(y, x, pre)
	return y
}

// affine writes m·scale + base into m.
func affine(m []float32, scale float32, base []float32) {
	for i, v := range m {
		m[i] = float32(v*scale) + base[i]
	}
}

func sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }
