package residual

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/kernel"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/tensor"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// An example is a connection and a head, streams, and a sublayer's output.
type example struct {
	Config
	x, y                          []float32 // [rows, Streams, Hidden], [rows, Hidden]
	fn, base, scale               []float32
	headFn, headBase, headScale   []float32
	input, post, comb, out, heads []float32 // what is expected; empty where nothing is
}

func (e *example) rows() int { return len(e.y) / e.Hidden }

// newExample draws one. An extreme one has gates that are open or shut, rows of
// the mixing matrix that agree on a column, and streams of any size.
func newExample(seed uint64, rows, hidden int, extreme bool) *example {
	r := rand.New(rand.NewPCG(seed, 1))
	draw := func(n int, deviation float64) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(deviation * r.NormFloat64())
		}
		return v
	}
	e := &example{
		Config: Config{Hidden: hidden, Streams: Streams, Iterations: 20, Eps: 1e-6, NormEps: 1e-6},
		x:      draw(rows*Streams*hidden, 1), y: draw(rows*hidden, 1),
		fn: draw(mixes*Streams*hidden, 1/math.Sqrt(float64(hidden))), base: draw(mixes, 1), scale: draw(3, 1),
		headFn: draw(Streams*Streams*hidden, 1/math.Sqrt(float64(hidden))), headBase: draw(Streams, 1), headScale: draw(1, 1),
	}
	if extreme {
		for i := range e.base {
			e.base[i] = [...]float32{-50, 50, 0}[r.IntN(3)]
		}
		for row := range rows {
			for s := range Streams {
				for i := range hidden {
					e.x[(row*Streams+s)*hidden+i] *= [...]float32{1000, 0.001, 1}[(row+s)%3]
				}
			}
		}
	}
	return e
}

// open writes the weights to a checkpoint and loads them.
func (e *example) open(t testing.TB, workers int, quantize tensor.DType) (*Hyper, *HyperHead, *nn.State) {
	t.Helper()
	pool, arena := kernel.NewPool(workers), new(kernel.Arena)
	t.Cleanup(func() {
		pool.Close()
		arena.Free()
	})
	w := e.loader(t, nn.Packing{Packer: &kernel.Packer{Pool: pool, Arena: arena, Quantize: quantize}})
	h := Load(w.Sub("connection."), e.Config)
	head := LoadHead(w.Sub("collapse."), e.Config)
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	return h, head, &nn.State{Pool: pool}
}

func (e *example) loader(t testing.TB, p nn.Packing) *nn.Loader {
	t.Helper()
	width := Streams * e.Hidden
	m := testmodel.New(testmodel.Family("llama"))
	m.Tensors = []testmodel.Tensor{
		{Name: "connection.fn", Shape: []int{len(e.fn) / width, width}, Values: e.fn},
		{Name: "connection.base", Shape: []int{len(e.base)}, Values: e.base},
		{Name: "connection.scale", Shape: []int{len(e.scale)}, Values: e.scale},
		{Name: "collapse.hc_fn", Shape: []int{len(e.headFn) / width, width}, Values: e.headFn},
		{Name: "collapse.hc_base", Shape: []int{len(e.headBase)}, Values: e.headBase},
		{Name: "collapse.hc_scale", Shape: []int{len(e.headScale)}, Values: e.headScale},
	}
	dir := t.TempDir()
	if err := m.WriteSafetensors(dir); err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return nn.NewLoader(c, p, 0)
}

// run is what the package makes of the example.
func (e *example) run(t testing.TB) *example {
	h, head, st := e.open(t, 2, tensor.Invalid)
	got := &example{Config: e.Config}
	x := slices.Clone(e.x)
	input, mix := h.Pre(st, x)
	got.input, got.post, got.comb = input, mix.Post, mix.Comb
	h.Post(st, x, e.y, mix)
	got.out, got.heads = x, head.Collapse(st, e.x)
	return got
}

