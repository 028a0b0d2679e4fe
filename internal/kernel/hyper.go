package kernel

import (
	"math"
	"unsafe"

	"github.com/foretoken/foretoken/internal/kernel/panel"
)

// Streams is how many residual streams hyper-connections have (Zhu et al.
// 2024). The streams of a row lie one after the other: x [rows, Streams, n].
const Streams = 4

// hyperJobs are the arguments of the call that runs.
type hyperJobs struct {
	product  normProductJob
	sinkhorn sinkhornJob
	sum      sumStreamsJob
	mix      mixStreamsJob
}

// NormProduct writes y = x·Wᵀ / √(mean(x²) + eps) for each row of
// x [rows, W.Cols]. It is for a weight of few rows, at most 32, and many
// columns, packed exactly and in segments of whole blocks: all workers share
// the one panel, each with segments of its own. The mean is taken in float64.
func (p *Pool) NormProduct(y, x []float32, w *Weight, eps float32) {
	if w.input != inFloat || w.panels() != 1 || len(w.segments) != maxSegments || w.blocks*panel.Block != w.Cols {
		panic("kernel: NormProduct of a weight that is not one exact panel in segments of whole blocks")
	}
	j := &p.hyper.product
	j.pool, j.w, j.x, j.rows = p, w, x, len(x)/w.Cols
	j.parts = grow(j.parts, maxSegments*j.rows*panel.Rows)
	j.squares = grow(j.squares, maxSegments*j.rows)
	p.run((j.rows+normProductRows-1)/normProductRows*maxSegments, j)
	j.finish(y, eps)
}

// NormProductUnit is the unit in which a weight of NormProduct is packed.
const NormProductUnit = panel.Block

// normProductRows is how many rows a task has: their part of x and the
// segment stay in the second-level cache.
const normProductRows = 32

// A normProductJob is a NormProduct whose tasks are a segment for some rows.
type normProductJob struct {
	pool    *Pool
	w       *Weight
	x       []float32
	rows    int
	parts   []float32 // [segments][rows][panel.Rows] products
	squares []float64 // [segments][rows] sums of x²
}

func (j *normProductJob) do(worker, task int) {
	w, s := j.w, task%maxSegments
	from := task / maxSegments * normProductRows
	rows := min(normProductRows, j.rows-from)
	part := j.parts[(s*j.rows+from)*panel.Rows:][:rows*panel.Rows]
	clear(part)
	seg := w.segments[s]
	for r := range rows {
		j.squares[s*j.rows+from+r] = active.rows.squares(j.x[(from+r)*w.Cols:][seg.From:seg.To])
	}
	if seg.Blocks() > 0 {
		w.dotFloat(w.data, nil, unsafe.Pointer(&j.x[from*w.Cols]), 4*w.Cols, part, rows,
			seg.From/panel.Block, seg.Blocks(), j.pool.buffer(worker, w.scratch()))
	}
}

// finish sums the segments and normalises.
func (j *normProductJob) finish(y []float32, eps float32) {
	if j.rows == 0 {
		return
	}
	active.panels.tree(&j.parts[0], &j.parts[0], uint64(j.rows), 4*panel.Rows, uint64(4*panel.Rows*j.rows))
	for r := range j.rows {
		var sum float64
		for s := range maxSegments {
			sum += j.squares[s*j.rows+r]
		}
		inv := float32(1 / math.Sqrt(sum/float64(j.w.Cols)+float64(eps)))
		out := y[r*j.w.Rows:][:j.w.Rows]
		for i, v := range j.parts[r*panel.Rows:][:len(out)] {
			out[i] = v * inv
		}
	}
}

// Sinkhorn brings matrices m [n, Streams, Streams] of logits near doubly
// stochastic ones, with non-negative entries and rows and columns that sum to
// 1 (Sinkhorn and Knopp 1967): softmax of the rows plus eps, then
// normalisation of the columns, then of rows and columns in turn until each
// was normalised iterations times. Sums have eps added, and the columns are
// last.
func (p *Pool) Sinkhorn(m []float32, iterations int, eps float32) {
	const grain = 8 // some microseconds
	p.hyper.sinkhorn = sinkhornJob{m, iterations, float64(eps)}
	p.split(len(m)/(Streams*Streams), grain, &p.hyper.sinkhorn)
}

type sinkhornJob struct {
	m          []float32
	iterations int
	eps        float64
}

func (j *sinkhornJob) do(_, from, to int) {
	const n = Streams * Streams
	for i := from; i < to; i++ {
		sinkhorn((*[n]float32)(j.m[i*n:]), j.iterations, j.eps)
	}
}

// sinkhorn runs in float64: no tier is faster by much, since one iteration
// waits for the other, and the rounding of forty divisions is none.
func sinkhorn(m *[Streams * Streams]float32, iterations int, eps float64) {
	var c [Streams][Streams]float64
	for j := range c {
		row := m[Streams*j:][:Streams]
		top, sum := float64(max(row[0], row[1], row[2], row[3])), 0.0
		for k, v := range row {
			c[j][k] = math.Exp(float64(v) - top)
			sum += c[j][k]
		}
		for k := range c[j] {
			c[j][k] = c[j][k]/sum + eps
		}
	}
	for i := range iterations {
		if i > 0 {
			for j := range c {
				r := &c[j]
				inv := 1 / (r[0] + r[1] + r[2] + r[3] + eps)
				for k := range r {
					r[k] *= inv
				}
			}
		}
		for k := range Streams {
			inv := 1 / (c[0][k] + c[1][k] + c[2][k] + c[3][k] + eps)
			for j := range c {
				c[j][k] *= inv
			}
		}
	}
	for i := range m {
		m[i] = float32(c[i/Streams][i%Streams])
	}
}

// SumStreams writes y = Σ w[j]·x[j] for each row: y [rows, n],
// x [rows, Streams, n], w [rows, Streams].
func (p *Pool) SumStreams(y, x, w []float32) {
	rows := len(w) / Streams
	p.hyper.sum = sumStreamsJob{y, x, w, len(y) / max(1, rows)}
	p.splitRows(rows, Streams*p.hyper.sum.n, &p.hyper.sum)
}

type sumStreamsJob struct {
	y, x, w []float32
	n       int
}

func (j *sumStreamsJob) do(_, from, to int) {
	for r := from; r < to; r++ {
		active.rows.sumStreams(j.y[r*j.n:][:j.n], j.x[r*Streams*j.n:][:Streams*j.n], j.w[r*Streams:][:Streams])
	}
}

// MixStreams replaces the streams x[k] of each row by
// post[k]·y + Σ comb[j][k]·x[j]: x [rows, Streams, n], y [rows, n],
// post [rows, Streams], comb [rows, Streams, Streams].
func (p *Pool) MixStreams(x, y, post, comb []float32) {
	rows := len(post) / Streams
	p.hyper.mix = mixStreamsJob{x, y, post, comb, len(y) / max(1, rows)}
	p.splitRows(rows, Streams*p.hyper.mix.n, &p.hyper.mix)
}

type mixStreamsJob struct {
	x, y, post, comb []float32
	n                int
}

func (j *mixStreamsJob) do(_, from, to int) {
	for r := from; r < to; r++ {
		active.rows.mixStreams(j.x[r*Streams*j.n:][:Streams*j.n], j.y[r*j.n:][:j.n],
			j.post[r*Streams:][:Streams], j.comb[r*Streams*Streams:][:Streams*Streams])
	}
}
