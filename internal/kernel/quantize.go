package kernel

// A QBlock is 32 activations in eight bits, a cache line: x ≈ Scale·Q, with
// Scale a 127th of the greatest |x|. Neg and Sum are of all 32, the first 16
// and the last 16: Neg = -ΣQ seeds sums of weights that are stored with an
// offset; Sum = Scale·ΣQ multiplies minima.
//
// A block whose values are all below 2⁻¹⁰⁰ is zero. One that holds a NaN or an
// infinity has Scale and Sum NaN and Q zero, which makes all products NaN.
type QBlock struct {
	Scale float32
	Neg   [3]int32
	Sum   [3]float32
	_     uint32 // zero
	Q     [qBlock]int8
}

const qBlock = 32 // values

// Quantize writes x, a whole number of blocks, to dst.
func (p *Pool) Quantize(dst []QBlock, x []float32) {
	p.rowJobs.quantize = quantizeJob{dst, x}
	p.split(len(x)/qBlock, rowGrain/qBlock, &p.rowJobs.quantize)
}

type quantizeJob struct {
	dst []QBlock
	x   []float32
}

func (j *quantizeJob) do(_, from, to int) {
	for from < to {
		end := min(from+rowGrain/qBlock, to)
		active.rows.quantize(j.dst[from:end], j.x[from*qBlock:end*qBlock])
		from = end
	}
}

// ToBF16 rounds x to bfloat16, ties to even; a NaN stays one.
func (p *Pool) ToBF16(dst []uint16, x []float32) {
	p.rowJobs.bf16 = bf16Job{dst, x}
	p.split(len(x), rowGrain, &p.rowJobs.bf16)
}

type bf16Job struct {
	dst []uint16
	x   []float32
}

func (j *bf16Job) do(_, from, to int) {
	for from < to {
		end := min(from+rowGrain, to)
		active.rows.toBF16(j.dst[from:end], j.x[from:end])
		from = end
	}
}