// differs compares results within the golden tolerance: 1e-5 of the largest
// value of the row, or of 1.
func differs(got, want *example, rows int) error {
	for _, v := range []struct {
		name      string
		got, want []float32
	}{
		{"input", got.input, want.input},
		{"post", got.post, want.post},
		{"comb", got.comb, want.comb},
		{"streams", got.out, want.out},
		{"head", got.heads, want.heads},
	} {
		if len(v.got) != len(v.want) {
			return fmt.Errorf("%s: %d values, want %d", v.name, len(v.got), len(v.want))
		}
		n := len(v.want) / rows
		for row := range rows {
			if err := near(v.got[row*n:][:n], v.want[row*n:][:n]); err != nil {
				return fmt.Errorf("%s, row %d: %w", v.name, row, err)
			}
		}
	}
	return nil
}

func near(got, want []float32) error {
	size := 1.0
	for _, v := range want {
		size = max(size, math.Abs(float64(v)))
	}
	for i, v := range want {
		if d := math.Abs(float64(got[i]) - float64(v)); !(d <= 1e-5*size) {
			return fmt.Errorf("value %d is %v, want %v", i, got[i], v)
		}
	}
	return nil
}

// mistakes are those that implementations made or could make. Each gives other
// results than published models expect.
var mistakes = []string{
	"comb is transposed",
	"post lacks its factor 2",
	"pre lacks eps",
	"pre and post are exchanged",
	"comb comes first",
	"scale multiplies base",
	"no norm",
	"norm of the first stream",
	"norm of each stream",
	"sum of squares instead of mean",
	"softmax of columns",
	"columns before rows",
	"rows are last",
	"no eps after softmax",
	"no eps in sums",
	"no softmax",
	"half the iterations",
	"comb is the identity",
	"streams are replaced one by one",
}

// reference computes the results in float64 as the paper (section 4.2) and the
// published code define them, with a mistake or none ("").
func (e *example) reference(mistake string) *example {
	want := &example{Config: e.Config}
	for row := range e.rows() {
		x := e.x[row*Streams*e.Hidden:][:Streams*e.Hidden]
		stream := func(j int) []float32 { return x[j*e.Hidden:][:e.Hidden] }
		m := e.project(x, e.fn, mistake)
		at := [3]int{0, Streams, 2 * Streams}
		switch mistake {
		case "pre and post are exchanged":
			at = [3]int{Streams, 0, 2 * Streams}
		case "comb comes first":
			at = [3]int{Streams * Streams, Streams*Streams + Streams, 0}
		}
		affine := func(part, i int) float64 {
			i += at[part]
			if mistake == "scale multiplies base" {
				return (m[i] + float64(e.base[i])) * float64(e.scale[part])
			}
			return m[i]*float64(e.scale[part]) + float64(e.base[i])
		}
		var pre, post [Streams]float64
		var comb [Streams][Streams]float64
		for j := range Streams {
			pre[j] = 1/(1+math.Exp(-affine(0, j))) + float64(e.Eps)
			if mistake == "pre lacks eps" {
				pre[j] -= float64(e.Eps)
			}
			post[j] = 2 / (1 + math.Exp(-affine(1, j)))
			if mistake == "post lacks its factor 2" {
				post[j] /= 2
			}
			for k := range Streams {
				comb[j][k] = affine(2, j*Streams+k)
			}
		}
		e.doublyStochastic(&comb, mistake)
		for j := range Streams {
			want.post = append(want.post, float32(post[j]))
			for k := range Streams {
				want.comb = append(want.comb, float32(comb[j][k]))
			}
		}
		for i := range e.Hidden {
			var sum float64
			for j := range Streams {
				sum += pre[j] * float64(stream(j)[i])
			}
			want.input = append(want.input, float32(sum))
		}
		out := make([]float32, len(x))
		for i := range e.Hidden {
			var s [Streams]float64
			for j := range s {
				s[j] = float64(stream(j)[i])
			}
			for k := range Streams {
				v := post[k] * float64(e.y[row*e.Hidden+i])
				for j := range s {
					c := comb[j][k]
					if mistake == "comb is transposed" {
						c = comb[k][j]
					}
					v += c * s[j]
				}
				out[k*e.Hidden+i] = float32(v)
				if mistake == "streams are replaced one by one" {
					s[k] = v
				}
			}
		}
		want.out = append(want.out, out...)

		m = e.project(x, e.headFn, mistake)
		for i := range e.Hidden {
			var sum float64
			for j := range Streams {
				gate := 1/(1+math.Exp(-m[j]*float64(e.headScale[0])-float64(e.headBase[j]))) + float64(e.Eps)
				sum += gate * float64(stream(j)[i])
			}
			want.heads = append(want.heads, float32(sum))
		}
	}
	return want
}

