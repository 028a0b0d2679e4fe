package kernel

import "github.com/foretoken/foretoken/internal/tensor"

// A Weight is a matrix prepared for products.
type Weight struct {
	*tensor.Matrix
	segments []segment
}

// A segment is a range of the inner dimension that is summed on its own.
type segment struct{ from, to int }

// maxSegments is the largest number of ranks among which tensor parallelism
// may split the inner dimension of a product.
const maxSegments = 8

// NewWeight prepares a product whose inner dimension is never split.
func NewWeight(m *tensor.Matrix) *Weight {
	return &Weight{m, []segment{{0, m.Cols}}}
}

// NewSplitWeight prepares a product whose inner dimension tensor parallelism
// may split: it is cut into eight segments of whole units, summed as a
// balanced binary tree, so that 1, 2, 4 or 8 ranks give the same bits. unit
// is the smallest range that a rank can own, beyond the storage block: the
// head width for an attention output, 1 otherwise.
func NewSplitWeight(m *tensor.Matrix, unit int) *Weight {
	unit = lcm(unit, m.DType.BlockLen())
	n := m.Cols / unit
	segments := make([]segment, maxSegments)
	for s := range segments {
		segments[s] = segment{s * n / maxSegments * unit, (s + 1) * n / maxSegments * unit}
	}
	return &Weight{m, segments}
}

func lcm(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// MatMul computes y = x·wᵀ + bias for rows activation rows: x [rows, w.Cols],
// y [rows, w.Rows], bias [w.Rows] or nil.
func (p *Pool) MatMul(y, x []float32, rows int, w *Weight, bias []float32) {
	if rows == 0 {
		return
	}
	p.matmul = matmulJob{pool: p, y: y, x: x, rows: rows, w: w, bias: bias}
	p.run((w.Rows+taskRows-1)/taskRows, &p.matmul)
}

// taskRows is the number of weight rows of one task, whole panels.
const taskRows = 11 * panelRows

type matmulJob struct {
	pool *Pool
	y, x []float32
	rows int
	w    *Weight
	bias []float32
}

func (j *matmulJob) do(worker, task int) {
	w := j.w
	panel := j.pool.buffer(worker, panelRows*w.Cols)
	var rows [panelRows][]float32
	end := min((task+1)*taskRows, w.Rows)
	for r := task * taskRows; r < end; r += panelRows {
		n := min(panelRows, end-r)
		for i := range rows {
			rows[i] = panel[i*w.Cols : (i+1)*w.Cols]
			if i < n {
				w.Row(rows[i], r+i)
			}
		}
		j.panel(&rows, r, n)
	}
}

// panel multiplies n decoded weight rows, the first being row r, with all
// activation rows.
func (j *matmulJob) panel(w *[panelRows][]float32, r, n int) {
	cols, out := j.w.Cols, j.w.Rows
	t := 0
	for ; t+2 <= j.rows; t += 2 {
		x0, x1 := j.x[t*cols:(t+1)*cols], j.x[(t+1)*cols:(t+2)*cols]
		var sums [maxSegments][2 * panelRows]float32
		for s, g := range j.w.segments {
			dot3x2(&sums[s], w[0][g.from:g.to], w[1][g.from:g.to], w[2][g.from:g.to], x0[g.from:g.to], x1[g.from:g.to])
		}
		for i := range n {
			j.y[t*out+r+i] = j.finish(&sums, 2*i, r+i)
			j.y[(t+1)*out+r+i] = j.finish(&sums, 2*i+1, r+i)
		}
	}
	if t < j.rows {
		x := j.x[t*cols : (t+1)*cols]
		var sums [maxSegments][2 * panelRows]float32
		for s, g := range j.w.segments {
			dot3x1((*[panelRows]float32)(sums[s][:]), w[0][g.from:g.to], w[1][g.from:g.to], w[2][g.from:g.to], x[g.from:g.to])
		}
		for i := range n {
			j.y[t*out+r+i] = j.finish(&sums, i, r+i)
		}
	}
}

// finish adds the segments of element e as a balanced binary tree, and the
// bias of output row r.
func (j *matmulJob) finish(sums *[maxSegments][2 * panelRows]float32, e, r int) float32 {
	y := j.tree(sums, e, 0, len(j.w.segments))
	if j.bias != nil {
		y += j.bias[r]
	}
	return y
}

// tree sums segments [from, to); an empty one contributes nothing, not even
// the sign of a zero.
func (j *matmulJob) tree(sums *[maxSegments][2 * panelRows]float32, e, from, to int) float32 {
	if to-from == 1 {
		return sums[from][e]
	}
	mid := (from + to) / 2
	segs := j.w.segments
	switch {
	case segs[from].from == segs[mid-1].to:
		return j.tree(sums, e, mid, to)
	case segs[mid].from == segs[to-1].to:
		return j.tree(sums, e, from, mid)
	}
	return j.tree(sums, e, from, mid) + j.tree(sums, e, mid, to)
}
