package kernel

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/foretoken/foretoken/internal/kernel/panel"
	"github.com/foretoken/foretoken/internal/tensor"
)

// A Weight is a matrix prepared for products: packed in panels, off the Go heap.
type Weight struct {
	Rows, Cols int

	kind       *panel.Kind
	input      precision
	unit       int // of its segments, as Pack has it
	segments   []panel.Segment
	blocks     int // of all segments
	panelBytes int
	data       []byte // [panels][panelBytes]
}

// precision is what activations are converted to for a product.
type precision uint8

const (
	inFloat precision = iota
	inInt8            // QBlocks
	inBF16
)

// maxSegments is the largest number of ranks among which tensor parallelism
// may split the inner dimension of a product.
const maxSegments = 8

// A Packer prepares weights.
type Packer struct {
	Pool  *Pool
	Arena *Arena
	// Exact keeps activations in float32 in every product.
	Exact bool
	// Quantize is the type to which matrices of floats are rounded first:
	// Q8_0, Q4_0 or Q4_1; Invalid leaves them as they are.
	Quantize tensor.DType
	// Again lets Quantize round matrices of other block types too, where that
	// makes them smaller: for a model that drafts, and decides nothing. Others would
	// lose twice.
	Again bool
}

// Pack prepares m. If unit is not zero, tensor parallelism may split the inner
// dimension of its products: it is cut into eight segments of whole units,
// summed as a balanced binary tree, so that 1, 2, 4 or 8 ranks give the same
// bits. unit is the smallest range that a rank can own, beyond the storage
// block: the head width for an attention output, 1 otherwise. Errors: no memory,
// or values that Quantize cannot round.
func (k *Packer) Pack(m *tensor.Matrix, unit int) (*Weight, error) {
	w, to, err := k.reserve(m, unit)
	if err != nil {
		return nil, err
	}
	if err := k.fill(w, m, to); err != nil {
		return nil, err
	}
	return w, nil
}

// Reserve takes the memory that Pack would, for Repack to fill: with m, or with
// another matrix of its form.
func (k *Packer) Reserve(m *tensor.Matrix, unit int) (*Weight, error) {
	w, _, err := k.reserve(m, unit)
	return w, err
}

func (k *Packer) reserve(m *tensor.Matrix, unit int) (w *Weight, to tensor.DType, err error) {
	if w, to, err = k.plan(m, unit); err != nil {
		return nil, to, err
	}
	if w.data, err = k.Arena.Alloc(w.panels() * w.panelBytes); err != nil {
		return nil, to, fmt.Errorf("%s: %w", m.Name, err)
	}
	return w, to, nil
}

// Repack prepares m in the memory of w, whose values it replaces: w is then what
// Pack would have made of m with w's unit. Errors: m needs another amount or
// arrangement of memory than w has, which leaves w as it is; or values that
// Quantize cannot round, after which w holds neither matrix.
func (k *Packer) Repack(w *Weight, m *tensor.Matrix) error {
	fresh, to, err := k.plan(m, w.unit)
	switch {
	case err != nil:
		return err
	case fresh.Rows != w.Rows || fresh.Cols != w.Cols:
		return fmt.Errorf("%s: shape [%d, %d], expected that of the weight it replaces, [%d, %d]", m.Name, fresh.Rows, fresh.Cols, w.Rows, w.Cols)
	case fresh.kind != w.kind:
		return fmt.Errorf("%s: would be packed as %s, expected the kind of the weight it replaces, %s", m.Name, fresh.kind.Name, w.kind.Name)
	case fresh.input != w.input:
		return fmt.Errorf("%s: would be multiplied with other activations than the weight it replaces", m.Name)
	case !slices.Equal(fresh.segments, w.segments):
		return fmt.Errorf("%s: segments %v, expected those of the weight it replaces, %v", m.Name, fresh.segments, w.segments)
	}
	return k.fill(w, m, to)
}

