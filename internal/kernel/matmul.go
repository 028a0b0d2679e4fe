package kernel

import (
	"fmt"
	"slices"
	"sort"
	"unsafe"

	"github.com/foretoken/foretoken/internal/kernel/panel"
)

// A Product is one of the products that MatMul forms of its input.
type Product struct {
	Y    []float32 // [rows, W.Rows], or [len(Rows), W.Rows]
	W    *Weight
	Bias []float32 // [W.Rows] or nil
	// Rows are the rows of x that it multiplies, in the order of Y's: nil for
	// all, empty for none. Products that follow one another with the same slice
	// share what it costs to bring scattered rows together.
	Rows []int32
}

// MatMul computes Y = x·Wᵀ + Bias of every product for activation rows
// x [rows, Cols], where all weights have the same Cols.
func (p *Pool) MatMul(x []float32, rows int, products ...Product) {
	j := &p.matmul
	j.pool, j.rows, j.x = p, rows, x
	j.prepare(products)
	p.run(len(j.tasks), j)
}

// A matmulJob is a MatMul cut into runs of panels.
type matmulJob struct {
	pool     *Pool
	rows     int
	x        []float32
	products []productRun // those that have rows
	tasks    []int        // where each ends: a panel, counted through all products

	converted [inBF16 + 1]bool // whether x is there in that precision
	q8        []QBlock         // x in eight bits
	bf16      []uint16         // x in bfloat16
	padded    []float32        // x with every segment filled to whole blocks
	layout    []panel.Segment  // that of padded; nil: it is not made yet

	gathered [][]QBlock // for each worker, memory for rows that it has brought together
}

// A productRun is a product and its place in the job.
type productRun struct {
	Product         // Rows only where they are scattered
	rows    int     // of Y
	input   *byte   // the activations as the product's kernels read them: Y's first row, or x with Rows
	stride  int     // bytes of an input row
	first   int     // panel, counted through all products
	next    *Weight // of the product that follows, or nil
}

// prepare converts the activations once for each precision that the products
// read, and cuts the products into tasks.
func (j *matmulJob) prepare(products []Product) {
	clear(j.converted[:])
	j.products, j.layout = j.products[:0], nil
	panels, work := 0, 0
	for _, q := range products {
		r := productRun{Product: q, rows: j.rows, first: panels}
		if q.Rows != nil {
			r.rows = len(q.Rows)
		}
		if r.rows == 0 || q.W.Rows == 0 {
			continue
		}
		r.input, r.stride = j.convert(q.W)
		r.join(j.rows)
		if n := len(j.products); n > 0 {
			j.products[n-1].next = q.W
		}
		panels += q.W.panels()
		work += q.W.panels() * r.work()
		j.products = append(j.products, r)
	}
	j.cut(work)
	if j.gathered == nil {
		j.gathered = make([][]QBlock, j.pool.Workers())
	}
}

// join turns rows that lie one after the other into a place in the input of
// the given number of rows.
func (r *productRun) join(rows int) {
	joined := true
	for i, row := range r.Rows {
		if row < 0 || int(row) >= rows {
			panic(fmt.Sprintf("kernel: a product of row %d of %d", row, rows))
		}
		joined = joined && int(row) == int(r.Rows[0])+i
	}
	if joined && r.Rows != nil {
		r.input = (*byte)(unsafe.Add(unsafe.Pointer(r.input), int(r.Rows[0])*r.stride))
		r.Rows = nil
	}
}

// work is what a panel costs, in bytes that its kernels read: of the panel, once
// from memory, and of activations, from the cache but as many again for each row.
func (r *productRun) work() int { return r.W.panelBytes + r.rows*r.stride }

// follows reports whether r reads the rows that q reads.
func (r *productRun) follows(q *productRun) bool {
	return r.input == q.input && r.stride == q.stride && r.rows == q.rows &&
		unsafe.SliceData(r.Rows) == unsafe.SliceData(q.Rows)
}

// tasksPerWorker is how finely a job is cut: enough that workers end
// together, few enough that each reads long streams.
const tasksPerWorker = 8

// cut makes tasks of nearly equal work. A task ends with a product where it can,
// for a product that two tasks share has its rows brought together twice: what
// it takes of one is all that is left of it, or at least half a task.
func (j *matmulJob) cut(work int) {
	share := max(1, work/(tasksPerWorker*j.pool.Workers()))
	j.tasks = j.tasks[:0]
	room, end := share, 0
	for i := range j.products {
		r := &j.products[i]
		cost, last := r.work(), r.first+r.W.panels()
		for end < last {
			n := last - end
			if n*cost > room+share/2 {
				n = max(1, room/cost)
			}
			end += n
			if room -= n * cost; room < (share+1)/2 {
				j.tasks = append(j.tasks, end)
				room = share
			}
		}
	}
	if room < share {
		j.tasks = append(j.tasks, end)
	}
}

