package kernel

import (
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

// panel computes the outputs of one panel for rows [row, row+rows), whose
// activations are at input.
func (r *productRun) panel(p *Pool, worker, index int, input unsafe.Pointer, row, rows int) {
	w := r.W
	data := w.data[index*w.panelBytes:]
	next := data[w.panelBytes:]
	if len(next) == 0 && r.next != nil {
		next = r.next.data
	}
	out := index * panel.Rows
	y := r.Y[row*w.Rows+out:]
	full := out+panel.Rows <= w.Rows && r.Bias == nil
	if full && len(w.segments) == 1 && w.input != inFloat {
		w.dot(data, next, input, r.stride, &y[0], w.Rows, rows, 0, w.blocks)
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
			w.dotFloat(data, next, input, r.stride, part, rows, block, n, unpacked)
		default:
			w.dot(data, next, input, r.stride, &part[0], panel.Rows, rows, block, n)
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
// values. data goes on to the weight's end; next is what is read after this panel.
func (w *Weight) dot(data, next []byte, input unsafe.Pointer, inStride int, out *float32, stride, rows, from, n int) {
	kernels, width := active.panels.bf16, 2*panel.Block
	if w.input == inInt8 {
		kernels, width = active.panels.int8[w.kind.ID], int(unsafe.Sizeof(QBlock{}))
	}
	at, size := w.kind.Bytes(from), w.kind.Bytes(n)
	tiles := (rows + len(kernels) - 1) / len(kernels)
	next, part, step := ahead(data, next, at, size, tiles)
	in := unsafe.Add(input, from*width)
	for i, t := 0, 0; i < tiles; i++ {
		T := (rows - t) / (tiles - i)
		kernels[T-1](&data[at], (*byte)(unsafe.Add(in, t*inStride)), (*byte)(unsafe.Add(unsafe.Pointer(out), 4*t*stride)),
			&next[i*part], uint64(n/w.kind.Group()), uint64(inStride), uint64(4*stride), uint64(step/n))
		t += T
	}
}

// ahead says what the passes of a kernel over size bytes at data[at:] ask memory
// for: pass i what begins at from[i·part], step bytes in all. A single pass asks
// for what it reads itself some microseconds later; of several, each asks for its
// part of the next panel, for they read theirs from the cache but for the first.
func ahead(data, next []byte, at, size, passes int) (from []byte, part, step int) {
	const distance = 8 << 10
	switch {
	case passes == 1:
		return data[min(at+distance, len(data)-1):], 0, size
	case len(next) < at+size: // the last panel, or one before a smaller weight
		return data[at:], 0, size
	}
	return next[at:], size / passes, size / passes
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
func (w *Weight) dotFloat(data, next []byte, input unsafe.Pointer, inStride int, out []float32, rows, from, n int, unpacked []float32) {
	kernels := active.panels.float[w.kind.ID]
	if kernels != nil {
		at, size := w.kind.Bytes(from), w.kind.Bytes(n)
		next, part, step := ahead(data, next, at, size, (rows+len(kernels)-1)/len(kernels))
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
		next, _, step := ahead(data, nil, w.kind.Bytes(from+done), w.kind.Bytes(count), 1)
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
