package kernel

// ClampedSwiGLU writes silu(min(gate, limit)) · up into gate, of one length,
// with up clamped to ±limit, which is left in up. A NaN stays one.
func (p *Pool) ClampedSwiGLU(gate, up []float32, limit float32) {
	p.rowJobs.clamped = clampedSwiGLUJob{gate, up[:len(gate)], limit}
	p.split(len(gate), rowGrain, &p.rowJobs.clamped)
}

type clampedSwiGLUJob struct {
	gate, up []float32
	limit    float32
}

func (j *clampedSwiGLUJob) do(_, from, to int) {
	const part = 1 << 10 // stays in the first-level cache
	for from < to {
		end := min(from+part, to)
		gate, up := j.gate[from:end], j.up[from:end]
		active.indexer.clamp(gate, negInf, j.limit)
		active.indexer.clamp(up, -j.limit, j.limit)
		active.rows.swiglu(gate, up)
		from = end
	}
}