func (j *matmulJob) do(worker, task int) {
	from, to := 0, j.tasks[task]
	if task > 0 {
		from = j.tasks[task-1]
	}
	i := sort.Search(len(j.products), func(i int) bool { return j.products[i].first > from }) - 1
	for from < to {
		// Products of the same rows.
		n := i + 1
		for n < len(j.products) && j.products[n].first < to && j.products[n].follows(&j.products[i]) {
			n++
		}
		j.pass(worker, j.products[i:n], from, to)
		if i = n; i == len(j.products) {
			return
		}
		from = j.products[i].first
	}
}

const (
	minRows    = 8         // of a block: more than any kernel takes at once
	cachedRows = 384 << 10 // bytes of activations
)

// pass multiplies those of the panels [from, to) that are products', which all
// read the same rows. A block of rows stays in the second-level cache while
// panels pass by.
func (j *matmulJob) pass(worker int, products []productRun, from, to int) {
	r := &products[0]
	block := max(minRows, cachedRows/r.stride)
	for row := 0; row < r.rows; row += block {
		n := min(block, r.rows-row)
		input := j.gather(worker, r, row, n)
		for i := range products {
			r := &products[i]
			for p := max(from-r.first, 0); p < min(to-r.first, r.W.panels()); p++ {
				r.panel(j.pool, worker, p, input, row, n)
			}
		}
	}
}

// gather returns rows [row, row+n) of r's input, one after the other. Scattered
// ones are copied, by each worker for itself: it has the copy in its cache, and
// no more of it than fits there.
func (j *matmulJob) gather(worker int, r *productRun, row, n int) unsafe.Pointer {
	if r.Rows == nil {
		return unsafe.Add(unsafe.Pointer(r.input), row*r.stride)
	}
	const line = int(unsafe.Sizeof(QBlock{})) // rows are whole cache lines in every precision
	lines := r.stride / line
	dst := grow(j.gathered[worker], n*lines)
	j.gathered[worker] = dst
	for i, from := range r.Rows[row : row+n] {
		src := (*QBlock)(unsafe.Add(unsafe.Pointer(r.input), int(from)*r.stride))
		copy(dst[i*lines:], unsafe.Slice(src, lines))
	}
	return unsafe.Pointer(&dst[0])
}

// convert returns x as the products of w read it.
func (j *matmulJob) convert(w *Weight) (input *byte, stride int) {
	have := j.converted[w.input]
	j.converted[w.input] = true
	switch w.input {
	case inInt8:
		if !have {
			j.q8 = grow(j.q8, j.rows*w.blocks)
			j.pool.Quantize(j.q8, j.x)
		}
		return (*byte)(unsafe.Pointer(&j.q8[0])), w.blocks * int(unsafe.Sizeof(QBlock{}))
	case inBF16:
		if !have {
			j.bf16 = grow(j.bf16, len(j.x))
			j.pool.ToBF16(j.bf16, j.x)
		}
		return (*byte)(unsafe.Pointer(&j.bf16[0])), 2 * w.Cols
	}
	return j.floats(w)
}

// floats returns x with each segment of w filled with zeros to whole blocks.
// Products of one call that need a copy must agree in their segments: those that
// are split stand alone, or are of experts, which are split alike.
func (j *matmulJob) floats(w *Weight) (input *byte, stride int) {
	cols := w.blocks * panel.Block
	if cols == w.Cols {
		return (*byte)(unsafe.Pointer(&j.x[0])), 4 * cols
	}
	if j.layout != nil {
		if !slices.Equal(j.layout, w.segments) {
			panic("kernel: products of one input whose segments differ")
		}
		return (*byte)(unsafe.Pointer(&j.padded[0])), 4 * cols
	}
	j.layout = w.segments
	j.padded = grow(j.padded, j.rows*cols)
	clear(j.padded)
	for r := range j.rows {
		dst, src := j.padded[r*cols:(r+1)*cols], j.x[r*w.Cols:(r+1)*w.Cols]
		for _, s := range w.segments {
			copy(dst, src[s.From:s.To])
			dst = dst[s.Blocks()*panel.Block:]
		}
	}
	return (*byte)(unsafe.Pointer(&j.padded[0])), 4 * cols
}

// grow returns n values of memory that may be s's own.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