// project is x·fnᵀ / rms(x).
func (e *example) project(x, fn []float32, mistake string) []float64 {
	n := len(x)
	rms := func(x []float32) float64 {
		var sum float64
		for _, v := range x {
			sum += float64(v) * float64(v)
		}
		if mistake == "sum of squares instead of mean" {
			return math.Sqrt(sum + float64(e.NormEps))
		}
		return math.Sqrt(sum/float64(len(x)) + float64(e.NormEps))
	}
	m := make([]float64, len(fn)/n)
	for o := range m {
		for j := range Streams {
			s := x[j*e.Hidden:][:e.Hidden]
			var sum float64
			for i, v := range s {
				sum += float64(v) * float64(fn[o*n+j*e.Hidden+i])
			}
			switch mistake {
			case "no norm":
				m[o] += sum
			case "norm of the first stream":
				m[o] += sum / rms(x[:e.Hidden])
			case "norm of each stream":
				m[o] += sum / rms(s)
			default:
				m[o] += sum / rms(x)
			}
		}
	}
	return m
}

// sinkhorn is that of whole matrices.
func (e *example) sinkhorn(logits []float32, mistake string) (matrices []float32) {
	for ; len(logits) > 0; logits = logits[Streams*Streams:] {
		var c [Streams][Streams]float64
		for i, v := range logits[:Streams*Streams] {
			c[i/Streams][i%Streams] = float64(v)
		}
		e.doublyStochastic(&c, mistake)
		for _, row := range c {
			for _, v := range row {
				matrices = append(matrices, float32(v))
			}
		}
	}
	return matrices
}

func (e *example) doublyStochastic(c *[Streams][Streams]float64, mistake string) {
	eps := float64(e.Eps)
	transpose := func() {
		for j := range c {
			for k := range j {
				c[j][k], c[k][j] = c[k][j], c[j][k]
			}
		}
	}
	normalise := func(eps float64) {
		for j := range c {
			sum := eps
			for _, v := range c[j] {
				sum += v
			}
			for k := range c[j] {
				c[j][k] /= sum
			}
		}
	}
	rows := func() { normalise(eps) }
	columns := func() { transpose(); rows(); transpose() }
	if mistake == "columns before rows" || mistake == "softmax of columns" {
		transpose()
		defer transpose()
	}
	for j := range c {
		top := slices.Max(c[j][:])
		for k := range c[j] {
			c[j][k] = math.Exp(c[j][k] - top)
		}
	}
	if mistake != "no softmax" {
		normalise(0)
	}
	if mistake == "softmax of columns" {
		transpose()
		defer transpose()
	}
	if mistake != "no eps after softmax" {
		for j := range c {
			for k := range c[j] {
				c[j][k] += eps
			}
		}
	}
	if mistake == "no eps in sums" {
		eps = 0
	}
	columns()
	iterations := e.Iterations
	if mistake == "half the iterations" {
		iterations /= 2
	}
	for range iterations - 1 {
		rows()
		columns()
	}
	if mistake == "rows are last" {
		rows()
	}
	if mistake == "comb is the identity" {
		*c = [Streams][Streams]float64{{1}, {0, 1}, {0, 0, 1}, {0, 0, 0, 1}}
	}
}

// unnoticed lists the mistakes that leave the results of all examples within
// the tolerance.
func unnoticed(examples []*example) []string {
	return slices.DeleteFunc(slices.Clone(mistakes), func(mistake string) bool {
		return slices.ContainsFunc(examples, func(e *example) bool {
			return differs(e.reference(mistake), e, e.rows()) != nil
		})
	})
}
