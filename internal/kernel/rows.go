package kernel

import "fmt"

// rowKernels are the kernels over rows of activations and of logits. The
// lengths of their slices agree.
type rowKernels struct {
	rmsNorm func(y, x, w []float32, eps float32) // one row
	add     func(y, x []float32)
	scale   func(x []float32, a float32)
	swiglu  func(gate, up []float32)
	geglu   func(gate, up []float32)

	// rotate and rotatePairs turn the heads of one row, width values apart:
	// pairs (i, i+len(cos)), or (2i, 2i+1).
	rotate, rotatePairs func(x, cos, sin []float32, heads, width int)

	quantize func(dst []QBlock, x []float32)
	toBF16   func(dst []uint16, x []float32)

	// Of logits; sets have a bit for each value, in whole words.
	peak       func(x []float32) float32
	divide     func(x []float32, a float32)
	expSum     func(x []float32, shift float32) float64
	atLeast    func(set []uint64, x []float32, floor float32)
	mask       func(x []float32, allowed []uint64)
	contenders func(x []float32, state uint64, floor float32) [16]uint64
}

// rowGrain is how many values make a task of their own: some microseconds of
// work, ten times what a fork costs. The rows of a decode step stay below it.
const rowGrain = 1 << 15

// rowJobs are the arguments of the call that runs.
type rowJobs struct {
	norm     normJob
	pair     pairJob
	scale    scaleJob
	rotate   rotateJob
	quantize quantizeJob
	bf16     bf16Job
}

// splitRows cuts rows of n values each among the workers.
func (p *Pool) splitRows(rows, n int, j rangeJob) {
	p.split(rows, max(1, rowGrain/max(1, n)), j)
}

// RMSNorm writes w · x / rms(x) for each row of x [rows, len(w)]. y may be x.
// (Zhang and Sennrich 2019; the mean is taken in float64, the rest in float32.)
func (p *Pool) RMSNorm(y, x, w []float32, eps float32) {
	if len(w) == 0 {
		return
	}
	p.rowJobs.norm = normJob{y, x, w, eps}
	p.splitRows(len(x)/len(w), len(w), &p.rowJobs.norm)
}

type normJob struct {
	y, x, w []float32
	eps     float32
}

func (j *normJob) do(_, from, to int) {
	n := len(j.w)
	for at := from * n; at < to*n; at += n {
		active.rows.rmsNorm(j.y[at:at+n], j.x[at:at+n], j.w, j.eps)
	}
}

// Add adds x to y, of one length.
func (p *Pool) Add(y, x []float32) { p.pairwise(active.rows.add, y, x) }

// SwiGLU writes silu(gate) · up into gate, of one length (Shazeer 2020).
func (p *Pool) SwiGLU(gate, up []float32) { p.pairwise(active.rows.swiglu, gate, up) }

// GeGLU writes gelu(gate) · up into gate, of one length, with the tanh form of
// GELU.
func (p *Pool) GeGLU(gate, up []float32) { p.pairwise(active.rows.geglu, gate, up) }

func (p *Pool) pairwise(f func(y, x []float32), y, x []float32) {
	p.rowJobs.pair = pairJob{f, y, x[:len(y)]}
	p.split(len(y), rowGrain, &p.rowJobs.pair)
}

// A pairJob is a kernel whose results depend on two values each.
type pairJob struct {
	f    func(y, x []float32)
	y, x []float32
}

func (j *pairJob) do(_, from, to int) {
	for from < to { // assembly cannot be preempted: no call is long
		end := min(from+rowGrain, to)
		j.f(j.y[from:end], j.x[from:end])
		from = end
	}
}

// Scale multiplies x by a.
func (p *Pool) Scale(x []float32, a float32) {
	p.rowJobs.scale = scaleJob{x, a}
	p.split(len(x), rowGrain, &p.rowJobs.scale)
}

type scaleJob struct {
	x []float32
	a float32
}

func (j *scaleJob) do(_, from, to int) {
	for from < to {
		end := min(from+rowGrain, to)
		active.rows.scale(j.x[from:end], j.a)
		from = end
	}
}

// Rotate applies rotary embeddings to every head of x [rows, heads, width]:
// the first 2·half values of a head are rotated in pairs by the angles whose
// cosines and sines are given as [rows, half]. Pairs are (i, i+half), or
// (2i, 2i+1) when interleaved.
func (p *Pool) Rotate(x []float32, heads, width int, cos, sin []float32, half int, interleaved bool) {
	if len(x) == 0 {
		return
	}
	if 2*half > width {
		panic(fmt.Sprintf("kernel: %d values of a head of %d are to be rotated", 2*half, width))
	}
	f := active.rows.rotate
	if interleaved {
		f = active.rows.rotatePairs
	}
	p.rowJobs.rotate = rotateJob{f, x, cos, sin, heads, width, half}
	p.splitRows(len(x)/(heads*width), heads*width, &p.rowJobs.rotate)
}

type rotateJob struct {
	f                  func(x, cos, sin []float32, heads, width int)
	x, cos, sin        []float32
	heads, width, half int
}

func (j *rotateJob) do(_, from, to int) {
	n := j.heads * j.width
	for row := from; row < to; row++ {
		angles := row * j.half
		j.f(j.x[row*n:(row+1)*n], j.cos[angles:angles+j.half], j.sin[angles:angles+j.half], j.heads, j.width)
	}
}
