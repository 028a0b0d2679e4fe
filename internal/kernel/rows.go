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

	squares func(x []float32) float64 // their sum

	// Of the streams of one row.
	sumStreams func(y, x, w []float32)
	mixStreams func(x, y, post, comb []float32)

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
	norm      normJob
	layerNorm layerNormJob
	pair      pairJob
	clamped   clampedSwiGLUJob
	scale     scaleJob
	scaleRows scaleRowsJob
	rotate    rotateJob
	quantize  quantizeJob
	bf16      bf16Job
	store     storeEntriesJob
	load      loadEntriesJob
	move      moveJob
	gated     gatedJob
	combine   combineJob
	each      eachJob
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

// ScaleRows multiplies each row of x [len(a), n] by its own factor.
func (p *Pool) ScaleRows(x []float32, n int, a []float32) {
	p.rowJobs.scaleRows = scaleRowsJob{x, n, a}
	p.splitRows(len(a), n, &p.rowJobs.scaleRows)
}

type scaleRowsJob struct {
	x []float32
	n int
	a []float32
}

func (j *scaleRowsJob) do(_, from, to int) {
	for row := from; row < to; row++ {
		active.rows.scale(j.x[row*j.n:(row+1)*j.n], j.a[row])
	}
}

// A Rotation turns 2·Half values of a head, from First on, in pairs: (i, i+Half),
// or (2i, 2i+1) when interleaved.
type Rotation struct {
	Cos, Sin    []float32 // [rows, Half], of the angles
	First, Half int
	Interleaved bool
}

// Rotate applies rotary embeddings to every head of x [rows, heads, width].
func (p *Pool) Rotate(x []float32, heads, width int, r Rotation) {
	if len(x) == 0 {
		return
	}
	if r.First+2*r.Half > width {
		panic(fmt.Sprintf("kernel: %d values from %d on of a head of %d are to be rotated", 2*r.Half, r.First, width))
	}
	p.rowJobs.rotate = rotateJob{r, active.rows.rotate, x, heads, width}
	if r.Interleaved {
		p.rowJobs.rotate.f = active.rows.rotatePairs
	}
	p.splitRows(len(x)/(heads*width), heads*width, &p.rowJobs.rotate)
}

type rotateJob struct {
	Rotation
	f            func(x, cos, sin []float32, heads, width int)
	x            []float32
	heads, width int
}

func (j *rotateJob) do(_, from, to int) {
	n := j.heads * j.width
	for row := from; row < to; row++ {
		angles := row * j.Half
		j.f(j.x[row*n+j.First:(row+1)*n], j.Cos[angles:angles+j.Half], j.Sin[angles:angles+j.Half], j.heads, j.width)
	}
}
