package kernel

import (
	"slices"
	"unsafe"

	"github.com/foretoken/foretoken/internal/kernel/panel"
)

// panelKernels multiply panels of weights with rows of activations. A nil table
// means that the CPU has nothing better than float32 activations for it.
type panelKernels struct {
	// int8 has, for each quantised kind, products with 1, 2, … rows of QBlocks.
	int8 [][]dotFunc
	// bf16 has products of BF16 panels with 1, 2, … rows of bfloat16.
	bf16 []dotFunc
	// float has, for each kind of floats that is read as it is, products with 1,
	// 2, … rows of float32, added to out; F32 is always there.
	float [panel.NumKinds][]dotFunc
	// unpack decodes groups of a panel to an F32 panel, for the other kinds.
	unpack [panel.NumKinds]unpackFunc
	// tree adds eight parts [rows][32], partStride bytes apart, as a balanced
	// binary tree, to out, whose rows are outStride bytes apart.
	tree func(out, parts *float32, rows, outStride, partStride uint64)
}

// A dotFunc multiplies groups of one panel, at w, with T rows of activations,
// aStride bytes apart at a, and stores [T][32] sums at out, rows outStride
// bytes apart. For each block it asks for the lines of a block at next, which
// then moves by nextStep.
type dotFunc func(w, a, out, next *byte, groups, aStride, outStride, nextStep uint64)

type unpackFunc func(dst *float32, src *byte, groups uint64)

// A Product is one of the products that MatMul forms of its input.
type Product struct {
	Y    []float32 // [rows, W.Rows]
	W    *Weight
	Bias []float32 // [W.Rows] or nil
}

// MatMul computes Y = x·Wᵀ + Bias of every product for rows activation rows
// x [rows, Cols], which all weights share.
func (p *Pool) MatMul(x []float32, rows int, products ...Product) {
	if rows == 0 {
		return
	}
	j := &p.matmul
	j.pool, j.rows, j.x = p, rows, x
	j.prepare(products)
	p.run(j.tasks, j)
}

// A matmulJob is a MatMul cut into runs of panels.
type matmulJob struct {
	pool     *Pool
	rows     int
	x        []float32
	products []productRun
	tasks    int

	q8     []QBlock        // x in eight bits
	bf16   []uint16        // x in bfloat16
	padded []float32       // x with every segment filled to whole blocks
	layout []panel.Segment // that of padded; nil: it is not made yet
}

// A productRun is a product and the tasks that are its own.
type productRun struct {
	Product
	input   *byte // the activations as the product's kernel reads them
	stride  int   // bytes of an input row
	first   int   // task
	perTask int   // panels
}

// tasksPerWorker is how finely a product is cut: enough that workers end
// together, few enough that each reads long streams.
const tasksPerWorker = 8

// prepare converts the activations once for each precision that the products
// read, and cuts the products into tasks.
func (j *matmulJob) prepare(products []Product) {
	panels := 0
	for _, q := range products {
		panels += q.W.panels()
	}
	perTask := max(1, panels/(tasksPerWorker*j.pool.Workers()))
	j.products, j.tasks, j.layout = j.products[:0], 0, nil
	var have [inBF16 + 1]bool
	for _, q := range products {
		r := productRun{Product: q, first: j.tasks, perTask: perTask}
		j.tasks += (q.W.panels() + perTask - 1) / perTask
		switch q.W.input {
		case inInt8:
			if !have[inInt8] {
				j.q8 = grow(j.q8, j.rows*q.W.blocks)
				j.pool.Quantize(j.q8, j.x)
			}
			r.input, r.stride = (*byte)(unsafe.Pointer(&j.q8[0])), q.W.blocks*int(unsafe.Sizeof(QBlock{}))
		case inBF16:
			if !have[inBF16] {
				j.bf16 = grow(j.bf16, len(j.x))
				j.pool.ToBF16(j.bf16, j.x)
			}
			r.input, r.stride = (*byte)(unsafe.Pointer(&j.bf16[0])), 2*q.W.Cols
		default:
			r.input, r.stride = j.floats(q.W)
		}
		have[q.W.input] = true
		j.products = append(j.products, r)
	}
}

// grow returns n values of memory that may be s's own.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// floats returns x with each segment of w filled with zeros to whole blocks.
// Products of one call that need a copy must agree in their segments: those that
// are split stand alone.
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

func (j *matmulJob) do(worker, task int) {
	i := 0
	for i+1 < len(j.products) && task >= j.products[i+1].first {
		i++
	}
	r := &j.products[i]
	from := (task - r.first) * r.perTask
	to := min(from+r.perTask, r.W.panels())
	// A block of rows stays in the second-level cache while panels pass by.
	rows := max(minRows, cachedRows/r.stride)
	for row := 0; row < j.rows; row += rows {
		for p := from; p < to; p++ {
			r.panel(j.pool, worker, p, row, min(rows, j.rows-row))
		}
	}
}

const (
	minRows    = 8         // of a block: more than any kernel takes at once
	cachedRows = 384 << 10 // bytes of activations
)