// plan lays out the weight of m, and says to which type m is rounded first: its
// own if it is not.
func (k *Packer) plan(m *tensor.Matrix, unit int) (w *Weight, to tensor.DType, err error) {
	w = newWeight(m, unit, k.Exact)
	if k.Quantize == tensor.Invalid || m.Cols%k.Quantize.BlockLen() != 0 {
		return w, m.DType, nil
	}
	blocks := m.DType != k.Quantize && m.DType.BlockLen() > 2
	if blocks && !k.Again {
		return nil, to, fmt.Errorf("%s is %v already: only floats can be quantised to %v", m.Name, m.DType, k.Quantize)
	}
	rounded := newWeight(&tensor.Matrix{DType: k.Quantize, Rows: m.Rows, Cols: m.Cols}, unit, k.Exact)
	if blocks && rounded.panelBytes >= w.panelBytes {
		return w, m.DType, nil
	}
	return rounded, k.Quantize, nil
}

// fill writes the panels of m, rounded to the given type. Which bytes of a panel
// a kind writes depends on its shape alone: those that stay zero were zero before.
func (k *Packer) fill(w *Weight, m *tensor.Matrix, to tensor.DType) error {
	j := packJob{w: w, from: m, to: to}
	k.Pool.run(w.panels(), &j)
	if err := j.err.Load(); err != nil {
		return fmt.Errorf("%s: %w", m.Name, *err)
	}
	return nil
}

// packJob packs panels, from a matrix that may be of another type.
type packJob struct {
	w    *Weight
	from *tensor.Matrix
	to   tensor.DType
	err  atomic.Pointer[error]
}

func (j *packJob) do(_, task int) {
	w, m, panel := j.w, j.from, task
	if m.DType != j.to {
		var err error
		if m, err = j.encode(task); err != nil {
			j.err.Store(&err)
			return
		}
		panel = 0
	}
	w.kind.Pack(w.data[task*w.panelBytes:][:w.panelBytes], m, panel, w.segments)
}

// encode rounds the rows of one panel.
func (j *packJob) encode(task int) (*tensor.Matrix, error) {
	m := &tensor.Matrix{DType: j.to, Rows: min(panel.Rows, j.w.Rows-task*panel.Rows), Cols: j.w.Cols}
	values, size := make([]float32, m.Cols), j.to.RowBytes(m.Cols)
	m.Data = make([]byte, m.Rows*size)
	for r := range m.Rows {
		j.from.Row(values, task*panel.Rows+r)
		if err := tensor.Encode(j.to, m.Data[r*size:(r+1)*size], values); err != nil {
			return nil, fmt.Errorf("row %d: %w", task*panel.Rows+r, err)
		}
	}
	return m, nil
}

func splitSegments(m *tensor.Matrix, unit int) []panel.Segment {
	unit = lcm(unit, m.DType.BlockLen())
	if m.Scales != nil {
		unit = lcm(unit, m.Scales.BlockCols)
	}
	n := m.Cols / unit
	segments := make([]panel.Segment, maxSegments)
	for s := range segments {
		segments[s] = panel.Segment{From: s * n / maxSegments * unit, To: (s + 1) * n / maxSegments * unit}
	}
	segments[maxSegments-1].To = m.Cols // beyond the last whole unit
	return segments
}

func lcm(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// newWeight lays out a matrix of which only the form is read.
func newWeight(m *tensor.Matrix, unit int, exact bool) *Weight {
	w := &Weight{Rows: m.Rows, Cols: m.Cols, kind: panel.Of(m), unit: unit, segments: []panel.Segment{{From: 0, To: m.Cols}}}
	if unit > 0 {
		w.segments = splitSegments(m, unit)
	}
	for _, s := range w.segments {
		w.blocks += s.Blocks()
	}
	w.input = w.precision(exact)
	w.panelBytes = w.kind.Bytes(w.blocks)
	return w
}

// precision chooses what the weight's products read: what the kernels of this
// CPU are fastest with, unless activations have to stay exact.
func (w *Weight) precision(exact bool) precision {
	switch {
	case exact:
	case w.kind.Quantised() && active.panels.int8 != nil:
		return inInt8
	case w.kind.ID == panel.BF16 && active.panels.bf16 != nil && w.blocks*panel.Block == w.Cols:
		return inBF16
	}
	return inFloat
}

func (w *Weight) panels() int { return (w.Rows + panel.Rows - 1) / panel.Rows }

// Bytes is the memory that a product reads.
func (w *Weight) Bytes() int { return len(w.data) }