// panel computes the outputs of one panel for rows [row, row+rows).
func (r *productRun) panel(p *Pool, worker, index, row, rows int) {
	w := r.W
	data := w.data[index*w.panelBytes:]
	input := unsafe.Add(unsafe.Pointer(r.input), row*r.stride)
	out := index * panel.Rows
	y := r.Y[row*w.Rows+out:]
	full := out+panel.Rows <= w.Rows && r.Bias == nil
	if full && len(w.segments) == 1 && w.input != inFloat {
		w.dot(data, input, r.stride, &y[0], w.Rows, rows, 0, w.blocks)
		return
	}
	parts := p.buffer(worker, len(w.segments)*rows*panel.Rows+w.scratch())
	parts, unpacked := parts[:len(w.segments)*rows*panel.Rows], parts[len(w.segments)*rows*panel.Rows:]
	block := 0
	for s, seg := range w.segments {
		part := parts[s*rows*panel.Rows:][:rows*panel.Rows]
		n := seg.Blocks()
		switch {
		case n == 0:
			clear(part) // adds nothing: a sum is never -0
		case w.input == inFloat:
			clear(part)
			w.dotFloat(data, input, r.stride, part, rows, block, n, unpacked)
		default:
			w.dot(data, input, r.stride, &part[0], panel.Rows, rows, block, n)
		}
		block += n
	}
	if len(w.segments) > 1 {
		sum, stride := &parts[0], panel.Rows
		if full {
			sum, stride = &y[0], w.Rows
		}
		active.panels.tree(sum, &parts[0], uint64(rows), uint64(4*stride), uint64(4*rows*panel.Rows))
		if full {
			return
		}
	}
	n := min(panel.Rows, w.Rows-out)
	for t := range rows {
		dst, src := y[t*w.Rows:][:n], parts[t*panel.Rows:][:n]
		copy(dst, src)
		if r.Bias != nil {
			for i, b := range r.Bias[out : out+n] {
				dst[i] += b
			}
		}
	}
}

// dot multiplies blocks [from, from+n) of a panel with rows of QBlocks or
// bfloat16, in tiles of nearly equal height; out [rows][32] has rows of stride
// values.
func (w *Weight) dot(data []byte, input unsafe.Pointer, inStride int, out *float32, stride, rows, from, n int) {
	kernels, width := active.panels.bf16, 2*panel.Block
	if w.input == inInt8 {
		kernels, width = active.panels.int8[w.kind.ID], int(unsafe.Sizeof(QBlock{}))
	}
	at, size := w.kind.Bytes(from), w.kind.Bytes(n)
	tiles := (rows + len(kernels) - 1) / len(kernels)
	next, part, step := w.ahead(data, at, size, tiles)
	in := unsafe.Add(input, from*width)
	for i, t := 0, 0; i < tiles; i++ {
		T := (rows - t) / (tiles - i)
		kernels[T-1](&data[at], (*byte)(unsafe.Add(in, t*inStride)), (*byte)(unsafe.Add(unsafe.Pointer(out), 4*t*stride)),
			&next[i*part], uint64(n/w.kind.Group()), uint64(inStride), uint64(4*stride), uint64(step/n))
		t += T
	}
}

// ahead says what the passes of a kernel over size bytes ask memory for: pass i
// what begins at next[i·part], step bytes in all. A single pass asks for what it
// reads itself some microseconds later; of several, each asks for its part of
// the next panel, for they read theirs from the cache but for the first.
func (w *Weight) ahead(data []byte, at, size, passes int) (next []byte, part, step int) {
	const distance = 8 << 10
	switch {
	case passes == 1:
		return data[min(at+distance, len(data)-1):], 0, size
	case len(data) < w.panelBytes+at+size: // the last panel
		return data[at:], 0, size
	}
	return data[w.panelBytes+at:], size / passes, size / passes
}

// unpackedBlocks is how much of a panel is decoded at once: 32 KiB of floats.
const unpackedBlocks = panel.Super

// scratch is the memory that dotFloat wants.
func (w *Weight) scratch() int {
	if w.input != inFloat || active.panels.float[w.kind.ID] != nil {
		return 0
	}
	return unpackedBlocks * panel.Block * panel.Rows
}

// dotFloat adds to out [rows][32] the products of blocks [from, from+n) of a
// panel with rows of floats.
func (w *Weight) dotFloat(data []byte, input unsafe.Pointer, inStride int, out []float32, rows, from, n int, unpacked []float32) {
	kernels := active.panels.float[w.kind.ID]
	if kernels != nil {
		at, size := w.kind.Bytes(from), w.kind.Bytes(n)
		next, part, step := w.ahead(data, at, size, (rows+len(kernels)-1)/len(kernels))
		floatTiles(kernels, &data[at], unsafe.Add(input, from*4*panel.Block), inStride, out, rows, n, next, part, step/n)
		return
	}
	unpack, kernels := active.panels.unpack[w.kind.ID], active.panels.float[panel.F32]
	for done := 0; done < n; done += unpackedBlocks {
		count := min(n-done, unpackedBlocks)
		unpack(&unpacked[0], &data[w.kind.Bytes(from+done)], uint64(count/w.kind.Group()))
		in := unsafe.Add(input, (from+done)*4*panel.Block)
		// What is decoded next lies ahead in the panel; the other passes ask for
		// it again, which costs nothing.
		next, _, step := w.ahead(data, w.kind.Bytes(from+done), w.kind.Bytes(count), 1)
		floatTiles(kernels, (*byte)(unsafe.Pointer(&unpacked[0])), in, inStride, out, rows, count, next, 0, step/count)
	}
}

// floatTiles adds to out [rows][32] the products of n blocks of floats with
// rows of float32. Its passes ask for memory as ahead says, step bytes a block.
func floatTiles(kernels []dotFunc, w *byte, input unsafe.Pointer, inStride int, out []float32, rows, n int, next []byte, part, step int) {
	tiles := (rows + len(kernels) - 1) / len(kernels)
	for i, t := 0, 0; i < tiles; i++ {
		T := (rows - t) / (tiles - i)
		kernels[T-1](w, (*byte)(unsafe.Add(input, t*inStride)), (*byte)(unsafe.Pointer(&out[t*panel.Rows])),
			&next[i*part], uint64(n), uint64(inStride), 4*panel.Rows, uint64(step))
		t += T
	}
}
